#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: documents, ranges, conditions, lists and pages.

usage: http_read_test.py QUIRED QUIRE_HTTP
"""
import base64
import concurrent.futures
import html
import json
import os
import pathlib
import random
import re
import socket
import struct
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import GatewayCase, LARGE, PROGRAMS, run_tests
from live_gateway import LiveGateway


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

    def test_media_types(self):
        types = {"site/0/page-000.html": "text/html", "empty.txt": "text/plain; charset=utf-8",
                 LARGE: "application/octet-stream"}
        for name, media_type in types.items():
            for kind in "doc", "page":
                reply = self.got(f"/v1/docs/{kind}/{name}")
                self.assertEqual(reply.headers["content-type"], media_type, name)

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

    def test_browse_behind_a_path(self):
        links = re.compile(r'href="([^"]*)"')
        for path in "/browse/", "/browse/docs/", "/browse/docs/site/0/", "/browse/web/":
            plain = links.findall(self.got(path).body.decode())
            reply = self.got(path, X_Forwarded_Prefix="/archives/")
            self.assertTrue(plain)
            self.assertEqual(links.findall(reply.body.decode()),
                             ["/archives" + link for link in plain])
        self.got("/browse/", 400, X_Forwarded_Prefix="//evil.example")
        with LiveGateway(PROGRAMS.quire_http, self.server.address, "--base-path", "/q") as gateway, \
                gateway.connect() as connection:
            for path in "/q/browse/docs/", "/browse/docs/":
                found = links.findall(connection.ask(path).body.decode())
                self.assertTrue(all(link.startswith("/q/") for link in found), found)
            self.assertEqual(connection.ask("/q/browse/").headers["vary"], "X-Forwarded-Prefix")
            self.assertEqual(connection.ask("/q/v1/docs/doc/empty.txt").status, 200)

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
        # What there is of it.
        with self.gateway.connect() as connection:
            cut = connection.ask("/v1/web/page/http://example.org/cut")
            self.assertEqual((cut.status, cut.body), (200, b"only so much"))
            self.assertEqual(cut.headers["content-length"], "9999")
            self.assertFalse(cut.is_complete)
            self.assertNotIn("etag", cut.headers)
        head = self.ask("/v1/web/page/http://example.org/cut", "HEAD")
        self.assertEqual((head.status, head.headers["content-length"]), (200, "9999"))
        # Coded, so that its size is not known: the last chunk is missing.
        for name, page in ("cut-page", self.large_page[:5000]), ("cut-large", self.large_page):
            with self.gateway.connect() as connection:
                cut = connection.ask(f"/v1/web/page/http://example.org/{name}",
                                     Range="bytes=0-1", If_None_Match='"x"')
                self.assertEqual(cut.status, 200)
                self.assertFalse(cut.is_complete)
                self.assertEqual(cut.headers["transfer-encoding"], "chunked")
                self.assertGreater(len(cut.body), len(page) // 2)
                self.assertTrue(page.startswith(cut.body), name)
            head = self.ask(f"/v1/web/page/http://example.org/{name}", "HEAD")
            self.assertEqual(head.status, 200)
            self.assertNotIn("content-length", head.headers)
        self.got("/v1/web/page/http://example.org/damaged", 502)
        # A redirect and an answer to HEAD do not hide the page.
        self.assertEqual(self.got("/v1/web/page/http://example.org/moved").body, b"there")
        self.assertEqual(self.got("/v1/web/page/http://example.org/moved-only").body, b"")
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
        self.gateway.wait_for("quire_http_requests_in_flight", 0)
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


if __name__ == "__main__":
    run_tests()
