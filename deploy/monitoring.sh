#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Starts a server, a gateway, a small load, Prometheus and Alertmanager on this machine, as a
# demonstration. Needs a build (build/release, or QUIRE_BINARY_DIR) and the Debian packages
# prometheus and prometheus-alertmanager; deploy/bootstrap.sh installs them.
#
# usage: deploy/monitoring.sh [ARCHIVE [MINUTES]]
#   ARCHIVE  archive to serve; by default one is built from /usr/share/doc
#   MINUTES  end after this time (1 to 1440; default 10); Ctrl-C ends it earlier
# Listens on 127.0.0.1, on ports 7420 (gRPC), 7421 (metrics), 7480 (HTTP), 8081 (its
# metrics), 9090 (Prometheus), 9093 (Alertmanager). Removes all files that it writes.
set -euo pipefail

die() {
  printf 'monitoring: %s\n' "$@" >&2
  exit 1
}

repository=$(cd "$(dirname "$0")/.." && pwd)
if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then
  sed -n '4,13s/^# \{0,1\}//p' "$0"
  exit 0
fi
(($# <= 2)) || die "usage: deploy/monitoring.sh [ARCHIVE [MINUTES]]"
minutes=${2:-10}
if ! [[ "$minutes" =~ ^[1-9][0-9]{0,3}$ ]] || ((minutes > 1440)); then
  die "MINUTES must be 1 to 1440, got \"$minutes\""
fi
bin=${QUIRE_BINARY_DIR:-$repository/build/release}/bin
for program in "$bin/quired" "$bin/quire-http" "$bin/quire-loadtest"; do
  [[ -x "$program" ]] || die "$program does not exist; build it:" \
    "  cmake --preset release && ninja -C build/release bin/quired bin/quire-http bin/quire-loadtest"
done
for program in prometheus prometheus-alertmanager; do
  command -v "$program" >/dev/null || die "$program is not installed; deploy/bootstrap.sh installs it"
done
for port in 7420 7421 7480 8081 9090 9093; do
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    die "port $port of 127.0.0.1 is in use; stop the program that listens there"
  fi
done

scratch=$(mktemp -d)
pids=()
clean_up() {
  trap '' INT TERM
  if ((${#pids[@]})); then
    kill -TERM "${pids[@]}" 2>/dev/null || true
    wait "${pids[@]}" 2>/dev/null || true
  fi
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# start NAME COMMAND...: its output goes to a file.
start() {
  local name=$1
  shift
  : >"$scratch/$name.log"
  "$@" >>"$scratch/$name.log" 2>&1 </dev/null &
  pids+=($!)
}
# ready NAME PATTERN: waits until its output matches.
ready() {
  until grep -q "$2" "$scratch/$1.log"; do
    if ! kill -0 "${pids[-1]}" 2>/dev/null; then
      cat "$scratch/$1.log" >&2
      die "$1 did not start; its messages are above"
    fi
    sleep 0.2
  done
}

archive=${1:-}
if [[ -z "$archive" ]]; then
  archive=$scratch/docs.quire
  echo "building an archive of /usr/share/doc"
  "$bin/quired" build --quiet --dictionary-size 4MiB -o "$archive" /usr/share/doc </dev/null
fi

start quired "$bin/quired" serve "served=$archive" --listen 127.0.0.1:7420 --metrics 127.0.0.1:7421
ready quired "listening on"
server=${pids[0]}
start quire-http "$bin/quire-http" --server 127.0.0.1:7420 --listen 127.0.0.1:7480 --admin 127.0.0.1:8081
ready quire-http "listening on"
configuration=$repository/deploy/prometheus
start alertmanager prometheus-alertmanager --config.file="$configuration/alertmanager.yml" \
  --cluster.listen-address= --storage.path="$scratch/alerts" --web.listen-address=127.0.0.1:9093
ready alertmanager "Listening on"
start prometheus prometheus --config.file="$configuration/prometheus.yml" \
  --storage.tsdb.path="$scratch/series" --web.listen-address=127.0.0.1:9090
ready prometheus "ready to receive web requests"
start loadtest "$bin/quire-loadtest" served --server 127.0.0.1:7420 --what documents --rate 100 \
  --duration "${minutes}m"

cat <<TEXT
100 documents a second are read from $archive. Look at
  http://127.0.0.1:9090/alerts        alerts and their state
  http://127.0.0.1:9090/graph?g0.expr=sum%20by%20(method%2Ccode)%20(rate(quire_calls_total%5B1m%5D))%20%3E%200&g0.tab=0&g0.range_input=10m
                                      calls by method and code
  http://127.0.0.1:9093               alerts that were sent
  http://127.0.0.1:7421/metrics       what the server says
Grafana can import deploy/prometheus/dashboard.json. To see an alert, stop the server:
  kill $server
All this ends in $minutes minutes, or with Ctrl-C.
TEXT
sleep "${minutes}m" &
wait $! || true
