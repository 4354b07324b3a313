#!/usr/bin/env bash
# Runs the commands of docs/operate/install/container.md word for word, in a network and a /srv of their own:
# test-container.sh IMAGE.tar. Needs root and the server programs of PostgreSQL.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
if [ "${CLOAKROOM_TEST_ISOLATED:-}" != yes ]; then
    image=$(realpath "$1")
    CLOAKROOM_TEST_ISOLATED=yes exec unshare --net --mount "${BASH_SOURCE[0]}" "$image"
fi

image=$1
# shellcheck source=test-functions.sh
. "$here/test-functions.sh"
page=$here/../docs/operate/install/container.md
postgresql=$(find /usr/lib/postgresql -maxdepth 1 -mindepth 1 | sort -V | tail -n 1)/bin
ip link set lo up
mount -t tmpfs tmpfs /srv

work=$(mktemp -d)
finish() {
    delete_podman "$work"
    runuser -u postgres -- "$postgresql/pg_ctl" --pgdata "$work/data" --mode immediate --silent stop || true
    rm -rf "$work"
}
trap finish EXIT
chmod 0755 "$work"
install -d -m 0700 -o postgres "$work/data"
install -d -m 0755 "$work/download"
ln "$image" "$work/download/" 2>/dev/null || cp "$image" "$work/download/"
runuser -u postgres -- "$postgresql/initdb" --pgdata "$work/data" --data-checksums --auth trust >/dev/null
cat >>"$work/data/postgresql.conf" <<EOF
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
log_error_verbosity = terse
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
EOF
runuser -u postgres -- "$postgresql/pg_ctl" --pgdata "$work/data" --log "$work/data/log" --wait --silent start

isolate_podman "$work"
{
    commands_of "$page"
    cat <<'EOF'
podman inspect cloakroom --format 'user {{.Config.User}}, capabilities {{.EffectiveCaps}}, read-only {{.HostConfig.ReadonlyRootfs}}'
grep -E '^(Uid|CapEff|CapBnd|NoNewPrivs|Seccomp):' "/proc/$(podman inspect cloakroom --format '{{.State.Pid}}')/status"
EOF
} >"$work/commands.sh"
cd "$work/download"
PGHOST=127.0.0.1 PGUSER=postgres bash "$work/commands.sh" 2>&1 | tee "$work/transcript" ||
    { podman logs cloakroom || true; exit 1; }

grep -q '"number":"XXXXXXXXXXXX4242"' "$work/transcript" || { echo "container: no masked token in the output" >&2 && exit 1; }
grep -q '^CapEff:.0000000000000000$' "$work/transcript" || { echo "container: the node has capabilities" >&2 && exit 1; }
grep -q '^Uid:.65532' "$work/transcript" || { echo "container: the node does not run as 65532" >&2 && exit 1; }
durations_of "$work/transcript" "Load the image" "Check the deployment"
