#!/bin/sh
# Copies a binary of this or another architecture without symbols: strip.sh BINARY OUT.
set -eu

strip="strip"
case $("$(dirname "$0")/architecture.sh" "$1")-$(dpkg --print-architecture) in
    arm64-amd64) strip=aarch64-linux-gnu-strip ;;
    amd64-arm64) strip=x86_64-linux-gnu-strip ;;
esac
"$strip" --strip-all -o "$2" "$1"
chmod 0755 "$2"
