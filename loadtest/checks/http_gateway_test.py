#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http in front of a real server: documents, ranges, lists, pages, and clients
that mean harm.

usage: http_gateway_test.py QUIRED QUIRE QUIRE_HTTP
"""
import base64
import concurrent.futures
import contextlib
import gzip
import html
import io
import json
import os
import pathlib
import pwd
import random
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import urllib.parse
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_gateway import PATIENCE_S, LiveGateway, RawConnection
from live_server import LiveServer

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
        build(QUIRED, cls.directory / "docs.quire", cls.documents)
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
                        "application/warc-fields")]
        warc = cls.directory / "crawl.warc.gz"
        warc.write_bytes(b"".join(gzip.compress(record) for record in cls.records))
        subprocess.run([QUIRED, "build", "--quiet", "-o", cls.directory / "web.quire",
                        "--dictionary-size", "256KiB", warc], check=True, capture_output=True)
        odd = cls.directory / "odd"
        odd.mkdir()
        (odd / os.fsdecode(b"caf\xe9.txt")).write_bytes(b"coffee")
        subprocess.run([QUIRED, "build", "--quiet", "-o", cls.directory / "odd.quire", odd],
                       check=True, capture_output=True)
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [f"{name}={cls.directory}/{name}.quire" for name in ("docs", "odd", "web")]))
        cls.log = cls.directory / "access.log"
        cls.spool = cls.directory / "spool"
        cls.spool.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            QUIRE_HTTP, cls.server.address, "--access-log", cls.log, "--host", "docs.example",
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


class ReadTest(GatewayCase):
    def test_archives(self):
        listed = json.loads(self.got("/v1/").body)["archives"]
        self.assertEqual([each["name"] for each in listed], ["docs", "odd", "web"])
        docs = json.loads(self.got("/v1/docs").body)
        self.assertEqual(docs, listed[0])
        self.assertEqual(docs["size_bytes"], sum(map(len, self.documents.values())))
        self.assertEqual(docs["document_count"], len(self.documents))

    def test_documents(self):
        with self.gateway.connect() as connection:
            for name, data in self.documents.items():
                reply = connection.ask(self.path(name))
                self.assertEqual(reply.status, 200, name)
                self.assertTrue(reply.body == data, name)
                head = connection.ask(self.path(name), "HEAD")
                self.assertEqual(head.status, 200)
                reply.headers.pop("date")
                head.headers.pop("date")
                self.assertEqual(head.headers, reply.headers)
        self.assertEqual(reply.headers["content-length"], str(len(data)))
        self.assertEqual(reply.headers["accept-ranges"], "bytes")
        self.assertEqual(reply.headers["cache-control"], "no-cache")
        self.assertEqual(reply.headers["x-content-type-options"], "nosniff")
        self.assertEqual(reply.headers["referrer-policy"], "no-referrer")
        self.assertTrue(reply.headers["content-security-policy"].startswith("sandbox; "))
        self.assertNotIn("content-encoding", reply.headers)

    def test_ordinals(self):
        name = list(self.documents)[3]
        self.assertEqual(self.got("/v1/docs/ordinal/3").body, self.documents[name])
        self.assertEqual(self.ask("/v1/docs/ordinal/99999").status, 404)

    def test_missing(self):
        for target in "/v1/docs/doc/none", "/v1/none", "/v1/none/doc/a", "/", "/favicon.ico":
            reply = self.got(target, 404)
            self.assertEqual(reply.headers["cache-control"], "no-store")
            self.assertTrue(reply.headers["content-type"].startswith("text/plain"))

    def test_ranges(self):
        draw = random.Random(11)
        with self.gateway.connect() as connection:
            for number in range(300):
                name = draw.choice([*self.documents, LARGE, LARGE])
                data = self.documents[name]
                first = draw.randrange(len(data) + 10)
                last = first + draw.choice((0, 5, 20_000, 400_000, 10**30))
                header, expected = draw.choice((
                    (f"bytes={first}-{last}", data[first:last + 1]),
                    (f"bytes={first}-", data[first:]),
                    (f"bytes=-{first + 1}", data[-first - 1:])))
                reply = connection.ask(self.path(name), Range=header)
                if not expected:
                    wanted = 200 if not data and header.startswith("bytes=-") else 416
                    self.assertEqual(reply.status, wanted, (number, name, header, reply))
                    if wanted == 416:
                        self.assertEqual(reply.headers["content-range"], f"bytes */{len(data)}")
                    continue
                self.assertEqual(reply.status, 206, (number, name, header, reply))
                self.assertTrue(reply.body == expected, (number, name, header))
                start = len(data) - len(expected) if header.startswith("bytes=-") else first
                self.assertEqual(reply.headers["content-range"],
                                 f"bytes {start}-{start + len(expected) - 1}/{len(data)}")

    def test_other_range_headers(self):
        path, data = self.path(LARGE), self.documents[LARGE]
        for header in "bytes=5-1", "items=0-1", "bytes=a", "bytes=0-1,5-6", f"bytes={10**30}-1":
            self.assertTrue(self.got(path, 200, Range=header).body == data, header)
        self.got(path, 416, Range=f"bytes={10**30}-")
        self.assertEqual(self.ask(path, "HEAD", Range="bytes=0-1").status, 200)

    def test_conditions(self):
        path = self.path("site/0/page-000.html")
        first = self.got(path)
        etag = first.headers["etag"]
        self.assertRegex(etag, r'^"[^"]+"$')
        unchanged = self.got(path, 304, If_None_Match=f'"x", {etag}')
        self.assertEqual(unchanged.headers["etag"], etag)
        self.assertEqual(unchanged.headers["cache-control"], "no-cache")
        self.got(path, 200, If_None_Match='"x"')
        self.got(path, 412, If_Match='"x"')
        self.assertEqual(self.got(path, 206, If_Range=etag, Range="bytes=0-4").body,
                         first.body[:5])
        self.assertEqual(self.got(path, 200, If_Range='"x"', Range="bytes=0-4").body, first.body)
        self.assertEqual(self.got(path, 206, If_Match=etag, Range="bytes=-4").body,
                         first.body[-4:])
        self.assertNotEqual(self.got(self.path("empty.txt")).headers["etag"], etag)

    def test_contents_by_uuid(self):
        uuid = self.uuid()
        name = "site/0/page-000.html"
        reply = self.got(f"/v1/docs@{uuid}/doc/{name}")
        self.assertEqual(reply.body, self.documents[name])
        self.assertEqual(reply.headers["cache-control"], "max-age=604800")
        other = "0" * len(uuid)
        for target in f"/v1/docs@{other}/doc/{name}", f"/v1/docs@{other}", f"/v1/docs@{other}/list":
            self.got(target, 404)

    def test_space(self):
        space = b"".join(self.documents.values())
        reply = self.got("/v1/docs/space")
        self.assertTrue(reply.body == space)
        self.assertEqual(reply.headers["content-type"], "application/octet-stream")
        self.assertEqual(self.got("/v1/docs/space", 206, Range="bytes=1000000-1999999").body,
                         space[1_000_000:2_000_000])
        self.got("/v1/docs/space", 416, Range="bytes=0-1,5-6")
        web = self.got("/v1/web/space")
        self.assertEqual(web.body, b"".join(self.records))
        self.assertEqual(web.headers["content-type"], "application/warc")

    def list(self, query):
        """All entries of all pages."""
        entries, token = [], ""
        for _ in range(1000):
            reply = self.got(f"/v1/docs/list?{query}{token}")
            self.assertEqual(reply.headers["content-type"], "application/jsonl")
            lines = [json.loads(line) for line in reply.body.splitlines()]
            if not lines or "next_token" not in lines[-1]:
                return entries + lines
            token = "&token=" + urllib.parse.quote(lines.pop()["next_token"])
            self.assertTrue(lines)
            entries += lines
        return self.fail("the list does not end")

    def test_lists(self):
        for limit in 1, 7, 100_000:
            entries = self.list(f"limit={limit}")
            self.assertEqual([each["id"] for each in entries],
                             sorted(self.documents, key=str.encode))
        sizes = {each["id"]: each["size_bytes"] for each in entries}
        self.assertEqual(sizes, {name: len(data) for name, data in self.documents.items()})
        self.assertEqual(len(self.list("prefix=site/1/&limit=3")), 20)
        top = self.list("prefix=site/&delimiter=/&limit=2")
        self.assertEqual(top, [{"prefix": "site//"}, {"prefix": "site/0/"}, {"prefix": "site/1/"},
                               {"prefix": "site/2/"}])
        self.got("/v1/docs/list?token=nonsense", 400)

    def test_ids_that_are_not_utf8(self):
        entry = json.loads(self.got("/v1/odd/list").body)
        self.assertEqual(base64.b64decode(entry["id_base64"]), b"caf\xe9.txt")
        self.assertNotIn("id", entry)
        self.assertEqual(self.got("/v1/odd/doc/caf%E9.txt").body, b"coffee")
        page = self.got("/browse/odd/").body.decode()
        link = re.search(r'href="(/v1/odd/doc/[^"]*)"', page)[1]
        self.assertEqual(self.got(link).body, b"coffee")

    def test_browse(self):
        index = self.got("/browse/").body.decode()
        self.assertIn('href="/browse/docs/"', index)
        reply = self.got("/browse/docs/")
        text = reply.body.decode()
        self.assertTrue(reply.headers["content-type"].startswith("text/html"))
        self.assertNotIn("<script", text)
        self.assertIn("default-src 'none'", reply.headers["content-security-policy"])
        # The links lead to all documents, those with hostile names too.
        pages, read = ["/browse/docs/"], []
        for page in pages:
            text = self.got(page).body.decode()
            self.assertNotIn("<script", text)
            links = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', text)]
            pages += [link for link in links if link.startswith("/browse/docs/")
                      and link not in pages]
            read += [self.got(link).body for link in links if link.startswith("/v1/")]
        self.assertIn("/browse/docs/site/0/", pages)
        self.assertTrue(sorted(read) == sorted(self.documents.values()))
        # Browsers would resolve the dots.
        level = self.got("/browse/web/http%3A//example.org/a/").body.decode()
        dots = "/browse/web/?prefix=http%3A%2F%2Fexample.org%2Fa%2F..%2F"
        self.assertIn(f'href="{dots}"', level)
        row = re.search(r'href="(/v1/web@[^"]*)"', self.got(dots).body.decode())
        self.assertEqual(self.got(row[1]).body, self.records[5])

    def test_pages(self):
        reply = self.got("/v1/web/page/http://example.org/")
        self.assertEqual(reply.body, self.page)
        self.assertEqual(reply.headers["content-type"], "text/html; charset=utf-8")
        self.assertTrue(reply.headers["content-security-policy"].startswith("sandbox; "))
        self.got("/v1/web/page/http://example.org/", 304, If_None_Match=reply.headers["etag"])
        self.assertEqual(self.got("/v1/web/page/http://example.org/?at=2021").body,
                         b"<p>first</p>")
        head = self.ask("/v1/web/page/http://example.org/", "HEAD")
        self.assertEqual(head.headers["content-length"], str(len(self.page)))
        self.got("/v1/web/page/http://example.org/cut", 502)
        odd = self.got("/v1/web/page/http://example.org/a/../b")
        self.assertEqual(odd.body, self.traversal)
        self.assertEqual(odd.headers["content-type"], "application/octet-stream")
        self.got("/v1/web/page/http://example.org/none", 404)
        self.assertEqual(self.got("/v1/docs/page/empty.txt").body, b"")

    def test_ranges_of_pages(self):
        draw = random.Random(13)
        # Decoded in memory, decoded to disk, and a part of the record.
        pages = {"/v1/web/page/http://example.org/": self.page,
                 "/v1/web/page/http://example.org/large": self.large_page,
                 "/v1/web/page/http://example.org/plain": self.plain_page,
                 "/v1/docs/page/large.bin": self.documents[LARGE]}
        for path, page in pages.items():
            whole = self.got(path)
            self.assertTrue(whole.body == page, path)
            self.assertEqual(whole.headers["accept-ranges"], "bytes")
            self.assertEqual(whole.headers["content-length"], str(len(page)))
            head = self.ask(path, "HEAD")
            self.assertEqual(head.status, 200)
            whole.headers.pop("date")
            head.headers.pop("date")
            self.assertEqual(head.headers, whole.headers)
            for _ in range(20):
                first = draw.randrange(len(page))
                last = min(first + draw.choice((0, 10, 300_000)), len(page) - 1)
                part = self.got(path, 206, Range=f"bytes={first}-{last}")
                self.assertTrue(part.body == page[first:last + 1], (path, first, last))
                self.assertEqual(part.headers["content-range"],
                                 f"bytes {first}-{last}/{len(page)}")
                self.assertEqual(part.headers["etag"], whole.headers["etag"])
            self.assertEqual(self.got(path, 206, Range="bytes=-7").body, page[-7:])
            self.got(path, 416, Range=f"bytes={len(page)}-")
            self.assertTrue(self.got(path, Range="bytes=0-1,5-6").body == page, path)
            self.got(path, 412, If_Match='"x"')
            self.got(path, 304, If_None_Match=whole.headers["etag"], Range="bytes=0-1")
        self.assertGreaterEqual(self.gateway.metric("quire_http_spool_bytes"),
                                len(self.large_page))
        self.assertEqual(os.listdir(self.spool), [])

    def test_304_names_no_wrong_size(self):
        for path in (self.path(LARGE), "/v1/docs/space", "/v1/web/page/http://example.org/plain"):
            whole = self.ask(path, "HEAD")
            unchanged = self.got(path, 304, If_None_Match=whole.headers["etag"])
            self.assertEqual(unchanged.headers["content-length"], whole.headers["content-length"])
        # The size of a page that must be decoded first is not known.
        path = "/v1/web/page/http://example.org/"
        etag = self.got(path).headers["etag"]
        with self.gateway.connect() as connection:
            unchanged = connection.ask(path, If_None_Match=etag)
            self.assertEqual(unchanged.status, 304)
            self.assertNotIn("content-length", unchanged.headers)
            self.assertNotIn("transfer-encoding", unchanged.headers)
            self.assertTrue(connection.is_closed())
            self.assertEqual(connection.buffer, b"")

    def test_records(self):
        reply = self.got("/v1/web/doc/http://example.org/?at=2021-06")
        self.assertEqual(reply.body, self.records[0])
        self.assertEqual(reply.headers["content-type"], "application/warc")
        self.assertEqual(self.got("/v1/web/doc/http://example.org/?type=metadata").body,
                         self.records[6])
        self.assertEqual(self.got("/v1/web/doc/http://example.org/?occurrence=1").body,
                         self.records[1])
        self.got("/v1/web/doc/http://example.org/?type=conversion", 404)

    def test_readers_that_disappear(self):
        draw = random.Random(17)
        before = self.gateway.metric("quire_http_cut_answers_total")
        for number in range(60):
            connection = self.gateway.connect(receive_buffer=4096)
            path = draw.choice((b"/v1/web/page/http://example.org/large", b"/v1/docs/space",
                                b"/v1/docs/doc/large.bin"))
            connection.send(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path)
            # Before the answer, after its header, or in the middle of it.
            if number % 3:
                self.assertEqual(connection.read_head()[0], 200)
                connection.take(draw.choice((0, 1000, 100_000)))
            # Most are reset, the others are closed.
            if number % 4:
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                             struct.pack("ii", 1, 0))
            connection.socket.close()
        self.assertTrue(self.got("/v1/web/page/http://example.org/large").body == self.large_page)
        self.assertGreater(self.gateway.metric("quire_http_cut_answers_total"), before)
        self.gateway.wait_for("quire_http_requests_in_flight", 1)
        self.gateway.wait_for("quire_http_connections", 1)
        # That of the connection that asks.
        self.assertLess(self.gateway.metric("quire_http_memory_bytes"), 64 << 10)

    def test_many_connections_at_once(self):
        names = [name for name in self.documents if name.startswith("site/")]

        def read(name):
            with self.gateway.connect() as connection:
                return [connection.ask(self.path(name)).body for _ in range(5)]

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            for name, bodies in zip(names, pool.map(read, names)):
                self.assertTrue(all(body == self.documents[name] for body in bodies), name)


class BadInputTest(GatewayCase):
    def raw(self, data):
        """The reply, and whether the connection is closed then."""
        with self.gateway.connect() as connection:
            try:
                connection.send(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return connection.read_reply(), connection

    def statuses(self, data):
        """Statuses of all replies until the connection closes."""
        found = []
        with self.gateway.connect() as connection:
            connection.send(data)
            connection.socket.shutdown(1)
            while (reply := connection.read_reply()) is not None:
                found.append(reply.status)
        return found

    def test_paths_are_never_normalised(self):
        for target in ("/v1/docs/doc/../doc/empty.txt", "/v1/../v1/docs", "//v1/docs",
                       "/v1//docs", "/v1/docs/../docs/space", "/v1/docs/doc//empty.txt",
                       "/v1/docs/doc/./empty.txt", "/v1/docs/doc/empty.txt%00",
                       "/v1/docs%2Fdoc/empty.txt", "/v1/docs/doc/%2e%2e/doc/empty.txt",
                       "/v1/docs%00/space", "/v1/docs/doc/..%2f..%2f..%2fetc%2fpasswd"):
            self.assertEqual(self.ask(target).status, 404, target)
        twice = self.documents["site//twice.txt"]
        for target in "/v1/docs/doc/site//twice.txt", "/v1/docs/doc/site%2F%2Ftwice.txt":
            self.assertEqual(self.got(target).body, twice)
        for target in "/v1/docs/doc/%", "/v1/docs/doc/%zz", "/v1/docs/list?prefix=%f":
            self.assertEqual(self.ask(target).status, 400, target)

    def test_requests_in_one_packet(self):
        names = [name for name in self.documents if name.startswith("site/")][:20]
        with self.gateway.connect() as connection:
            connection.send(b"".join(
                f"GET {self.path(name)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                for name in names))
            for name in names:
                self.assertTrue(connection.read_reply().body == self.documents[name], name)

    def test_many_headers(self):
        headers = {f"X-{number}": "a:b " * 20 for number in range(100)}
        self.got("/v1/docs", Cookie="a=b; c", Accept="", **headers)

    def test_long_ids(self):
        self.got("/v1/docs/doc/" + "a" * 8000, 404)
        reply, _ = self.raw(b"GET /v1/docs/doc/" + b"a" * 65536
                            + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(reply is None or reply.status == 414, reply)
        reply, _ = self.raw(b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 65536
                            + b"\r\n\r\n")
        self.assertTrue(reply is None or reply.status in (413, 431), reply)

    def test_bodies(self):
        inner = b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for headers in (b"Content-Length: %d" % len(inner),
                        b"Content-Length: 0\r\nContent-Length: %d" % len(inner),
                        b"Content-Length: %d\r\nContent-Length: 0" % len(inner),
                        b"Transfer-Encoding: chunked",
                        b"Transfer-Encoding: chunked\r\nContent-Length: 4",
                        b"Transfer-Encoding : chunked", b"transfer-encoding: identity",
                        b"Transfer-Encoding:\r\n chunked", b"X: a\r\n\tb",
                        b"X: a\x00Transfer-Encoding: chunked", b"X: a\x00\r\nY\x00: b",
                        b"Content-Length: -1", b"Content-Length: 0x10", b"Content-Length: 1, 2",
                        b"Content-Length: 18446744073709551616"):
            data = b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n" + inner
            found = self.statuses(data)
            # Nothing that follows is taken for a request.
            self.assertEqual(len(found), 1, (headers, found))
            self.assertIn(found[0], (400, 413), headers)

    def test_numbers(self):
        for target, status in ((f"/v1/docs/ordinal/{2**64}", 404), ("/v1/docs/ordinal/-1", 400),
                               (f"/v1/docs/ordinal/{2**64 - 1}", 404),
                               ("/v1/docs/ordinal/1e3", 400), ("/v1/docs/list?limit=0", 400),
                               (f"/v1/docs/list?limit={2**32}", 400),
                               (f"/v1/docs/doc/a?occurrence={2**64}", 400),
                               ("/v1/docs/doc/a?at=99999", 400)):
            self.assertEqual(self.ask(target).status, status, target)
        for header in f"bytes={2**64}-", f"bytes={2**64 - 1}-{2**64 - 1}", f"bytes={2**63}-":
            self.got(self.path(LARGE), 416, Range=header)

    def test_malformed_requests(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /v1/docs\r\n\r\n",
                     b"GET /v1/docs HTTP/9.9\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs\x00/doc/a HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
                     b"GET /v1/do cs HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\n",
                     bytes(range(256)) * 8):
            found = self.statuses(data)
            self.assertTrue(all(400 <= status < 506 for status in found), (data, found))
            self.assertLessEqual(len(found), 2, data)

    def test_line_ends_do_not_split_answers(self):
        for target in ("/v1/docs/doc/a%0d%0aSet-Cookie:x%0d%0a", "/v1/docs/list?prefix=%0d%0aA:b",
                       "/v1/%0d%0aA:b", "/browse/docs/%0d%0a%0d%0a<script>"):
            reply = self.ask(target)
            self.assertNotIn("set-cookie", reply.headers)
            self.assertNotIn("a", reply.headers)
            self.assertNotIn(b"<script>", reply.body)
        reply = self.ask("/v1/docs/doc/x\ry")
        self.assertIn(reply.status, (400, 404))

    def test_methods_and_hosts(self):
        for method in "POST", "PUT", "DELETE", "TRACE", "PATCH", "get":
            reply = self.ask("/v1/docs", method)
            self.assertEqual(reply.status, 405, method)
            self.assertEqual(reply.headers["allow"], "GET, HEAD, OPTIONS")
        self.got("/v1/docs", 421, Host="evil.example")
        for host in "docs.example", "LOCALHOST:1", "127.0.0.1", "[::1]:7480":
            self.got("/v1/docs", 200, Host=host)

    def test_origins(self):
        reply = self.got("/v1/docs", Origin="https://replayweb.page")
        self.assertEqual(reply.headers["access-control-allow-origin"], "https://replayweb.page")
        self.assertIn("Content-Range", reply.headers["access-control-expose-headers"])
        other = self.got("/v1/docs", Origin="https://evil.example")
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertEqual(other.headers["vary"], "Origin")
        preflight = self.ask("/v1/docs/space", "OPTIONS", Origin="https://replayweb.page",
                             Access_Control_Request_Method="GET",
                             Access_Control_Request_Headers="range")
        self.assertEqual(preflight.status, 204)
        self.assertIn("Range", preflight.headers["access-control-allow-headers"])
        self.assertEqual(preflight.headers["access-control-allow-origin"],
                         "https://replayweb.page")

    def test_the_log_has_a_line_of_json_per_request(self):
        self.got("/v1/docs/doc/logged%22%0a", 404, Authorization="Bearer secret.token")
        end = time.monotonic() + PATIENCE_S
        while b"logged" not in self.log.read_bytes():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        text = self.log.read_text()
        self.assertNotIn("secret", text)
        line = next(json.loads(line) for line in text.splitlines() if "logged" in line)
        self.assertEqual((line["status"], line["address"], line["method"]),
                         (404, "127.0.0.1", "GET"))

    @classmethod
    def tearDownClass(cls):
        # Whatever was sent, it works as before.
        with cls.gateway.connect() as connection:
            reply = connection.ask(cls.path(LARGE))
        assert reply.body == cls.documents[LARGE]
        assert cls.gateway.metric("quire_http_requests_in_flight") <= 1
        super().tearDownClass()


class LimitTest(GatewayCase):
    def start(self, *flags, **options):
        return self.enterContext(LiveGateway(QUIRE_HTTP, self.server.address, *flags, **options))

    def test_slow_headers(self):
        gateway = self.start("--header-timeout", "500ms")
        silent = self.enterContext(gateway.connect())
        drip = self.enterContext(gateway.connect())
        stop = threading.Event()

        def send_slowly():
            for byte in b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000:
                if stop.wait(0.05):
                    return
                try:
                    drip.send(bytes([byte]))
                except OSError:
                    return

        sender = threading.Thread(target=send_slowly)
        sender.start()
        self.assertTrue(silent.is_closed())
        self.assertTrue(drip.is_closed())
        stop.set()
        sender.join()
        gateway.wait_for('quire_http_refused_connections_total{reason="header_timeout"}', 2)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def read(self, gateway, target, **headers):
        with gateway.connect() as connection:
            return connection.ask(target, **headers)

    def test_a_reader_that_takes_nothing(self):
        gateway = self.start("--idle-timeout", "1s")
        with gateway.connect(receive_buffer=4096) as connection:
            connection.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.read_head()
            end = time.monotonic() + PATIENCE_S
            while gateway.metric("quire_http_cut_answers_total") == 0:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
        # The connection of the request for the metrics.
        gateway.wait_for("quire_http_connections", 1)

    def test_connections(self):
        gateway = self.start("--connections", "3", "--connections-per-address", "2")
        first, second = (self.enterContext(gateway.connect()) for _ in range(2))
        self.assertEqual(first.ask("/v1/docs").status, 200)
        self.assertEqual(second.ask("/v1/docs").status, 200)
        with gateway.connect() as third:
            reply = third.read_reply()
            self.assertTrue(reply is None or reply.status == 429, reply)
        self.assertEqual(
            gateway.metric('quire_http_refused_connections_total{reason="address_connections"}'),
            1)
        first.socket.close()
        gateway.wait_for("quire_http_connections", 2)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def test_it_raises_the_limit_of_descriptors(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        gateway = self.start()
        self.assertEqual(resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE),
                         (hard, hard))

    def test_without_descriptors(self):
        gateway = self.start()
        # Those that it has, and few more.
        open_count = len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
        subprocess.run(["prlimit", "--pid", str(gateway.process.pid),
                        f"--nofile={open_count + 5}"], check=True)
        held = [self.enterContext(gateway.connect()) for _ in range(20)]
        before = gateway.cpu_seconds()
        time.sleep(2)
        # It waits, and does not spin.
        self.assertLess(gateway.cpu_seconds() - before, 0.5)
        for connection in held:
            connection.socket.close()
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def test_slow_readers_share_the_memory(self):
        gateway = self.start("--memory", "96MiB")
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(gateway.connect(receive_buffer=4096))
                       for _ in range(500)]
            for reader in readers:
                reader.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            statuses = [reader.read_head()[0] for reader in readers]
            # Each is served or told to come back, and nothing is cut.
            self.assertEqual(set(statuses) - {200, 503}, set())
            self.assertGreater(statuses.count(200), 200)
            for reader, status in zip(readers, statuses):
                if status == 200:
                    self.assertEqual(len(reader.take(20_000)), 20_000)
            self.assertLessEqual(gateway.metric("quire_http_memory_bytes"),
                                 gateway.metric("quire_http_memory_limit_bytes"))
        gateway.wait_for("quire_http_connections", 1)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def test_a_page_larger_than_the_spool(self):
        directory = self.directory / "large"
        directory.mkdir()
        body = b"all alike\n" * 2_000_000
        warc = directory / "large.warc"
        warc.write_bytes(response("http://a/", "2021-01-01T00:00:00Z", gzip.compress(body),
                                  "Content-Encoding: gzip"))
        subprocess.run([QUIRED, "build", "--quiet", "-o", directory / "a.quire", warc],
                       check=True, capture_output=True)
        server = self.enterContext(LiveServer(QUIRED, [f"a={directory}/a.quire"]))
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, server.address, "--spool-size",
                                                "16MiB"))
        reply = self.read(gateway, "/v1/a/page/http://a/")
        self.assertEqual(reply.status, 503)
        self.assertIn(b"--spool-size", reply.body)
        self.assertEqual(gateway.metric("quire_http_spool_bytes"), 0)

    def test_probes(self):
        gateway = self.start()
        port = int(gateway.metrics_url.split(":")[2].split("/")[0])
        with RawConnection(("127.0.0.1", port)) as admin:
            for target, status in ("/healthz", 200), ("/readyz", 200), ("/v1/docs", 404):
                self.assertEqual(admin.ask(target).status, status, target)
        self.assertEqual(self.read(gateway, "/metrics").status, 404)

    def test_a_server_that_is_away(self):
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, "127.0.0.1:1", "--timeout", "1s"))
        reply = self.read(gateway, "/v1/docs/doc/a")
        self.assertIn(reply.status, (503, 504))
        if reply.status == 503:
            self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        port = int(gateway.metrics_url.split(":")[2].split("/")[0])
        with RawConnection(("127.0.0.1", port)) as admin:
            self.assertEqual(admin.ask("/readyz").status, 503)
            self.assertEqual(admin.ask("/healthz").status, 200)

    def test_it_drains(self):
        gateway = LiveGateway(QUIRE_HTTP, self.server.address)
        with gateway:
            reading = self.enterContext(gateway.connect(receive_buffer=4096))
            idle = self.enterContext(gateway.connect())
            self.assertEqual(idle.ask("/v1/docs").status, 200)
            reading.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, headers = reading.read_head()
            gateway.process.send_signal(signal.SIGTERM)
            self.assertTrue(idle.is_closed())
            with self.assertRaises(OSError):
                gateway.connect()
            body = reading.take(int(headers["content-length"]))
            self.assertEqual(status, 200)
            self.assertTrue(body == b"".join(self.documents.values()))

    def test_a_drain_that_takes_too_long(self):
        gateway = LiveGateway(QUIRE_HTTP, self.server.address, "--drain-timeout", "200ms")
        with gateway:
            reading = self.enterContext(gateway.connect(receive_buffer=4096))
            reading.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reading.read_head()

    def test_command_line(self):
        for flags, word in ((["--listen", "0.0.0.0:0"], "--behind-tls"),
                            (["--listen", "nonsense"], "HOST:PORT"),
                            (["--memory", "1MiB"], "--memory"),
                            (["--header-timeout", "0"], "--header-timeout")):
            run = subprocess.run([QUIRE_HTTP, *flags], capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(word, run.stderr)

    def test_unix_socket(self):
        path = self.directory / "http.sock"
        self.start(listen=f"unix:{path}")
        with RawConnection(str(path)) as connection:
            self.assertEqual(connection.ask("/v1/docs").status, 200)


class ReplacedArchiveTest(unittest.TestCase):
    def test_no_answer_mixes_two_archives(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-replaced-")))
        size = 20_000_000
        old, new = b"old " * (size // 4), b"new " * (size // 4)
        archive = directory / "docs.quire"
        build(QUIRED, archive, {"document": old})
        server = self.enterContext(LiveServer(QUIRED, [f"docs={archive}"]))
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, server.address))
        with gateway.connect(receive_buffer=4096) as slow:
            slow.send(b"GET /v1/docs/doc/document HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _, headers = slow.read_head()
            etag = headers["etag"]
            build(QUIRED, archive, {"document": new}, "--force")
            server.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + PATIENCE_S
            while True:
                with gateway.connect() as connection:
                    reply = connection.ask("/v1/docs/doc/document", Range="bytes=0-3")
                if reply.body == b"new ":
                    break
                self.assertEqual(reply.body, b"old ", reply)
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            self.assertNotEqual(reply.headers["etag"], etag)
            body = slow.take(size)
            # Cut, and nothing of the new contents.
            self.assertLess(len(body), size)
            self.assertTrue(body == old[:len(body)])
        with gateway.connect() as connection:
            self.assertTrue(connection.ask("/v1/docs/doc/document").body == new)


class AccessTest(unittest.TestCase):
    """A server that asks for tokens, and a gateway that forwards them."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-http-token-")))
        cls.text = b"text" * 500_000
        build(QUIRED, cls.directory / "docs.quire", {"a": cls.text})
        made = subprocess.run([QUIRED, "token", "new", "reader", "-o", cls.directory / "token"],
                              check=True, capture_output=True, text=True)
        (cls.directory / "access").write_text(made.stdout)
        cls.bearer = f"Bearer {(cls.directory / 'token').read_text().strip()}"
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [f"docs={cls.directory}/docs.quire"], "--access", cls.directory / "access"))
        files = cls.directory / "files"
        files.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            QUIRE_HTTP, cls.server.address, "--files", files))
        with cls.gateway.connect() as connection:
            described = connection.ask("/v1/docs", Authorization=cls.bearer).body
        cls.uuid = json.loads(described)["uuid"]
        (files / ".docs.head").write_bytes(b"head")
        (files / "docs.wacz.pieces.json").write_text(json.dumps(
            {"format": 1, "archive": "docs", "uuid": cls.uuid, "pieces": [
                {"file": ".docs.head", "size_bytes": 4},
                {"space": True, "size_bytes": len(cls.text)}]}))

    def test_tokens_go_with_each_call(self):
        with self.gateway.connect() as connection:
            for _ in range(2):
                refused = connection.ask("/v1/docs/doc/a")
                self.assertEqual(refused.status, 401, refused)
                self.assertEqual(refused.headers["www-authenticate"], "Bearer")
                reply = connection.ask("/v1/docs/doc/a", Authorization=self.bearer)
                self.assertEqual(reply.status, 200)
                self.assertTrue(reply.body == self.text)
                self.assertEqual(reply.headers["cache-control"], "private, no-cache")
            for wrong in "Bearer x.y", "Basic eDp5", "Bearer", "Bearer a b":
                self.assertEqual(connection.ask("/v1/docs", Authorization=wrong).status, 401)

    def test_nothing_is_answered_from_memory_without_a_token(self):
        targets = ("/v1/docs", "/v1/docs/space", "/v1/docs/ordinal/0", "/v1/docs/page/a",
                   "/v1/docs/list", "/browse/docs/", "/files/docs.wacz", "/v1/",
                   f"/v1/docs@{self.uuid}/space", f"/v1/docs@{'0' * 32}/space")
        conditions = ({}, {"Range": "bytes=0-1"}, {"Range": f"bytes={10**9}-"},
                      {"If_None_Match": "*"}, {"If_Match": '"x"'})
        with self.gateway.connect() as connection:
            for target in targets:
                for headers in conditions:
                    for method in "GET", "HEAD":
                        known = connection.ask(target, method, Authorization=self.bearer, **headers)
                        self.assertIn(known.status, (200, 206, 304, 404, 412, 416), target)
                        reply = connection.ask(target, method, **headers)
                        self.assertEqual(reply.status, 401, (target, method, headers, reply))
                        self.assertNotIn(self.uuid, f"{reply.headers} {reply.body}")

    def test_a_gateway_with_a_token_of_its_own(self):
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, self.server.address, "--token-file",
                                                self.directory / "token"))
        with gateway.connect() as connection:
            self.assertEqual(connection.ask("/v1/docs/doc/a", Range="bytes=0-3").body, b"text")
            # It does not add the rights of both.
            self.assertEqual(connection.ask("/v1/docs", Authorization=self.bearer).status, 403)


class DamagedTest(unittest.TestCase):
    def test_damage_is_a_502_or_a_cut(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-damaged-")))
        data = random.Random(23).randbytes(2_000_000)
        build(QUIRED, directory / "docs.quire", {"a": data})
        segment, = (directory / "docs.quire").glob("segment-*")
        stored = bytearray(segment.read_bytes())
        stored[len(stored) // 2] ^= 1
        segment.write_bytes(stored)
        server = self.enterContext(LiveServer(QUIRED, [f"docs={directory}/docs.quire"]))
        log = directory / "access.log"
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, server.address, "--access-log", log))
        with gateway.connect() as connection:
            reply = connection.ask("/v1/docs/doc/a")
            self.assertEqual(reply.status, 200)
            self.assertFalse(reply.is_complete)
            self.assertTrue(reply.body == data[:len(reply.body)])
        end = time.monotonic() + PATIENCE_S
        while not (text := log.read_text()).endswith("\n"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        line = json.loads(text)
        self.assertTrue(line["cut"])
        self.assertIn("is damaged", line["error"])
        statuses = set()
        with gateway.connect() as connection:
            for first in range(0, len(data), 50_000):
                reply = connection.ask("/v1/docs/doc/a", Range=f"bytes={first}-{first + 99}")
                statuses.add(reply.status)
                if reply.status == 206:
                    self.assertEqual(reply.body, data[first:first + 100])
        self.assertEqual(statuses, {206, 502})
        gateway.wait_for("quire_http_requests_in_flight", 1)


class WithdrawnTest(unittest.TestCase):
    def test_withdrawn_documents(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-withdrawn-")))
        large = b"text" * 5_000_000
        build(QUIRED, directory / "docs.quire", {"a": b"one", "b": b"two", "c": large})
        rules = directory / "withdrawn"
        rules.write_text("")
        server = self.enterContext(LiveServer(QUIRED, [f"docs={directory}/docs.quire"],
                                              "--withdrawn", rules))
        gateway = self.enterContext(LiveGateway(QUIRE_HTTP, server.address))

        def ask(target, method="GET", **headers):
            with gateway.connect() as connection:
                return connection.ask(target, method, **headers)

        etag = ask("/v1/docs/doc/a").headers["etag"]
        with gateway.connect(receive_buffer=4096) as slow:
            slow.send(b"GET /v1/docs/doc/c HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(slow.read_head()[0], 200)
            rules.write_text("docs id a block\ndocs id b exclude\ndocs id c block\n")
            server.process.send_signal(signal.SIGHUP)
            end = time.monotonic() + PATIENCE_S
            while ask("/v1/docs/doc/c", Range="bytes=0-0").status == 206:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
            body = slow.take(len(large))
            # Cut, and without zeros in place of the text.
            self.assertLess(len(body), len(large))
            self.assertTrue(body == large[:len(body)])
        for target in "/v1/docs/doc/a", "/v1/docs/ordinal/0", "/v1/docs/page/a":
            for method in "GET", "HEAD":
                self.assertEqual(ask(target, method).status, 451, target)
                self.assertEqual(ask(target, method, If_None_Match=etag).status, 451, target)
            self.assertEqual(ask(target, Range="bytes=0-0").status, 451, target)
        self.assertEqual(ask("/v1/docs/doc/b").status, 404)
        self.assertEqual(ask("/v1/docs/list").body, b"")


class FilesTest(GatewayCase):
    """quire-http --files"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = cls.directory / "files"
        cls.files.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            QUIRE_HTTP, cls.server.address, "--files", cls.files,
            "--allow-origin", "https://replayweb.page"))
        with cls.gateway.connect() as connection:
            cls.web = json.loads(connection.ask("/v1/web").body)
        cls.space = b"".join(cls.records)

    def write(self, name, data):
        path = self.files / name
        path.with_suffix(".new").write_bytes(data)
        path.with_suffix(".new").rename(path)

    def describe(self, name, pieces, **changes):
        self.write(f"{name}.pieces.json", json.dumps(
            {"format": 1, "archive": "web", "uuid": self.web["uuid"], "pieces": pieces,
             **changes}).encode())

    def space_piece(self):
        return {"space": True, "size_bytes": len(self.space)}

    def test_plain_files(self):
        data = random.Random(5).randbytes(900_000)
        self.write("a b.bin", data)
        path = "/files/a%20b.bin"
        reply = self.got(path)
        self.assertTrue(reply.body == data)
        self.assertEqual(reply.headers["content-type"], "application/octet-stream")
        self.assertEqual(reply.headers["accept-ranges"], "bytes")
        self.assertEqual(self.got(path, 206, Range="bytes=800000-").body, data[800_000:])
        self.assertTrue(self.got(path, 200, Range="bytes=0-1,5-6").body == data)
        self.got(path, 416, Range="bytes=900000-")
        self.got(path, 304, If_None_Match=reply.headers["etag"])
        self.write("whole.wacz", data)
        self.got("/files/whole.wacz", 416, Range="bytes=0-1,5-6")
        self.write("a b.bin", data[1:] + b"x")
        self.assertNotEqual(self.got(path).headers["etag"], reply.headers["etag"])
        self.write("empty", b"")
        self.assertEqual(self.got("/files/empty").body, b"")

    def test_names_stay_in_the_directory(self):
        self.write(".hidden", b"secret")
        (self.files / "sub").mkdir()
        (self.files / "sub" / "file").write_bytes(b"secret")
        (self.files / "link").symlink_to("/etc/passwd")
        os.mkfifo(self.files / "pipe")
        self.write("x.pieces.json", b"{}")
        for name in ("", ".", "..", ".hidden", "%2ehidden", "sub", "sub/file", "sub%2Ffile", "link",
                     "pipe", "../access.log", "..%2faccess.log", "%2e%2e%2faccess.log", "none",
                     "x.pieces.json", "none%00", "a" * 300, "/etc/passwd", "%2Fetc%2Fpasswd"):
            self.assertEqual(self.ask(f"/files/{name}").status, 404, name)
        with LiveGateway(QUIRE_HTTP, self.server.address) as gateway, \
                gateway.connect() as connection:
            self.assertEqual(connection.ask("/files/link").status, 404)

    def test_files_of_pieces(self):
        head, tail = b"head " * 30_000, b"tail"
        self.write(".web.head", head)
        self.write(".web.tail", tail)
        self.describe("web.wacz", [{"file": ".web.head", "size_bytes": len(head)},
                                   self.space_piece(), {"file": ".web.tail", "size_bytes": 4}])
        whole = head + self.space + tail
        path = "/files/web.wacz"
        reply = self.got(path, Origin="https://replayweb.page")
        self.assertTrue(reply.body == whole)
        self.assertEqual(reply.headers["content-type"], "application/wacz")
        self.assertEqual(reply.headers["content-length"], str(len(whole)))
        self.assertIn("ETag", reply.headers["access-control-expose-headers"])
        etag = reply.headers["etag"]
        draw = random.Random(29)
        borders = (0, len(head), len(head) + len(self.space), len(whole))
        for number in range(100):
            first = min(max(0, draw.choice(borders) + draw.randint(-20, 20)), len(whole) - 1)
            last = first + draw.choice((0, 1, 30, 300_000, 10**12))
            part = self.got(path, 206, Range=f"bytes={first}-{last}", If_Range=etag)
            self.assertTrue(part.body == whole[first:last + 1], (number, first, last))
        self.assertEqual(self.got(path, 206, Range="bytes=-4").body, tail)
        self.assertEqual(self.got(path, 206, Range=f"bytes=-{10**12}").headers["content-range"],
                         f"bytes 0-{len(whole) - 1}/{len(whole)}")
        self.got(path, 416, Range="bytes=0-1,5-6")
        self.got(path, 416, Range=f"bytes={len(whole)}-")
        self.assertTrue(self.got(path, 200, Range="bytes=5-1").body == whole)
        self.got(path, 304, If_None_Match=etag)
        # Another piece, another tag.
        self.write(".web.tail", b"TAIL")
        self.assertNotEqual(self.ask(path, "HEAD").headers["etag"], etag)

    def test_descriptions_that_do_not_fit(self):
        self.write(".part", b"1234")
        part = {"file": ".part", "size_bytes": 4}
        self.describe("good", [part])
        self.assertEqual(self.got("/files/good").body, b"1234")
        for number, (pieces, changes, status, word) in enumerate((
                ([{**part, "size_bytes": 5}], {}, 502, b"has 4 bytes"),
                ([{**part, "file": ".none"}], {}, 502, b".none"),
                ([{**part, "file": "../access.log"}], {}, 502, b"name of a file"),
                ([{"space": True, "size_bytes": 1}], {}, 502, b"logical space has"),
                ([part], {"uuid": "0" * 32}, 404, b"other contents"),
                ([part], {"archive": "none"}, 404, b"none"),
                ([part], {"format": 2}, 502, b"format"),
                ([part], {"more": 1}, 502, b"members"),
                ([], {}, 502, b"1 to 64"))):
            self.describe(f"bad{number}", pieces, **changes)
            reply = self.ask(f"/files/bad{number}")
            self.assertEqual(reply.status, status, (pieces, changes, reply))
            self.assertIn(word, reply.body)
        self.write("garbage.pieces.json", b"[" * 60_000)
        self.got("/files/garbage", 502)

    def test_pieces_replaced_while_they_are_read(self):
        self.write(".large", b"old " * 5_000_000)
        self.describe("large", [{"file": ".large", "size_bytes": 20_000_000}])
        with self.gateway.connect(receive_buffer=4096) as slow:
            slow.send(b"GET /files/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(slow.read_head()[0], 200)
            self.write(".large", b"new " * 5_000_000)
            body = slow.take(20_000_000)
        self.assertLess(len(body), 20_000_000)
        self.assertTrue(body == b"old " * (len(body) // 4) + b"old "[:len(body) % 4])
        self.assertTrue(self.got("/files/large").body == b"new " * 5_000_000)


NGINX = """
daemon off;
pid {directory}/nginx.pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  fastcgi_temp_path {directory}/fastcgi;
  proxy_temp_path {directory}/proxy;
  scgi_temp_path {directory}/scgi;
  uwsgi_temp_path {directory}/uwsgi;
  proxy_cache_path {directory}/cache keys_zone=quire:1m;
  server {{
    listen unix:{directory}/nginx.sock;
    merge_slashes off;
    add_header X-Cache $upstream_cache_status;
{location}
  }}
}}
"""


class ProgramTest(GatewayCase):
    """Programs that people use."""

    def run_program(self, *command):
        assert shutil.which(command[0]), f"{command[0]}: deploy/bootstrap.sh installs it"
        done = subprocess.run([str(word) for word in command], check=False, capture_output=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, (command, done.stderr))
        return done.stdout

    def test_curl(self):
        data = self.documents[LARGE]
        url = self.gateway.url + self.path(LARGE)
        self.assertTrue(self.run_program("curl", "-sf", url) == data)
        self.assertEqual(self.run_program("curl", "-sf", "-r", "100-199", url), data[100:200])
        partial = self.directory / "curl.part"
        partial.write_bytes(data[:1_000_000])
        self.run_program("curl", "-sf", "-C", "-", "-o", partial, url)
        self.assertTrue(partial.read_bytes() == data)
        # A page, with its tag.
        tag, page = self.directory / "tag", self.directory / "page"
        page_url = f"{self.gateway.url}/v1/web/page/http://example.org/plain"
        for _ in range(2):
            self.run_program("curl", "-sf", "--etag-save", tag, "--etag-compare", tag, "-o", page,
                             page_url)
            self.assertTrue(page.read_bytes() == self.plain_page)

    def test_wget_resumes(self):
        for path, data in ((self.path(LARGE), self.documents[LARGE]),
                           ("/v1/web/page/http://example.org/large", self.large_page)):
            target = self.directory / "wget" / path.rpartition("/")[2]
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data[:1_234_567])
            self.run_program("wget", "-q", "-c", "-P", target.parent, self.gateway.url + path)
            self.assertTrue(target.read_bytes() == data)

    def start_nginx(self):
        """The configuration of docs/http.md; returns the path of its socket."""
        nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        assert nginx, "nginx: deploy/bootstrap.sh installs it"
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
        location = re.search(r"^      location / \{\n.*?^      \}\n", text, re.DOTALL | re.MULTILINE)[0]
        for before, after in (("http://127.0.0.1:7480", self.gateway.url), ("slice 1m", "slice 64k")):
            self.assertIn(before, location)
            location = location.replace(before, after)
        directory = self.directory / "nginx"
        directory.mkdir()
        (directory / "nginx.conf").write_text(NGINX.format(directory=directory, location=location))
        messages = self.enterContext((directory / "messages").open("w"))
        process = subprocess.Popen([nginx, "-p", directory, "-e", "stderr", "-c",
                                    directory / "nginx.conf", "-g",
                                    f"user {pwd.getpwuid(os.getuid()).pw_name};"],
                                   stderr=messages)

        def stop():
            process.terminate()
            process.wait(PATIENCE_S)

        self.addCleanup(stop)
        end = time.monotonic() + PATIENCE_S
        while not (directory / "nginx.sock").exists():
            self.assertIsNone(process.poll(), (directory / "messages").read_text())
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        return directory / "nginx.sock"

    def test_nginx_with_slices(self):
        nginx_socket = self.start_nginx()
        uuid = self.uuid()

        def ask(path, **headers):
            with RawConnection(str(nginx_socket)) as connection:
                return connection.ask(path, **headers)

        def answered():
            return self.gateway.metric('quire_http_requests_total{status="206"}')

        for name in LARGE, "site//twice.txt", "deep//large file#?.bin", "site/0/page-000.html":
            data = self.documents[name]
            path = self.path(name)
            cached = path.replace("/v1/docs/", f"/v1/docs@{uuid}/")
            for target in path, cached:
                reply = ask(target)
                self.assertEqual(reply.status, 200, (target, reply))
                self.assertTrue(reply.body == data, target)
                first = len(data) // 3
                part = ask(target, Range=f"bytes={first}-{first + 99_999}")
                self.assertEqual(part.status, 206, (target, part))
                self.assertTrue(part.body == data[first:first + 100_000], target)
                self.assertEqual(ask(target, Range="bytes=-5").body, data[-5:])
                self.assertEqual(ask(target, Range=f"bytes={len(data)}-").status, 416)
            # Contents named by uuid come from the cache of nginx.
            before = answered()
            reply = ask(cached)
            self.assertTrue(reply.body == data)
            self.assertEqual(reply.headers["x-cache"], "HIT")
            self.assertEqual(answered(), before)
        # Paths are not normalised on the way.
        for path in "/v1/docs/doc/site/twice.txt", "/v1/docs//doc/empty.txt":
            self.assertEqual(ask(path).status, 404, path)
        target = self.directory / "nginx.part"
        target.write_bytes(self.documents[LARGE][:777_777])
        self.run_program("curl", "-sf", "--unix-socket", nginx_socket, "-C", "-", "-o", target,
                         f"http://localhost{self.path(LARGE)}")
        self.assertTrue(target.read_bytes() == self.documents[LARGE])


if __name__ == "__main__":
    QUIRED, QUIRE, QUIRE_HTTP = map(pathlib.Path, sys.argv[1:4])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
