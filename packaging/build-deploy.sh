#!/usr/bin/env bash
# Builds the archives of what deployments use beside the binary: build-deploy.sh VERSION OUT. Output depends only on the version, the
# folder deploy and SOURCE_DATE_EPOCH.
set -euo pipefail

version=$1
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "${BASH_SOURCE[0]}")/../deploy"
: "${SOURCE_DATE_EPOCH:?set it to the time of the commit}"

pack() { # archive, then folders and options of tar
    local archive=$1
    shift
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" --format=gnu "$@" |
        gzip -9 --no-name >"$out/$archive"
}
# Secrets of a test with compose must not leave this machine.
pack "cloakroom-$version-deploy.tar.gz" --exclude=secrets --transform="s|^|cloakroom-$version-deploy/|" compose ha observability
pack "cloakroom-chart-$version.tgz" --directory helm cloakroom
