#!/bin/sh
# Measures beside newer versions of the peers than this machine's packages have: makes a Debian of another release in a
# folder, with its oneDNN, OpenBLAS and PyTorch, and runs ./dev bench --tables, or another command, in a clone of this
# repository there. The machine stays for the next call. Needs root, debootstrap and 6 GB; else skipped (77).
#
# usage: newer_peers.sh FOLDER [COMMAND]; SUITE=trixie chooses the release, sid unless said
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
[ "$(id -u)" -eq 0 ] || { echo 'left out: newer_peers: wants to be root' && exit 77; }
command -v debootstrap >/dev/null || { echo 'left out: newer_peers: no debootstrap' && exit 77; }
suite=${SUITE:-sid}
machine=$(realpath -m "$1")/$suite
command=${2:-./dev bench --tables}
archive=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*\) .*/\2/p' \
  /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -m 1 'debian$' || echo http://deb.debian.org/debian)
# torch.compile wants a C++ compiler, and headers.
packages='gcc g++ libc6-dev cmake ninja-build pkg-config libyaml-dev libjansson-dev nettle-dev libzip-dev zlib1g-dev git libdnnl-dev
  libopenblas-openmp-dev libopenblas0-pthread python3-torch libtorch-dev python3-dev python3-numpy python3-yaml dataset-fashion-mnist'
if [ ! -e "$machine/usr/bin/apt-get" ]; then
  mkdir -p "$machine/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io >"$machine/etc/dpkg/dpkg.cfg.d/unsafe-io"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$machine" "$archive" >"$machine.log" 2>&1 || { tail -n 20 "$machine.log" && exit 1; }
fi
for file in /etc/resolv.conf /etc/hosts; do [ ! -e $file ] || cp -L $file "$machine$file"; done
mountpoint -q "$machine/proc" || mount -t proc proc "$machine/proc"
trap 'umount "$machine/proc"' EXIT
if [ "$(cat "$machine/root/packages" 2>/dev/null)" != "$packages" ]; then
  # shellcheck disable=SC2086 # a word a package
  chroot "$machine" sh -euc 'export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o Acquire::Check-Valid-Until=false update
    apt-get -qq -y --no-install-recommends install "$@"' sh $packages >>"$machine.log" 2>&1 || { tail -n 20 "$machine.log" && exit 1; }
  echo "$packages" >"$machine/root/packages"
fi
[ -d "$machine/root/ngrad" ] || git clone -q --no-hardlinks "$root" "$machine/root/ngrad"
git -C "$machine/root/ngrad" fetch -q "$root" HEAD
git -C "$machine/root/ngrad" reset -q --hard FETCH_HEAD
chroot "$machine" sh -c "dpkg-query -W -f '\${Package} \${Version}\n' libdnnl-dev libopenblas-openmp-dev python3-torch gcc; cd /root/ngrad && $command"
