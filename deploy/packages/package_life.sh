#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Run by package_test.sh in a fresh Debian root that has the packages in /debs/old
# and /debs/new: installs, serves, upgrades under a running server, removes, purges.
set -euo pipefail

die() {
  printf 'package_life: %s\n' "$*" >&2
  exit 1
}
step() { printf '\n=== %s\n' "$*"; }
install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends --allow-downgrades \
    -o Dpkg::Use-Pty=0 install "$@" </dev/null
}
version_of() { dpkg-query -W -f='${Version}' "$1"; }

server_pid=
# start_server: like the unit, but without systemd.
start_server() {
  setpriv --reuid quire --regid quire --clear-groups --no-new-privs \
    quired serve --config /etc/quire/docs.toml 2>/tmp/server.log &
  server_pid=$!
  local i
  for ((i = 0; i < 600; ++i)); do
    grep -q 'listening on' /tmp/server.log && return
    kill -0 "$server_pid" 2>/dev/null || die "quired ended: $(cat /tmp/server.log)"
    sleep 0.1
  done
  die "quired does not listen: $(cat /tmp/server.log)"
}
stop_server() {
  kill -TERM "$server_pid"
  wait "$server_pid" || die "quired ended with $?"
  server_pid=
}
trap '[[ -z "$server_pid" ]] || kill "$server_pid"' EXIT

expect_served() {
  local name
  for name in first second; do
    quire get docs "$name" | cmp - "/srv/documents/$name"
  done
  quire scan docs | cmp - <(cat /srv/documents/first /srv/documents/second)
}

step "install"
install_packages /debs/old/*.deb
getent passwd quire >/dev/null || die "there is no user quire"
[[ -d /etc/quire ]] || die "there is no /etc/quire"
for file in /lib/systemd/system/quired@.service /etc/logrotate.d/{quired,quire-http} \
  /usr/share/man/man1/{quired,quire,quire-http,quire-loadtest}.1.gz \
  /usr/share/bash-completion/completions/{quired,quire,quire-http,quire-loadtest}; do
  # Minimal roots omit manual pages.
  [[ -e "$file" || "$file" == */man/* ]] || die "there is no $file"
done

step "serve"
mkdir -p /srv/documents
seq 1 100000 >/srv/documents/first
seq 100000 -1 1 >/srv/documents/second
quired build -q -o /srv/docs.quire /srv/documents
cat >/etc/quire/docs.toml <<'CONFIG'
archive = ["/srv/docs.quire"]
listen = "127.0.0.1:7420"
CONFIG
start_server
expect_served

step "a program that links the library, static and shared"
install_packages cmake g++ make >/dev/null
for shared in OFF ON; do
  cmake -S /usr/share/doc/libquire-dev/examples -B "/tmp/example-$shared" \
    -DEXAMPLE=/usr/share/doc/libquire-dev/examples/example.cc -DBUILD_SHARED_LIBS=$shared >/dev/null
  cmake --build "/tmp/example-$shared" >/dev/null
  [[ "$("/tmp/example-$shared/example" 127.0.0.1:7420)" == *'docs: 2 documents'* ]] ||
    die "the example (shared: $shared) does not work"
done
[[ "$(ldd /tmp/example-ON/example)" == *libquire_client* ]] || die "the example does not link the library"

step "upgrade while it serves"
old_version=$(version_of quired)
install_packages /debs/new/*.deb
[[ "$(version_of quired)" != "$old_version" ]] || die "it is still $old_version"
expect_served
stop_server
[[ -e /etc/quire/docs.toml ]] || die "the upgrade took the configuration away"
start_server
expect_served
[[ "$(/tmp/example-ON/example 127.0.0.1:7420)" == *'docs: 2 documents'* ]] ||
  die "the example does not work after the upgrade"
stop_server

step "remove and purge"
packages=(quired quire quire-http quire-loadtest quire-doc libquire-dev libquire-client0.1)
apt-get -q -y remove "${packages[@]}" </dev/null
[[ -e /etc/quire/docs.toml ]] || die "removing took the configuration away"
[[ ! -e /usr/bin/quired ]] || die "quired is still there"
# A fully removed package is unknown by now, and dpkg only warns.
dpkg --purge "${packages[@]}"
[[ ! -e /etc/quire ]] || die "purging left /etc/quire"
[[ -d /srv/docs.quire ]] || die "purging took an archive away"
left=$(find / -xdev \( -path /proc -o -path /sys -o -path /debs -o -path /tmp -o -path /srv \
  -o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache \) -prune -o \
  \( -name 'quire*' -o -name '_quire*' -o -name 'libquire*' \) -print)
[[ -z "$left" ]] || die "purging left: $left"
printf '\npackage_life: all passed\n'
