#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the Debian packages, checks them with lintian, and uses them: in a fresh
# root of Debian they are installed, serve, are upgraded under a running server, and
# purged; and a server runs read-only in a minimal root. Run by name only, as it
# compiles everything without tests: about 20 minutes of CPU. Needs a Debian mirror.
#
# usage: deploy/package_test.sh [DIRECTORY]
#   DIRECTORY   contains the packages; by default they are built into
#               build/packages
#
# deploy/bootstrap.sh package installs the required programs.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\npackage_test: %s\n' "$*"; }
die() {
  printf 'package_test: %s\n' "$*" >&2
  exit 1
}
for program in dpkg-buildpackage dh lintian mmdebstrap bwrap; do
  command -v "$program" >/dev/null || die "no $program; deploy/bootstrap.sh package installs it"
done

work=$(mktemp -d)
server_pid=
clean_up() {
  [[ -z "$server_pid" ]] || kill "$server_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

# Only files that git tracks get into a package.
build_packages() {
  local tree=$packages/quire
  rm -rf "$packages"
  mkdir -p "$tree"
  git ls-files -z | xargs -0 cp --parents -t "$tree"
  (cd "$tree" && DEB_BUILD_OPTIONS="parallel=${JOBS:-$(nproc)}" dpkg-buildpackage -b -us -uc)
  rm -rf "$tree"
}

packages=$PWD/build/packages
if (($#)); then
  packages=$(cd "$1" && pwd)
else
  say "building, into $packages"
  build_packages
fi
compgen -G "$packages/*.deb" >/dev/null || die "no packages in $packages"

[[ -n "$(compgen -G "$packages/quired-dbgsym_*.deb")" ]] || die "there are no debug symbols of quired"
dpkg-deb -c "$(compgen -G "$packages/quired_*.deb")" | grep 'examples/docs.toml' >/dev/null ||
  die "quired has no example of a configuration"

say "lintian"
# No Debian bug to close.
lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
  "$packages"/*.changes

# The same with an older version, to upgrade from.
mkdir -p "$work/debs/old" "$work/debs/new"
cp "$packages"/*.deb "$work/debs/new"
version=$(dpkg-deb -f "$(compgen -G "$packages/quired_*.deb")" Version)
rm -f "$work"/debs/new/*-dbgsym_*.deb
for deb in "$work"/debs/new/*.deb; do
  dpkg-deb -R "$deb" "$work/deb"
  sed -i "s/\\b$version\\b/$version~before/" "$work/deb/DEBIAN/control"
  dpkg-deb -b "$work/deb" "$work/debs/old" >/dev/null
  rm -rf "$work/deb"
done

say "installing, serving, upgrading, purging in a fresh root"
# shellcheck disable=SC2016  # mmdebstrap's own $1.
mmdebstrap --variant=minbase --quiet --customize-hook="copy-in '$work/debs' /" \
  --customize-hook="copy-in deploy/packages/package_life.sh /" \
  --customize-hook='chroot "$1" bash /package_life.sh' bookworm /dev/null

say "serving from a root that is read-only"
root=$work/root
deploy/packages/quire_root.sh make "$root" "$packages"/quired_*.deb "$packages"/quire_*.deb
mkdir -p "$work/archives" "$work/documents"
seq 1 100000 >"$work/documents/numbers"
"$root/usr/bin/quired" build -q -o "$work/archives/docs.quire" "$work/documents"
chmod -R go+rX "$work"
deploy/packages/quire_root.sh run "$root" "$work/archives" serve /srv/quire/docs.quire \
  --listen 127.0.0.1:0 2>"$work/log" &
server_pid=$!
for ((i = 0; i < 600; ++i)); do
  address=$(sed -n 's/.*listening on //p' "$work/log")
  [[ -z "$address" ]] || break
  kill -0 "$server_pid" 2>/dev/null || die "quired ended: $(cat "$work/log")"
  sleep 0.1
done
"$root/usr/bin/quire" --server "$address" get docs numbers | cmp - "$work/documents/numbers"
kill -TERM "$server_pid"
wait "$server_pid" || die "the server in the root did not drain: $(cat "$work/log")"
server_pid=

say "all passed"
