#!/usr/bin/env bash
# Runs the commands of docs/operate/install/debian.md word for word on a bare Debian with systemd, without network:
# test-install.sh PACKAGE [CACHE]. Prints the duration of each section and the time from package to first token.
#
# With an RPM package, one command differs: rpm installs it. Then the page is that of a managed PostgreSQL, and the server
# accepts only TLS and has an administrator who is not a superuser. The upgrade is that of the Debian package, to the same files
# with a higher version.
set -euo pipefail

package=$(realpath "$1")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
# shellcheck source=test-functions.sh
. "$here/test-functions.sh"
pages=$here/../docs/operate/install
mkdir -p "${2:-$here/../target/tools}"
cache=$(realpath "${2:-$here/../target/tools}")
root=$cache/debian-12-systemd-rpm-client

if [ ! -d "$root" ]; then
    echo "install: creating a bare Debian 12 in $root, once"
    rm -rf --one-file-system "$root.new"
    mmdebstrap --quiet --variant=minbase \
        --include=systemd,systemd-sysv,dbus,postgresql-15,postgresql-client,curl,ca-certificates,openssl,procps,rpm bookworm "$root.new"
    mv "$root.new" "$root"
fi

work=$(mktemp -d)
container=cloakroom-install-$$
finish() {
    podman rm --force --time 5 "$container" >/dev/null 2>&1 || true
    rm -rf "$work"
}
trap finish EXIT
cp "$package" "$work/"
chmod 0755 "$work"
newer=99.0.0-1
if [[ $package = *.deb ]]; then
    dpkg-deb --raw-extract "$package" "$work/newer"
    sed -i "s/^Version: .*/Version: $newer/" "$work/newer/DEBIAN/control"
    mkdir "$work/upgrade"
    dpkg-deb --root-owner-group --build "$work/newer" "$work/upgrade/cloakroom_${newer}_amd64.deb" >/dev/null
fi

cat >"$work/before-upgrade.sh" <<'EOF'
rm ./cloakroom_*.deb
cp upgrade/*.deb .
previous=$(pgrep -x cloakroom)
EOF
cat >"$work/after-upgrade.sh" <<'EOF'
[ "$previous" != "$(pgrep -x cloakroom)" ] || { echo "install: the node was not restarted" >&2 && exit 1; }
EOF
cat >"$work/managed-server.sh" <<'EOF'
set -euo pipefail
systemctl stop postgresql@15-main
runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_checksums --enable --pgdata /var/lib/postgresql/15/main >/dev/null
cd /etc/postgresql/15/main
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=Test CA' -keyout /root/ca.key -out /root/ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=database.internal -keyout server.key -out server.csr 2>/dev/null
openssl x509 -req -in server.csr -CA /root/ca.pem -CAkey /root/ca.key -CAcreateserial -days 2 -out server.crt \
    -extfile <(echo subjectAltName=DNS:database.internal) 2>/dev/null
chown postgres server.key server.crt && chmod 0600 server.key
cat >conf.d/managed.conf <<'CONF'
ssl = on
ssl_cert_file = '/etc/postgresql/15/main/server.crt'
ssl_key_file = '/etc/postgresql/15/main/server.key'
log_error_verbosity = terse
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
CONF
printf 'local all postgres peer\nhostssl all all all scram-sha-256\n' >pg_hba.conf
systemctl start postgresql@15-main
runuser -u postgres -- psql --quiet -c "create role administrator login createdb createrole password 'administrator'"
EOF

{
    echo 'cd /srv/download || exit 1; export DEBIAN_FRONTEND=noninteractive'
    case $package in
        *.deb) commands_of "$pages/debian.md" |
            sed '/^section "Upgrade"$/i . ./before-upgrade.sh'
            echo '. ./after-upgrade.sh' ;;
        *.rpm)
            echo 'export PGHOST=database.internal PGPORT=5432 PGUSER=administrator PGPASSWORD=administrator PGDATABASE=postgres'
            echo 'CA_FILE=/root/ca.pem'
            with_sections_of "$pages/managed-postgresql.md" "$pages/debian.md" | sed '/^## Upgrade$/,$d' >"$work/page.md"
            commands_of "$work/page.md" | sed 's|^apt-get install -y \./cloakroom_.*\.deb$|rpm --install --nodeps ./cloakroom-*.rpm|'
            ;;
    esac
} >"$work/commands.sh"

# The limits of this shell may be lower than the defaults of podman.
podman run --detach --name "$container" --runtime runc --network none --systemd always \
    --add-host database.internal:127.0.0.1 --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
    --volume "$work:/srv/download" --rootfs "$root:O" /sbin/init >/dev/null
for _ in $(seq 60); do
    state=$(podman exec "$container" systemctl is-system-running 2>/dev/null || true)
    case $state in running | degraded) break ;; esac
    sleep 1
done
[ "$state" = running ] || { echo "install: systemd is $state" >&2 && exit 1; }
case $package in *.rpm) podman exec "$container" bash /srv/download/managed-server.sh ;; esac

podman exec "$container" bash /srv/download/commands.sh 2>&1 | tee "$work/transcript" ||
    { podman exec "$container" journalctl --no-pager --unit cloakroom --lines 50 || true; exit 1; }

grep -q '"number":"XXXXXXXXXXXX4242"' "$work/transcript" || { echo "install: no masked token in the output" >&2 && exit 1; }
if grep -q 4242424242424242 "$work/transcript"; then echo "install: the output contains a card number" >&2 && exit 1; fi
if [[ $package = *.deb ]]; then
    installed=$(podman exec "$container" dpkg-query --show --showformat '${Version}' cloakroom)
    [ "$installed" = "$newer" ] || { echo "install: $installed is installed after the upgrade" >&2 && exit 1; }
    grep -q 'the node still runs the previous version' "$work/transcript" ||
        { echo "install: the upgrade does not name the next step" >&2 && exit 1; }
fi
mode=$(podman exec "$container" stat --format '%U %a' /run/cloakroom)
[ "$mode" = "cloakroom 700" ] || { echo "install: /run/cloakroom is of $mode" >&2 && exit 1; }
if [[ $package = *.rpm ]]; then
    connections=$(podman exec "$container" runuser -u postgres -- psql -Atc "select distinct usename || ' ' || ssl
        from pg_stat_activity join pg_stat_ssl using (pid) where usename like 'cloakroom%'")
    [ "$connections" = "cloakroom true" ] || { echo "install: the node connects as: $connections" >&2 && exit 1; }
fi

echo
echo "install: hardening of the unit"
podman exec "$container" systemd-analyze --no-pager security cloakroom.service | tail -n 1
status=$(podman exec "$container" sh -c 'grep -E "^(Uid|VmLck|CapEff|NoNewPrivs|Seccomp):" "/proc/$(pgrep -x cloakroom)/status"')
echo "$status"
for expected in 'CapEff:.0000000000000000' 'NoNewPrivs:.1' 'Seccomp:.2'; do
    grep -q "^$expected$" <<<"$status" || { echo "install: the node lacks $expected" >&2 && exit 1; }
done
echo "install: removing the package stops the node and preserves the root key"
case $package in
    *.deb) podman exec "$container" apt-get purge -y -qq cloakroom >/dev/null 2>&1 ;;
    *.rpm) podman exec "$container" rpm --erase --nodeps cloakroom ;;
esac
if podman exec "$container" pgrep -x cloakroom; then echo "install: the node still runs" >&2 && exit 1; fi
podman exec "$container" test -s /etc/cloakroom/secrets/root.key
durations_of "$work/transcript" "Install the package" "Check the deployment"
