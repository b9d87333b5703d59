#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files below a directory as objects of a store that is some milliseconds away, which counts.

usage: ranged_store.py DIRECTORY DELAY_MS

Answers HEAD and GET, with ranges, of http://ADDRESS/PATH and thus of S3 with addresses by path; who
asks is not checked. Each answer leaves after the delay, the first of a connection after twice the
delay. GET /.counts returns JSON: requests that were answered with bytes, and these bytes. Prints
its URL, and serves until its standard input ends. delayed_store.cc is faster, and knows only GET.
"""
import collections
import http.server
import json
import pathlib
import re
import sys
import threading
import time

COUNTS = collections.Counter()
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    is_first = True

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def do_HEAD(self):  # pylint: disable=invalid-name
        self.do_GET()

    def do_GET(self):  # pylint: disable=invalid-name
        path = self.path.partition("?")[0]
        if path == "/.counts":
            with LOCK:
                self.answer(200, json.dumps(COUNTS).encode())
            return
        time.sleep(DELAY_S * (2 if self.is_first else 1))
        self.is_first = False
        file = ROOT / path.lstrip("/")
        if not file.is_file() or ROOT not in file.resolve().parents:
            self.answer(404, b"")
            return
        size = file.stat().st_size
        tag = f'"{file.stat().st_mtime_ns:x}"'
        if self.headers.get("If-Match", tag) != tag:
            self.answer(412, b"")
            return
        first, last, status, fields = 0, size - 1, 200, {"ETag": tag, "Accept-Ranges": "bytes",
            "Last-Modified": self.date_time_string(file.stat().st_mtime)}
        if match := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(match[1]), min(last, int(match[2] or last))
            if first > last:
                self.answer(416, b"")
                return
            status, fields["Content-Range"] = 206, f"bytes {first}-{last}/{size}"
        with file.open("rb") as opened:
            opened.seek(first)
            data = opened.read(last + 1 - first)
        with LOCK:
            COUNTS["gets"] += self.command == "GET"
            COUNTS["heads"] += self.command == "HEAD"
            COUNTS["bytes"] += len(data) * (self.command == "GET")
        self.answer(status, data, fields)

    def answer(self, status, data, fields=()):
        self.send_response(status)
        for name, value in dict(fields).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)
        self.wfile.flush()


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, request, client_address):
        # A client that has what it wants.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ROOT, DELAY_S = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2]) / 1000
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()
