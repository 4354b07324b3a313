#!/bin/sh
# Prints Debian's name of the architecture that a binary is for: architecture.sh BINARY.
set -eu

machine=$(LC_ALL=C readelf --file-header "$1" | sed -n 's/^ *Machine: *//p')
case $machine in
    *X86-64) echo amd64 ;;
    AArch64) echo arm64 ;;
    *) echo "no packages for binaries of $machine" >&2 && exit 1 ;;
esac
