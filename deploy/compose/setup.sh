#!/bin/sh
# Creates the secrets of the compose file, once. Run it as root: the image runs as user 65532.
set -eu
cd "$(dirname "$0")"
image=localhost/cloakroom:${CLOAKROOM_VERSION:-0.2.0}
engine=${ENGINE:-docker}
node=65532

if [ -e secrets ]; then echo "the folder secrets exists already" >&2 && exit 1; fi
"$engine" image inspect "$image" >/dev/null || { echo "load the image $image first" >&2 && exit 1; }
umask 077
# Created as a whole or not at all, so that a failure can be repeated.
trap 'rm -rf secrets' EXIT
mkdir secrets
owner=$(openssl rand -hex 24)
serving=$(openssl rand -hex 24)
openssl rand -hex 24 >secrets/postgres.password
cat >secrets/roles.sql <<EOF
create role cloakroom_owner login password '$owner';
create role cloakroom login password '$serving';
create database cloakroom owner cloakroom_owner;
EOF
echo "postgres://cloakroom_owner:$owner@postgres/cloakroom" >secrets/owner.url
echo "postgres://cloakroom:$serving@postgres/cloakroom" >secrets/database.url
chown "$node:$node" secrets secrets/owner.url secrets/database.url
"$engine" run --rm --read-only --cap-drop all --network none --volume "$PWD/secrets:/secrets" "$image" \
    root-key create /secrets/root.key
# The server of the image postgres reads both as user 999.
chown 999:999 secrets/postgres.password secrets/roles.sql
chmod 0711 secrets
trap - EXIT
