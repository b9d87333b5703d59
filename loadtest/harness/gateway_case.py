# SPDX-License-Identifier: Apache-2.0
"""A server with archives and a gateway in front of it, for tests of quire-http."""
import gzip
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tarfile
import tempfile
import types
import unittest
import urllib.parse
import zlib

from live_gateway import LiveGateway
from live_server import LiveServer

# Set by run_tests().
PROGRAMS = types.SimpleNamespace(quired=None, quire_http=None)
LARGE = "large.bin"
HOSTILE = ['<script>alert(1)</script>.html', 'quote".html', "amp&lt;.html", "tab\tand\nline.html",
           "percent%2F.html", "plus+and space.html", "question?a=b#c.html"]


def make_documents():
    """Bytes by id."""
    draw = random.Random(7)
    words = [bytes(draw.choices(b"abcdefghijklmnopq", k=draw.randint(2, 9))) for _ in range(2000)]

    def text(size):
        return b" ".join(draw.choices(words, k=size // 5))[:size]

    documents = {f"site/{number % 3}/page-{number:03}.html": text(draw.randint(1, 60_000))
                 for number in range(60)}
    documents[LARGE] = text(3_000_000)
    documents["empty.txt"] = b""
    for name in HOSTILE:
        documents[name] = text(100)
    documents["site//twice.txt"] = text(50)
    documents["deep//large file#?.bin"] = text(250_000)
    return documents


def build(quired, archive, documents, *options):
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as file:
        for name, data in documents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    path = pathlib.Path(f"{archive}.tar")
    path.write_bytes(tar.getvalue())
    subprocess.run([quired, "build", "--quiet", "-o", archive, "--dictionary-size", "256KiB",
                    *options, path], check=True, capture_output=True)


def warc_record(kind, uri, date, block, content_type, **fields):
    header = {"WARC-Type": kind, "WARC-Record-ID": "<urn:uuid:0>", "WARC-Date": date,
              "Content-Type": content_type, "Content-Length": str(len(block)),
              "WARC-Target-URI": uri, **{n.replace("_", "-"): v for n, v in fields.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in header.items())
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def response(uri, date, body, *fields):
    http = "".join(f"{field}\r\n" for field in ("HTTP/1.1 200 OK", *fields))
    return warc_record("response", uri, date, http.encode() + b"\r\n" + body,
                       "application/http; msgtype=response")


class GatewayCase(unittest.TestCase):
    """One server with two archives, and one gateway."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-http-")))
        cls.documents = make_documents()
        build(PROGRAMS.quired, cls.directory / "docs.quire", cls.documents)
        cls.page = b"<p>page</p><script>alert(1)</script>"
        cls.large_page = b"".join(b"line %d of a large page\n" % n for n in range(200_000))
        cls.plain_page = random.Random(3).randbytes(700_000)
        cls.traversal = b"outside"
        cls.records = [
            response("http://example.org/", "2021-01-01T00:00:00Z", b"<p>first</p>",
                     "Content-Type: text/html"),
            response("http://example.org/", "2022-01-01T00:00:00Z", gzip.compress(cls.page),
                     "Content-Type: text/html; charset=utf-8", "Content-Encoding: gzip"),
            response("http://example.org/large", "2021-01-01T00:00:00Z",
                     zlib.compress(cls.large_page), "Content-Encoding: deflate"),
            response("http://example.org/plain", "2021-01-01T00:00:00Z", cls.plain_page,
                     "Content-Type: video/mp4", f"Content-Length: {len(cls.plain_page)}"),
            response("http://example.org/cut", "2021-01-01T00:00:00Z", b"only so much",
                     "Content-Length: 9999"),
            response("http://example.org/a/../b", "2021-01-01T00:00:00Z", cls.traversal,
                     "Content-Type: text/html\x01"),
            warc_record("metadata", "http://example.org/", "2021-01-01T00:00:00Z", b"a: b",
                        "application/warc-fields"),
            response("http://example.org/cut-page", "2021-01-01T00:00:00Z",
                     gzip.compress(cls.large_page[:5000])[:-40], "Content-Encoding: gzip"),
            response("http://example.org/cut-large", "2021-01-01T00:00:00Z",
                     zlib.compress(cls.large_page)[:-40], "Content-Encoding: deflate"),
            response("http://example.org/damaged", "2021-01-01T00:00:00Z",
                     gzip.compress(b"page")[:10] + bytes([255] * 20), "Content-Encoding: gzip"),
            response("http://example.org/moved", "2021-01-01T00:00:00Z", b"there"),
            warc_record("response", "http://example.org/moved", "2021-02-01T00:00:00Z",
                        b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 99\r\n\r\n",
                        "application/http; msgtype=response"),
            response("http://example.org/moved", "2021-03-01T00:00:00Z", b"",
                     "Content-Length: 5"),
            warc_record("response", "http://example.org/moved-only", "2021-02-01T00:00:00Z",
                        b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 99\r\n\r\n",
                        "application/http; msgtype=response")]
        warc = cls.directory / "crawl.warc.gz"
        warc.write_bytes(b"".join(gzip.compress(record) for record in cls.records))
        subprocess.run([PROGRAMS.quired, "build", "--quiet", "-o", cls.directory / "web.quire",
                        "--dictionary-size", "256KiB", warc], check=True, capture_output=True)
        odd = cls.directory / "odd"
        odd.mkdir()
        (odd / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"coffee")
        subprocess.run([PROGRAMS.quired, "build", "--quiet", "-o", cls.directory / "odd.quire", odd],
                       check=True, capture_output=True)
        cls.server = cls.enterClassContext(LiveServer(
            PROGRAMS.quired, [f"{name}={cls.directory}/{name}.quire" for name in ("docs", "odd", "web")]))
        cls.log = cls.directory / "access.log"
        cls.spool = cls.directory / "spool"
        cls.spool.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            PROGRAMS.quire_http, cls.server.address, "--access-log", cls.log, "--host", "docs.example",
            "--allow-origin", "https://replayweb.page", "--spool-dir", cls.spool))

    def ask(self, target, method="GET", **headers):
        with self.gateway.connect() as connection:
            reply = connection.ask(target, method, **headers)
            self.assertIsNotNone(reply, target)
            return reply

    def got(self, target, status=200, **headers):
        reply = self.ask(target, **headers)
        self.assertEqual(reply.status, status, reply)
        self.assertTrue(reply.is_complete, reply)
        return reply

    def uuid(self, archive="docs"):
        return json.loads(self.got(f"/v1/{archive}").body)["uuid"]

    @staticmethod
    def path(name):
        return f"/v1/docs/doc/{urllib.parse.quote(name, safe='/')}"


def run_tests():
    """Runs the tests of the script that was started with QUIRED QUIRE_HTTP [OPTIONS]."""
    PROGRAMS.quired, PROGRAMS.quire_http = map(pathlib.Path, sys.argv[1:3])
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])
