#!/usr/bin/env bash
# Builds the OCI image of a binary: build-image.sh BINARY VERSION OUT. Writes an archive and the image's digest.
set -euo pipefail

binary=$(realpath "$1") version=$2
mkdir -p "$3"
out=$(realpath "$3")
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
: "${SOURCE_DATE_EPOCH:?set it to the time of the commit}"
# Debian packages whose files the image contains. Scanners read their versions from status.d.
# gcc-12-base has the copyright file of libgcc-s1.
packages=(libc6 gcc-12-base libgcc-s1 ca-certificates)
arch=$("$here/architecture.sh" "$binary")
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
[ "$suite" = bookworm ] || { echo "the image has the libraries of Debian 12 (bookworm), not of $suite: build it there" >&2 && exit 1; }
libraries='ld-linux-*.so.* libc.so.* libm.so.* libresolv.so.* libgcc_s.so.*'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/debs" "$work/files" "$work/context/root"
root=$work/context/root
# Package lists of today for this architecture, apart from those of this machine, which may be old.
mkdir -p "$work/apt/lists/partial" "$work/apt/cache"
apt=(apt-get -qq -o APT::Sandbox::User=root -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
    -o "Dir::State::lists=$work/apt/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$work/apt/cache")
"${apt[@]}" update
# Downloaded, because the files of an installed package may have been changed.
(cd "$work/debs" && "${apt[@]}" download "${packages[@]}")
mkdir -p "$root"/{usr/bin,usr/lib,etc/ssl/certs,etc/cloakroom,tmp,var/lib/dpkg/status.d,usr/share/doc}
for deb in "$work"/debs/*.deb; do
    dpkg-deb --extract "$deb" "$work/files"
done
for deb in "$work"/debs/*.deb; do
    name=$(dpkg-deb --field "$deb" Package)
    dpkg-deb --field "$deb" >"$root/var/lib/dpkg/status.d/$name"
    install -D --mode 0644 "$work/files/usr/share/doc/$name/copyright" "$root/usr/share/doc/$name/copyright"
done
for pattern in $libraries; do
    find "$work/files" -type f -name "$pattern" -exec cp --no-preserve=all --target-directory "$root/usr/lib" {} +
done
chmod 0755 "$root"/usr/lib/*
ln -s usr/lib "$root/lib"
ln -s usr/lib "$root/lib64"
LC_ALL=C find "$work/files/usr/share/ca-certificates" -name '*.crt' | LC_ALL=C sort | xargs cat >"$root/etc/ssl/certs/ca-certificates.crt"
"$here/strip.sh" "$binary" "$root/usr/bin/cloakroom"
echo 'cloakroom:x:65532:65532:Cloakroom:/nonexistent:/sbin/nologin' >"$root/etc/passwd"
echo 'cloakroom:x:65532:' >"$root/etc/group"
find "$root" -exec touch --no-dereference --date "@$SOURCE_DATE_EPOCH" {} +

cp "$here/image/Containerfile" "$work/context/"
image=localhost/cloakroom:$version
[ "$arch" = amd64 ] || image+=-$arch
buildah build --quiet --isolation chroot --arch "$arch" --timestamp "$SOURCE_DATE_EPOCH" --tag "$image" \
    --label org.opencontainers.image.title=cloakroom --label "org.opencontainers.image.version=$version" \
    --label org.opencontainers.image.licenses=Apache-2.0 "$work/context" >/dev/null
"$here/archive-image.sh" "$image" "$out/cloakroom-$version-linux-$arch-image"
