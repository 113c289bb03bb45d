#!/bin/sh
# Runs README's two commands on a new machine: a Debian 12 that debootstrap makes in a folder, with git and nothing
# else. It has a clone of this repository and a copy of ../shared, and runs the commands as root and as an ordinary user
# with sudo. Prints times. Needs root, and this machine's package archive; else skipped (77).
#
# usage: new_machine.sh [FOLDER [COMMAND...]]   where the machine is made, and taken away again, below /var/tmp unless said;
#                                               and what root runs there in place of the two commands
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
[ "$(id -u)" -eq 0 ] || { echo 'left out: new_machine: wants to be root' && exit 77; }
command -v debootstrap >/dev/null || { echo 'left out: new_machine: no debootstrap' && exit 77; }
parent=${1:-/var/tmp}
[ $# -eq 0 ] || shift
mkdir -p "$parent"
machine=$(mktemp -d "$parent/ngrad-machine.XXXXXX")
chmod 755 "$machine" # it becomes the root folder
mounts='proc sys dev/pts dev/shm'
# shellcheck disable=SC2317 # a trap calls it
leave() {
  for mount in $mounts; do umount "$machine/$mount" 2>/dev/null || :; done
  rm -rf --one-file-system "$machine"
}
trap leave EXIT
trap 'exit 130' INT TERM

# The archive of this machine, by either of apt's formats.
archive=$(sed -n 's/^URIs: *//p; s/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*\) bookworm main.*/\2/p' \
  /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null | grep -m 1 debian || echo http://deb.debian.org/debian)
echo "new_machine: Debian 12 from $archive"
debootstrap --variant=minbase --include=git,ca-certificates,sudo,passwd bookworm "$machine" "$archive" >"$parent/debootstrap.log" 2>&1 ||
  { tail -n 20 "$parent/debootstrap.log" && exit 1; }
for file in /etc/resolv.conf /etc/hosts; do [ ! -e $file ] || cp -L $file "$machine$file"; done
for file in /etc/apt/apt.conf /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$file" ] || cp "$file" "$machine$file"; done
mkdir -p "$machine/dev/pts" "$machine/dev/shm"
mount -t proc proc "$machine/proc"
mount -t sysfs -o ro sysfs "$machine/sys" # MPI reads what the machine is
mount -t devpts devpts "$machine/dev/pts"
mount -t tmpfs shm "$machine/dev/shm"
chroot "$machine" useradd --create-home --shell /bin/sh user
echo 'user ALL=(ALL) NOPASSWD: ALL' >"$machine/etc/sudoers.d/user"

# Each in a folder of its own, one whose name has a space.
clone() { # FOLDER OWNER
  mkdir -p "$machine$1"
  git clone -q --no-hardlinks "$root" "$machine$1/ngrad"
  [ ! -d "$root/../shared" ] || cp -rL "$root/../shared" "$machine$1/shared"
  chroot "$machine" chown -R "$2" "$1"
}
status=0
command_in() { # FOLDER USER COMMAND
  start=$(date +%s) code=0
  chroot "$machine" su - "$2" -c "cd '$1/ngrad' && CI=true $3" >"$machine/output" 2>&1 </dev/null || code=$?
  echo "new_machine: $2, $1: $3: status $code after $(($(date +%s) - start)) s"
  [ $code -ne 0 ] || return 0
  status=1
  grep -A 12 -E 'FAILED|error:' "$machine/output" | head -n 100 | sed 's/^/  /'
  tail -n 40 "$machine/output" | sed 's/^/  /'
}
clone /root/first root
if [ $# -gt 0 ]; then
  for command; do command_in /root/first root "$command"; done
  exit $status
fi
command_in /root/first root './dev demo'
command_in /root/first root './dev test'
clone '/home/user/my projects' user
command_in '/home/user/my projects' user './dev demo'
command_in '/home/user/my projects' user './dev test'
exit $status
