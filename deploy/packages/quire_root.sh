#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The root file system of the Containerfile without a container engine, and a server
# in it: as an unprivileged user, on a read-only root.
#
# usage: deploy/packages/quire_root.sh make ROOT DEB...
#          Debian and these packages (quired, quire) in the directory ROOT, by
#          mmdebstrap
#        deploy/packages/quire_root.sh run ROOT ARCHIVES [ARGUMENT...]
#          `quired ARGUMENT...` in ROOT, by bubblewrap; the directory ARCHIVES is
#          /srv/quire there, read-only. The network is the host's.
#
# deploy/bootstrap.sh package installs both programs.
set -euo pipefail

usage() {
  sed -n 's/^# \{0,1\}//p' "$0" | sed -n '/^usage/,/^ *\/srv/p' >&2
  exit 2
}

make_root() {
  (($# >= 2)) || usage
  local root=$1 deb debs=()
  shift
  [[ ! -e "$root" ]] || {
    echo "quire_root: $root exists; give a new directory" >&2
    exit 1
  }
  for deb in "$@"; do
    debs+=("--include=$(realpath "$deb")")
  done
  # shellcheck disable=SC2016  # mmdebstrap's own $1.
  mmdebstrap --variant=minbase --quiet \
    --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount "${debs[@]}" \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook='mkdir -p "$1/srv/quire"' bookworm "$root"
}

run_root() {
  (($# >= 2)) || usage
  local root=$1 archives=$2 info status unprivileged=()
  shift 2
  # bubblewrap needs no privileges, so it gets none.
  if ((EUID == 0)); then
    unprivileged=(setpriv --reuid 7420 --regid 7420 --clear-groups --no-new-privs)
  fi
  info=$(mktemp)
  "${unprivileged[@]}" bwrap --ro-bind "$root" / --ro-bind "$archives" /srv/quire --proc /proc \
    --dev /dev --tmpfs /tmp --tmpfs /run --unshare-all --share-net --uid 7420 --gid 7420 \
    --cap-drop ALL --new-session --die-with-parent --clearenv --setenv PATH /usr/bin --chdir / \
    --as-pid-1 --info-fd 3 /usr/bin/quired "$@" 3>"$info" &
  local bwrap=$!
  # bubblewrap itself would end at once, and quired could not drain.
  trap 'kill -TERM "$(sed -n "s/.*\"child-pid\": *\([0-9]*\).*/\1/p" "$info")"' TERM INT
  while :; do
    status=0
    wait "$bwrap" || status=$?
    kill -0 "$bwrap" 2>/dev/null || break
  done
  rm -f "$info"
  return "$status"
}

case "${1:-}" in
  make) make_root "${@:2}" ;;
  run) run_root "${@:2}" ;;
  *) usage ;;
esac
