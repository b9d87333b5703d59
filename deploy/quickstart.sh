#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs all steps on a fresh Debian 12: installs missing packages, builds Quire,
# builds an archive of real documents, serves it, reads it in every way and compares
# each answer with the source.
#
# usage: deploy/quickstart.sh
# Writes only below build/, and always stops its server at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

play=build/quickstart
package=python3.11-doc
bold='' plain=''
if [[ -t 1 ]]; then
  bold=$'\e[1m' plain=$'\e[0m'
fi

step() { printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
say() { printf '%s\n' "$*"; }
die() {
  printf 'quickstart: %s\n' "$@" >&2
  exit 1
}
# Prints a command as typed, then runs it.
run() {
  printf '%s$ %s%s\n' "$bold" "$*" "$plain"
  "$@"
}
# Compares the file of an answer with the expected file.
same() {
  cmp -- "$1" "$2" || die "$1 differs from $2"
  say "  same bytes as the source: $3"
}

server_pid=
stop_server() {
  if [[ -n "$server_pid" ]] && kill -0 "$server_pid" 2>/dev/null; then
    kill -TERM "$server_pid"
    wait "$server_pid" || true
  fi
}
trap stop_server EXIT

build() {
  deploy/bootstrap.sh build
  cmake --preset release >"$play/cmake.log" 2>&1 || {
    cat "$play/cmake.log" >&2
    die "CMake cannot configure the build"
  }
  run cmake --build build/release -j "$(nproc)" --target quired quire
}

# Creates a tree of documents in $play/documents.
fetch_documents() {
  rm -rf "$play/documents" "$play/package"
  mkdir -p "$play/documents" "$play/package"
  say "downloading the Debian package $package: the Python manual as web pages"
  if (cd "$play/package" && apt-get -q download "$package") >"$play/download.log" 2>&1 &&
    dpkg-deb -x "$play"/package/*.deb "$play/package/tree"; then
    cp -r "$play/package/tree/usr/share/doc/python3.11/html/." "$play/documents/"
  else
    say "the download failed (see $play/download.log); using /usr/share/doc and /usr/include instead"
    cp -rL /usr/share/doc /usr/include "$play/documents/" 2>/dev/null || true
  fi
  rm -rf "$play/package"
}

# Creates the reference: the same files, as a tar and concatenated, and their
# offsets.
describe_documents() {
  (cd "$play/documents" && find . -type f -size +0 -printf '%P\0' | LC_ALL=C sort -z) \
    >"$play/names"
  tar -C "$play/documents" --null --no-recursion -T "$play/names" -cf "$play/documents.tar"
  (cd "$play/documents" && xargs -0 cat) <"$play/names" >"$play/documents.raw"
  count=$(tr -cd '\0' <"$play/names" | wc -c)
  size=$(stat -c %s "$play/documents.raw")
  ((count > 100)) || die "only $count documents found below $play/documents"
  say "$count documents, $size bytes"
}

# Prints the name of the document at $1 tenths of the list.
pick() { tr '\0' '\n' <"$play/names" | sed -n "$((count * $1 / 10))p"; }

start_server() {
  printf '%s$ %s%s\n' "$bold" "quired serve docs.quire --listen 127.0.0.1:0 --metrics 127.0.0.1:0 &" "$plain"
  quired serve "$play/docs.quire" --listen 127.0.0.1:0 --metrics 127.0.0.1:0 \
    2>"$play/server.log" &
  server_pid=$!
  # Its last line, once it is ready to answer, has its address.
  local waited=0
  until address=$(sed -n 's/.*listening on \([^ ]*:[0-9]*\).*/\1/p' "$play/server.log") &&
    [[ -n "$address" ]]; do
    if ! kill -0 "$server_pid" 2>/dev/null || ((waited++ > 300)); then
      cat "$play/server.log" >&2
      die "the server did not start"
    fi
    sleep 0.1
  done
  metrics=$(sed -n 's/.*metrics on \(http:[^ ]*\).*/\1/p' "$play/server.log")
  sed 's/^/  /' "$play/server.log"
  export QUIRE_SERVER=$address
}

read_it_back() {
  local first second
  first=$(pick 3) second=$(pick 7)

  run quire archives
  run quire info docs
  say
  printf '%s$ quire ls docs | head -n 3%s\n' "$bold" "$plain"
  quire ls docs >"$play/ls.txt"
  head -n 3 "$play/ls.txt"

  step "One document"
  run quire get docs "$first" -o "$play/one"
  head -n 4 "$play/one" | cut -c 1-100 | sed 's/^/  | /'
  same "$play/one" "$play/documents/$first" "$first"

  step "A byte range, across documents and blocks"
  local offset=$((size / 3)) length=200001
  run quire range docs "$offset" "$length" -o "$play/range"
  dd if="$play/documents.raw" of="$play/range.source" iflag=skip_bytes,count_bytes \
    skip="$offset" count="$length" bs=1M status=none
  same "$play/range" "$play/range.source" "bytes [$offset, +$length)"

  step "A batch"
  tr '\0' '\n' <"$play/names" | shuf -n 100 --random-source="$play/documents.raw" \
    >"$play/batch.ids"
  printf '%s\n' "$second" >>"$play/batch.ids"
  run quire batch docs "$play/batch.ids" -o "$play/batch"
  (cd "$play/documents" && tr '\n' '\0' <"../batch.ids" | xargs -0 cat --) >"$play/batch.source"
  same "$play/batch" "$play/batch.source" "$(wc -l <"$play/batch.ids") documents, in the order asked"

  step "Everything, in order"
  run quire scan docs -o "$play/all"
  same "$play/all" "$play/documents.raw" "sha256 $(sha256sum <"$play/all" | cut -c 1-64)"
}

show_metrics() {
  printf '%s$ curl %s%s\n' "$bold" "$metrics" "$plain"
  /usr/bin/python3 - "$metrics" <<'PYTHON' 2>/dev/null || say "(python3 is missing)"
import sys, urllib.request
lines = urllib.request.urlopen(sys.argv[1], timeout=10).read().decode().splitlines()
shown = ("quire_calls", "quire_sent", "quire_cache", "quire_device", "quire_blocks", "quire_decoded", "quire_archive_memory")
wanted = [l for l in lines if l.startswith(shown) and "_bucket" not in l and not l.endswith(" 0")]
print(*("  " + line for line in wanted), sep="\n")
print(f"  ... and more: {len(lines)} lines in all")
PYTHON
}

mkdir -p "$play"
step "1. What Debian must provide, and the build"
build
PATH=$PWD/build/release/bin:$PATH

step "2. Real documents"
fetch_documents
describe_documents

step "3. An archive of them"
rm -rf "$play/docs.quire"
run quired build -o "$play/docs.quire" --dictionary-size 4MiB "$play/documents.tar"
run quired inspect "$play/docs.quire"

step "4. A server, with its metrics"
start_server

step "5. Reading it back"
read_it_back

step "6. What the server counted"
show_metrics

step "7. Stopping"
run kill -TERM "$server_pid"
status=0
wait "$server_pid" || status=$?
server_pid=
((status == 0)) || die "the server ended with code $status; see $play/server.log"
tail -n 1 "$play/server.log" | sed 's/^/  /'

step "All answers were right"
say "The programs are in build/release/bin, the archive is $play/docs.quire."
say "Try next:"
say "  PATH=\$PWD/build/release/bin:\$PATH"
say "  quired serve $play/docs.quire"
say "  quire --help                            in another terminal"
say "  quired build -o mine.quire DIRECTORY.tar   your own archive, from a tar, zip, WARC or directory"
say "  deploy/test.sh                          the default level of tests"
