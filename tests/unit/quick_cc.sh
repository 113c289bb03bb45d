#!/bin/sh
# The compiler of the arguments at -O0.
exec "$@" -O0
