#!/bin/sh
# Runs the compiler in the arguments with -O0.
exec "$@" -O0
