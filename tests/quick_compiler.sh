# shellcheck shell=sh
# Sourced by scripts in folders beside this file: without NGRAD_CHECK (tests/effort.h), ngrad compiles with -O0. Results
# must have the same bits at every level, and at this one gcc takes half the time.
# shellcheck disable=SC2089,SC2090 # ngrad reads $CC as a shell would
if [ -z "${NGRAD_CHECK-}" ]; then
  CC="\"$(realpath "$(dirname "$0")/../unit/quick_cc.sh")\" cc"
  export CC
fi
