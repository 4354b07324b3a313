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

arch=$(./architecture.sh "$binary")
glibc=$(LC_ALL=C readelf --wide --version-info "$binary" | grep -o 'GLIBC_[0-9.]*' | sort --version-sort --unique | tail -n 1)
newest=$(printf '%s\nGLIBC_2.34\n' "$glibc" | sort --version-sort | tail -n 1)
[ "$newest" = GLIBC_2.34 ] || { echo "the binary needs $glibc; the packages promise 2.34 (nfpm.yaml)" >&2 && exit 1; }

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
# A binary of another architecture runs in an emulator.
run=()
case $arch-$(dpkg --print-architecture) in
    arm64-amd64) run=(qemu-aarch64-static -L /usr/aarch64-linux-gnu) ;;
    amd64-arm64) run=(qemu-x86_64-static -L /usr/x86_64-linux-gnu) ;;
esac
./strip.sh "$binary" "$stage/cloakroom"
"${run[@]}" "$binary" man-pages "$stage/man"
gzip -9 --no-name "$stage"/man/*.1
mkdir "$stage/completions"
"${run[@]}" "$binary" completions bash >"$stage/completions/cloakroom"
"${run[@]}" "$binary" completions zsh >"$stage/completions/_cloakroom"
"${run[@]}" "$binary" completions fish >"$stage/completions/cloakroom.fish"
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
