#!/usr/bin/env bash
# Check files before a release: bash .github/scripts/check_release.sh v1.2.3 dist
# The tag must match src/probox/version.py, and the wheels of all platforms must exist.
set -euo pipefail
tag=$1
dist=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."
version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' src/probox/version.py)
[ -n "$version" ] || { echo "src/probox/version.py has no version" >&2; exit 1; }
[ "$tag" = "v$version" ] || { echo "the tag is $tag, but the version is $version" >&2; exit 1; }
wrong=0
for file in "$dist"/*; do
  case ${file##*/} in
    "probox-$version"-*.whl | "probox-$version.tar.gz") ;;
    *) echo "not of version $version: ${file##*/}" >&2; wrong=1 ;;
  esac
done
for python in cp310-cp310 cp311-cp311 cp312-abi3; do
  for platform in manylinux*_x86_64 manylinux*_aarch64 musllinux*_x86_64 musllinux*_aarch64 macosx*_arm64 macosx*_x86_64 \
    win_amd64; do
    compgen -G "$dist/probox-$version-$python-$platform.whl" >/dev/null \
      || { echo "missing: $python for $platform" >&2; wrong=1; }
  done
done
[ -f "$dist/probox-$version.tar.gz" ] || { echo "missing: sdist" >&2; wrong=1; }
exit $wrong
