#!/bin/sh
# Runs the suite, models/bench, on ngrad and on what peers the program was built with. It gets the path of ngrad, beside
# which the bench program stands, and then that one's options; --help tells them.
set -eu
bench=$(dirname "$(realpath "$1")")/ngrad_bench_peers
suite=$(realpath "$(dirname "$0")/../../models/bench")
shift
exec "$bench" "$@" "$suite"/*.yaml
