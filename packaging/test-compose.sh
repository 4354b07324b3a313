#!/usr/bin/env bash
# Runs the commands of docs/operate/install/compose.md word for word with podman-compose, in a network of their own:
# test-compose.sh IMAGE.tar [CACHE]. Needs root. The image postgres:15 is built from Debian's package, because the pipeline
# reaches no registry of images; it takes the same settings, files and health check.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
if [ "${CLOAKROOM_TEST_ISOLATED:-}" != yes ]; then
    image=$(realpath "$1")
    mkdir -p "${2:-$here/../target/tools}"
    cache=$(realpath "${2:-$here/../target/tools}")
    root=$cache/debian-12-postgresql
    if [ ! -d "$root" ]; then
        echo "compose: creating a Debian 12 with PostgreSQL in $root, once"
        rm -rf --one-file-system "$root.new"
        # The user has the number that setup.sh expects.
        # shellcheck disable=SC2016 # The hook expands its own variable.
        mmdebstrap --quiet --variant=minbase --include=postgresql-15 --essential-hook='
            echo "postgres:x:999:999::/var/lib/postgresql:/bin/bash" >>"$1/etc/passwd"
            echo "postgres:x:999:" >>"$1/etc/group"' bookworm "$root.new"
        mv "$root.new" "$root"
    fi
    CLOAKROOM_TEST_ISOLATED=yes exec unshare --net --mount "${BASH_SOURCE[0]}" "$image" "$root"
fi

image=$1
root=$2
# shellcheck source=test-functions.sh
. "$here/test-functions.sh"
ip link set lo up
work=$(mktemp -d)
health=
finish() {
    if [ -n "$health" ]; then kill "$health" && wait "$health"; fi 2>/dev/null || true
    delete_podman "$work"
    rm -rf "$work"
}
trap finish EXIT
isolate_podman "$work"
# Elsewhere, timers of systemd run the health checks.
while sleep 1; do podman healthcheck run cloakroom_postgres_1 || true; done >/dev/null 2>&1 &
health=$!

install -m 0755 /dev/stdin "$work/entrypoint" <<'EOF'
#!/bin/bash
# What the compose file uses of the entrypoint of the image postgres.
set -euo pipefail
export PATH=/usr/lib/postgresql/15/bin:$PATH PGDATA=/var/lib/postgresql/data PGUSER=postgres
as_server() { setpriv --reuid 999 --regid 999 --clear-groups "$@"; }
install -d -o 999 -g 999 "$PGDATA" /var/run/postgresql
if [ ! -e "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086 # Several arguments.
    as_server initdb --username postgres --pwfile "$POSTGRES_PASSWORD_FILE" $POSTGRES_INITDB_ARGS
    echo 'host all all all scram-sha-256' | as_server tee --append "$PGDATA/pg_hba.conf"
    as_server pg_ctl --wait --options "-c listen_addresses=''" start
    for file in /docker-entrypoint-initdb.d/*.sql; do as_server psql --file "$file"; done
    as_server pg_ctl --wait --mode fast stop
fi
exec setpriv --reuid 999 --regid 999 --clear-groups "$@" -c 'listen_addresses=*'
EOF
container=$(buildah from scratch)
buildah copy --quiet "$container" "$root" / >/dev/null
buildah copy --quiet "$container" "$work/entrypoint" / >/dev/null
buildah config --entrypoint '["/entrypoint"]' "$container" 2>/dev/null
buildah commit --quiet --rm "$container" docker.io/library/postgres:15 >/dev/null

mkdir "$work/bin"
install -m 0755 /dev/stdin "$work/bin/docker" <<'EOF'
#!/bin/sh
[ "$1" != compose ] || { shift && exec podman-compose "$@"; }
exec podman "$@"
EOF
cp -r "$here/../deploy/compose" "$work/compose"
podman load --quiet --input "$image"
commands_of "$here/../docs/operate/install/compose.md" >"$work/commands.sh"
cd "$work/compose"
PATH=$work/bin:$PATH timeout 300 bash "$work/commands.sh" 2>&1 | tee "$work/transcript" ||
    { podman ps --all; podman logs cloakroom_node_1 || true; exit 1; }

grep -q '"number":"XXXXXXXXXXXX4242"' "$work/transcript" || { echo "compose: no masked token in the output" >&2 && exit 1; }
durations_of "$work/transcript" "Start it" "Delete it"
