#!/usr/bin/env bash
# Builds the OCI image of `cloakroom dev`, which contains PostgreSQL: build-dev-image.sh BINARY VERSION OUT.
# Writes an archive and the image's digest.
set -euo pipefail

binary=$(realpath "$1") version=$2
mkdir -p "$3"
out=$(realpath "$3")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
: "${SOURCE_DATE_EPOCH:?set it to the time of the commit}"
export SOURCE_DATE_EPOCH
arch=$("$here/architecture.sh" "$binary")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/context"
root=$work/context/root
# Only extracted: no script of a package runs. Scanners read the versions of the packages from status.d.
# shellcheck disable=SC2016 # The hook expands its own variables.
mmdebstrap --quiet --variant=extract --include=postgresql-15,ca-certificates,tzdata,dash --architectures="$arch" \
    --extract-hook='mkdir -p "$1/var/lib/dpkg/status.d"
        for deb in "$1"/var/cache/apt/archives/*.deb; do
            dpkg-deb --field "$deb" >"$1/var/lib/dpkg/status.d/$(dpkg-deb --field "$deb" Package)"
        done' \
    bookworm "$root"
# initdb runs commands with a shell. What neither it, server nor node uses is deleted; queries need no compiler.
find "$root" -name 'libLLVM*' -delete
rm -rf "$root"/usr/lib/*/perl "$root"/usr/lib/*/perl-base "$root"/usr/share/{perl,perl5,locale,i18n,man,info,lintian} \
    "$root"/usr/lib/postgresql/15/lib/{llvmjit*,bitcode} "$root"/var/{cache,lib/apt,log} "${root:?}/dev" "${root:?}/boot"
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root" -perm /6000 -type f -exec chmod a-s {} +
LC_ALL=C find "$root/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat >"$root/etc/ssl/certs/ca-certificates.crt"
[ -e "$root/bin" ] || ln -s usr/bin "$root/bin"
ln -sf dash "$root/bin/sh"
"$here/strip.sh" "$binary" "$root/usr/bin/cloakroom"
install -d -m 0700 "$root/data"
install -d -m 1777 "$root/tmp"
echo 'cloakroom:x:65532:65532:Cloakroom:/data:/sbin/nologin' >"$root/etc/passwd"
echo 'cloakroom:x:65532:' >"$root/etc/group"
find "$root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

cp "$here/image/Containerfile.dev" "$work/context/Containerfile"
image=localhost/cloakroom-dev:$version
[ "$arch" = amd64 ] || image+=-$arch
buildah build --quiet --isolation chroot --arch "$arch" --timestamp "$SOURCE_DATE_EPOCH" --tag "$image" \
    --label org.opencontainers.image.title=cloakroom-dev --label "org.opencontainers.image.version=$version" \
    --label org.opencontainers.image.licenses=Apache-2.0 "$work/context" >/dev/null
"$here/archive-image.sh" "$image" "$out/cloakroom-$version-linux-$arch-dev-image"
