#!/bin/sh
# The program itself on 64-bit ARM: built by a cross compiler with Debian's arm64 libraries, and run under qemu-aarch64.
# It trains a network with kernels that the same cross compiler compiles, and its states have the hash of this machine's.
# Wants the arm64 packages of the libraries, which apt-get downloads (75 MB); else skipped (77). Usage: aarch64.sh NGRAD [FOLDER]
# FOLDER keeps what was downloaded.
set -u
ngrad=$(realpath "$1")
root=$(realpath "$(dirname "$0")/../..")
kept=$(realpath -m "${2:-$(dirname "$ngrad")/arm64}")
# shellcheck source=tests/checks.sh
. "$root/tests/checks.sh"
for tool in qemu-aarch64 aarch64-linux-gnu-gcc apt-get dpkg-deb cmake ninja pkg-config; do
  has $tool || { echo "left out: the program on aarch64, no $tool" && exit 77; }
done
libraries=usr/lib/aarch64-linux-gnu
list=$kept/sources.list
apt() { # COMMAND ARGUMENT...; with state of its own
  "$@" -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::lists="$kept/lists" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$kept/cache" -o Dir::Etc::sourcelist="$list" -o Dir::Etc::sourceparts=- -o Acquire::Languages=none
}
download() {
  mkdir -p "$kept/lists/partial" "$kept/cache/archives/partial" "$kept/debs" "$kept/system" || return
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main" >"$list"
  apt apt-get -qq update || return
  apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances \
    libyaml-dev libjansson-dev nettle-dev libzip-dev zlib1g-dev | grep '^[a-z]' | sort -u >"$kept/packages"
  # shellcheck disable=SC2046 # a word a package
  (cd "$kept/debs" && apt apt-get -qq download $(cat "$kept/packages")) || return
  for package in "$kept"/debs/*.deb; do dpkg-deb -x "$package" "$kept/system" || return; done
}
if [ ! -e "$kept/system/$libraries/pkgconfig/libzip.pc" ]; then
  download >log 2>&1 || { echo 'left out: the program on aarch64, its libraries cannot be downloaded' && exit 77; }
fi

export PKG_CONFIG_LIBDIR="$kept/system/$libraries/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$kept/system"
system=$kept/system
links="-Wl,-rpath-link,$system/$libraries:$system/lib/aarch64-linux-gnu"
cmake -S "$root" -B "$kept/build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_EXE_LINKER_FLAGS="$links" -DCMAKE_SHARED_LINKER_FLAGS="$links" -DBUILD_TESTING=OFF \
  -DCMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;$system" >log 2>&1 &&
  cmake --build "$kept/build" --target ngrad >>log 2>&1
count 'the program is built for aarch64'

on_arm() { # ARGUMENT...
  CC='aarch64-linux-gnu-gcc' qemu-aarch64 -L "$system" "$kept/build/ngrad" "$@"
}
on_arm --version >log 2>&1 && grep -q 'instruction sets: scalar neon' log
count 'its instruction sets are scalar and neon'
on_arm run "$root/models/gpt2_layer_norm_backward.yaml" --random --dim N=64 --compare >log 2>&1
count 'a compiled kernel agrees with the interpreter'
on_arm check no-such-file.yaml >log 2>&1
[ $? -eq 1 ] && grep -q 'no-such-file.yaml: ' log
count 'an error is one there, too'
head -c 200000 /usr/share/common-licenses/GPL-3 >text
for where in here there; do
  run=$ngrad
  [ $where = here ] || run=on_arm
  $run train "$root/models/train/gpt_bytes.yaml" --optimizer adamw -o $where >log 2>&1 &&
    $run fit $where/gpt_bytes_step.yaml --text text --batch 2 --steps 2 --quiet -o $where >$where.said 2>>log
  count "two steps of a GPT: $where"
done
hash=$(sed -n 's/^sha256 of the states: //p' here.said)
[ -n "$hash" ] && grep -q "$hash" there.said
count 'both end in the same states'
on_arm emit "$root/models/gpt2_layer_norm_backward.yaml" -o there >log 2>&1 && "$ngrad" emit "$root/models/gpt2_layer_norm_backward.yaml" -o here >>log 2>&1 &&
  cmp here/gpt2_layer_norm_backward.c there/gpt2_layer_norm_backward.c >>log
count 'the C that it emits is the same'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
