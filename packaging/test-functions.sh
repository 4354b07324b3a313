# shellcheck shell=bash
# Functions of the tests of install pages. Tests source this file.

# Prints the shell blocks of a page, with the time at each heading: commands_of PAGE.
commands_of() {
    echo 'set -euo pipefail'
    cat <<'EOF'
section() { printf '\n== %s  %s\n' "$(date +%s.%N)" "$1"; }
EOF
    awk '/^## / { printf "section \"%s\"\n", substr($0, 4) }
         /^```sh$/ { inside = 1; next }
         /^```/ { inside = 0 }
         inside' "$1"
    echo 'section end'
}

# Prints a page with some sections replaced by those of the same title on another page: with_sections_of OTHER PAGE.
with_sections_of() {
    awk 'FNR == 1 { is_page = NR != 1; title = "" }
         /^## / { title = $0 }
         !is_page { if (title != "") other[title] = other[title] $0 "\n"; next }
         /^## / && title in other { printf "%s", other[title] }
         !(title in other)' "$1" "$2"
}

# Prints the duration of each section, and of all from FROM until before UNTIL: durations_of TRANSCRIPT FROM UNTIL.
durations_of() {
    awk -v from="$2" -v until="$3" '
        /^== / {
            if (name != "") printf "%7.1f s  %s\n", $2 - at, name
            at = $2; name = $0; sub(/^== [^ ]* +/, "", name)
            if (name == from) first = at
            if (name == until) token = at
        }
        END {
            printf "%7.1f s  from download to first token\n", token - first
            exit !(first && token > first)
        }' "$1"
}

# Runs podman with images, containers and networks of its own in the folder $1, with runc, and with limits that are not
# above those of this shell. Needs mounts and a network of its own (unshare --mount --net).
isolate_podman() {
    cat >"$1/storage.conf" <<EOF
[storage]
driver = "overlay"
graphroot = "$1/storage"
runroot = "$1/run"
EOF
    cat >"$1/containers.conf" <<EOF
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
[network]
network_backend = "netavark"
network_config_dir = "$1/networks"
EOF
    export CONTAINERS_CONF=$1/containers.conf CONTAINERS_STORAGE_CONF=$1/storage.conf
    # Addresses and the DNS server of networks are always below /run, namespaces too.
    mkdir -p /run/containers /run/netns
    mount -t tmpfs tmpfs /run/containers
    mount -t tmpfs tmpfs /run/netns
}

# Deletes everything that podman has in the folder $1, except the folder.
delete_podman() {
    # Never the containers of the host.
    [ "${CONTAINERS_STORAGE_CONF:-}" = "$1/storage.conf" ] || return 0
    podman rm --all --force --time 5 >/dev/null 2>&1 || true
    pkill --nslist net --ns $$ -x aardvark-dns || true
    umount --quiet "$1/storage/overlay" || true
}
