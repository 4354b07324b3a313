#!/usr/bin/env bash
# Runs the commands of docs/operate/install/dev-container.md word for word, in a network and a /srv of their own:
# test-dev-container.sh IMAGE.tar. Needs root.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
if [ "${CLOAKROOM_TEST_ISOLATED:-}" != yes ]; then
    image=$(realpath "$1")
    CLOAKROOM_TEST_ISOLATED=yes exec unshare --net --mount "${BASH_SOURCE[0]}" "$image"
fi

image=$1
# shellcheck source=test-functions.sh
. "$here/test-functions.sh"
ip link set lo up
mount -t tmpfs tmpfs /srv
work=$(mktemp -d)
trap 'delete_podman "$work"; rm -rf "$work"' EXIT
isolate_podman "$work"
install -d "$work/download"
ln "$image" "$work/download/" 2>/dev/null || cp "$image" "$work/download/"
commands_of "$here/../docs/operate/install/dev-container.md" >"$work/commands.sh"
cd "$work/download"
# A vault that does not start must not wait forever.
timeout 300 bash "$work/commands.sh" 2>&1 | tee "$work/transcript" ||
    { podman logs cloakroom-dev || true; exit 1; }

grep -q '"number":"XXXXXXXXXXXX4242"' "$work/transcript" || { echo "dev container: no masked token in the output" >&2 && exit 1; }
durations_of "$work/transcript" "Load the image" "Keep the data"
