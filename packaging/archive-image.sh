#!/usr/bin/env bash
# Writes an image of buildah as OUT.tar, and its digest as OUT.digest: archive-image.sh IMAGE OUT.
# The archive is an OCI layout that also has the manifest.json of `docker save`: Podman, Docker, containerd and skopeo read it, and load it
# under the same name. It has no times but SOURCE_DATE_EPOCH.
set -euo pipefail

image=$1 out=$2
: "${SOURCE_DATE_EPOCH:?set it to the time of the commit}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
layout=$work/layout
buildah push --quiet --digestfile "$work/digest" "$image" "oci:$layout:${image##*/}"
python3 - "$layout" "$image" <<'EOF'
import json, pathlib, sys

layout, image = pathlib.Path(sys.argv[1]), sys.argv[2]
index = json.loads((layout / "index.json").read_text())
[entry] = index["manifests"]
# containerd, and Docker with the image store of containerd, name an image by this annotation.
entry["annotations"]["io.containerd.image.name"] = image
(layout / "index.json").write_text(json.dumps(index))


def blob(digest):
    return "blobs/" + digest.replace(":", "/")


manifest = json.loads((layout / blob(entry["digest"])).read_text())
layers = [blob(layer["digest"]) for layer in manifest["layers"]]
described = [{"Config": blob(manifest["config"]["digest"]), "RepoTags": [image], "Layers": layers}]
(layout / "manifest.json").write_text(json.dumps(described))
EOF
tar --create --directory "$layout" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --mtime="@$SOURCE_DATE_EPOCH" --format=gnu blobs index.json manifest.json oci-layout >"$out.tar"
(cat "$work/digest" && echo) >"$out.digest"
