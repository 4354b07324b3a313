#!/usr/bin/env bash
# Builds the .deb, the .rpm and the archive from a binary: build-packages.sh BINARY VERSION OUT.
# Output depends only on the binary, the version, the files of this folder and SOURCE_DATE_EPOCH.
set -euo pipefail

binary=$(realpath "$1") version=$2
mkdir -p "$3"
out=$(realpath "$3")
cd "$(dirname "${BASH_SOURCE[0]}")"
: "${SOURCE_DATE_EPOCH:?set it to the time of the commit}"
export SOURCE_DATE_EPOCH

case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64) arch=arm64 ;;
    *) echo "no packages for $(uname -m)" >&2 && exit 1 ;;
esac

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
strip --strip-all -o "$stage/cloakroom" "$binary"
"$binary" man-pages "$stage/man"
gzip -9 --no-name "$stage"/man/*.1
mkdir "$stage/completions"
"$binary" completions bash >"$stage/completions/cloakroom"
"$binary" completions zsh >"$stage/completions/_cloakroom"
"$binary" completions fish >"$stage/completions/cloakroom.fish"
date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
cat >"$stage/changelog.yaml" <<EOF
- semver: $version
  date: $date
  packager: Cloakroom maintainers <maintainers@cloakroom.example>
  deb: { urgency: medium, distributions: [stable] }
  changes:
    - note: "Release $version; CHANGELOG.md in the archive lists the changes."
EOF

export CLOAKROOM_ARCH=$arch CLOAKROOM_VERSION=$version CLOAKROOM_STAGE=$stage CLOAKROOM_MTIME=$date
# nfpm replaces variables in some fields only.
envsubst <nfpm.yaml >"$stage/nfpm.yaml"
for packager in deb rpm; do
    nfpm package --config "$stage/nfpm.yaml" --packager "$packager" --target "$out/" >/dev/null
done

name=cloakroom-$version-linux-$arch
mkdir "$stage/$name"
cp -r "$stage/man" "$stage/completions" "$stage/$name/"
cp "$stage/cloakroom" ../LICENSE ../README.md ../CHANGELOG.md ../SECURITY.md files/cloakroom*.service files/cloakroom*.timer files/cloakroom.toml "$stage/$name/"
chmod -R u=rwX,go=rX "$stage/$name"
chmod 0755 "$stage/$name/cloakroom"
tar --create --directory "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --format=gnu "$name" | gzip --no-name >"$out/$name.tar.gz"
