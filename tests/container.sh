#!/usr/bin/env bash
# Build the image of Containerfile and test it as documented there: the demo, then files in a folder of the user.
#   bash tests/container.sh
# PROBOX_ENGINE selects docker, podman or buildah (default: the first that works), PROBOX_BASE the base image.
set -euo pipefail
cd "$(dirname "$0")/.."
engine=${PROBOX_ENGINE:-}
for one in docker podman buildah; do
  [ -n "$engine" ] || ! "$one" info >/dev/null 2>&1 || engine=$one
done
[ -n "$engine" ] || { echo "docker, podman and buildah are unavailable" >&2; exit 1; }
image=localhost/probox-test:$$
work=$(mktemp -d)
trap 'rm -rf "$work"; "$engine" rmi "$image" >/dev/null 2>&1 || true' EXIT
"$engine" build ${PROBOX_BASE:+--build-arg "BASE=$PROBOX_BASE"} -f Containerfile -t "$image" .

probox() {
  local owner container
  owner="$(id -u):$(id -g)"
  if [ "$engine" = buildah ]; then # buildah runs containers, and ignores the entry point
    container=$(buildah from "$image")
    buildah run --user "$owner" -v "$work:/work" "$container" -- probox "$@" && buildah rm "$container" >/dev/null
  else
    "$engine" run --rm --user "$owner" -v "$work:/work" "$image" "$@"
  fi
}

probox demo | grep '^probabilistic .* 57\.57'
probox demo --save demo >/dev/null
[ -f "$work/demo/truth.json" ] || { echo "the image wrote no demo/truth.json to the folder" >&2; exit 1; }
probox evaluate demo/truth.json demo/probabilistic.json --out results | grep ' 57\.57 '
probox plot results --out plots >/dev/null 2>&1
[ -n "$(ls "$work"/plots/*.png)" ]
echo "the image built by $engine runs probox"
