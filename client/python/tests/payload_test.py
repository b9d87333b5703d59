# SPDX-License-Identifier: Apache-2.0
"""Payloads of a crawl are those that the C++ client makes, byte for byte."""
import asyncio
import gzip
import pathlib
import random
import subprocess
import tempfile
import unittest
import zlib

import zstandard

import quire_archive as quire
from package_harness import LiveServer, QUIRE, QUIRED, SEED, build
# pylint: disable=wrong-import-order
from crawl_test import Crawl, chunked, digest_of

try:
    import brotli
except ImportError:
    brotli = None

SITE = "http://example.org/"
RANDOM_COUNT = 250


def deflate_raw(data):
    encoder = zlib.compressobj(wbits=-15)
    return encoder.compress(data) + encoder.flush()


CODINGS = {"gzip": lambda data: gzip.compress(data, mtime=0), "deflate": zlib.compress,
           "x-gzip": lambda data: gzip.compress(data, mtime=0),
           "zstd": zstandard.ZstdCompressor().compress, "identity": lambda data: data}


def encode(draw, body, names):
    for name in names:
        if name == "chunked":
            body = chunked(body, draw.randint(1, 3000)) if body else b"0\r\n\r\n"
        elif name == "deflate" and draw.random() < 0.5:
            body = deflate_raw(body)
        else:
            body = CODINGS[name](body)
        if name == "gzip" and draw.random() < 0.2:
            body += CODINGS["gzip"](b"another member") + draw.choice((b"", b"\0\0", b"\x1f"))
    return body


def damage(draw, body):
    """Sometimes cuts, flips or inserts bytes."""
    kind = draw.randrange(9)
    if not body or kind > 3:
        return body
    at = draw.randrange(len(body))
    if kind == 0:
        return body[:at]
    if kind == 1:
        return body[:at] + bytes([body[at] ^ (1 << draw.randrange(8))]) + body[at + 1:]
    if kind == 2:
        return body + draw.randbytes(draw.randrange(9))
    return body[:at] + draw.randbytes(3) + body[at:]


def add_random(crawl, draw, number):
    """A response as a crawler of uneven quality writes it."""
    uri, date = f"{SITE}random/{number}", f"2021-01-01T00:{number // 60:02}:{number % 60:02}Z"
    text = b" ".join(draw.choices((b"alpha", b"beta", b"gamma", b"\r\n", b"0", b"<p>"),
                                  k=draw.choice((0, 1, 20, 5000))))
    content = draw.choices(list(CODINGS), k=draw.choice((0, 1, 1, 1, 2, 3)))
    transfer = draw.choices(("chunked", "gzip"), k=draw.choice((0, 0, 1, 1, 2)))
    body = encode(draw, text, content + transfer)
    if draw.random() < 0.1:
        # Decoded by the crawler, with the header left.
        body = text
    body = damage(draw, body)
    fields = []
    if content:
        fields.append(f"Content-Encoding: {', '.join(content)}")
    if transfer:
        fields.append(f"transfer-encoding:{','.join(transfer).upper()}")
    if draw.random() < 0.4:
        fields.append(f"Content-Length: {len(body) + draw.choice((0, 0, 0, 5, -1))}")
    if draw.random() < 0.05:
        fields.append("Content-Encoding: rot13")
    first = draw.choice(("HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 304 Not Modified",
                         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "HTTP/2 404", "HTTPS?",
                         "HTTP/1.1 103 Early Hints\r\nLink: x"))
    end = draw.choice(("\r\n", "\r\n", "\n"))
    head = end.join([first, *fields, "", ""]).encode()
    block = damage(draw, head + body) if draw.random() < 0.2 else head + body
    options = {"WARC_Truncated": "length"} if draw.random() < 0.05 else {}
    crawl.add("response", uri, date, block, draw.choice(
        ("application/http; msgtype=response", "Application/HTTP", "text/plain")), **options)


def make_crawl(draw):
    crawl = Crawl()
    page, lost, moved = SITE, SITE + "lost", SITE + "moved"
    crawl.add("warcinfo", None, "2021-01-01T00:00:00Z", b"software: test\r\n",
              "application/warc-fields")
    crawl.add_response(page, "2021-01-01T00:00:00Z", b"<p>first</p>", "Content-Type: text/html",
                       "X-Folded: one\r\n  two")
    crawl.add_response(page, "2022-06-10T08:00:00Z",
                       chunked(gzip.compress(b"<p>third</p>", mtime=0), 7),
                       "Content-Encoding: gzip", "Transfer-Encoding: chunked")
    crawl.add_response(page, "2022-05-31T23:59:59Z", b"<p>second</p>")
    crawl.add_revisit(page, "2022-07-01T00:00:00Z", page, "2021-01-01T00:00:00Z", b"<p>first</p>")
    crawl.add_revisit(moved, "2022-07-01T00:00:00Z", page, "2022-06", b"<p>second</p>")
    crawl.add("revisit", SITE + "undated", "2022-07-01T00:00:00Z", b"", "application/http",
              WARC_Refers_To_Target_URI=f"<{page}>",
              WARC_Payload_Digest=digest_of(b"<p>second</p>"))
    crawl.add("revisit", page + "bare", "2022-07-01T00:00:00Z", b"", "application/http")
    crawl.add_response(lost, "2021-01-01T00:00:00Z", b"held")
    crawl.add_revisit(lost, "2022-01-01T00:00:00Z", "http://other.org/", "2020-01-01T00:00:00Z",
                      b"not held")
    crawl.add_revisit(SITE + "gone", "2022-01-01T00:00:00Z", "http://other.org/",
                      "2020-01-01T00:00:00Z", b"not held")
    crawl.add("resource", "file:///notes", "2021-01-01T00:00:00Z", b"notes", "text/plain")
    crawl.add("conversion", SITE + "text", "2021-01-01T00:00:00Z", b"as text", "text/plain")
    if brotli is not None:
        coded = brotli.compress(b"brotli " * 9000)
        crawl.add_response(SITE + "br", "2021-01-01T00:00:00Z", coded, "Content-Encoding: br")
        crawl.add_response(SITE + "br-cut", "2021-01-01T00:00:00Z", coded[:-9],
                           "Content-Encoding: br")
    large = b"".join(b"line %d\n" % number for number in range(300_000))
    crawl.add_response(SITE + "large", "2021-01-01T00:00:00Z", zlib.compress(large, 0),
                       "Content-Encoding: deflate")
    for number in range(RANDOM_COUNT):
        add_random(crawl, draw, number)
    return crawl


class PayloadTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        crawl = make_crawl(random.Random(SEED))
        cls.records = crawl.records
        crawl.write(cls.directory / "crawl.warc.gz")
        plain = cls.directory / "plain"
        plain.mkdir()
        (plain / "note.txt").write_bytes(b"not a record")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            f"web={build(cls.directory / 'web.quire', cls.directory / 'crawl.warc.gz')}",
            f"plain={build(cls.directory / 'plain.quire', plain)}"]))
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))
        cls.web = cls.client["web"]

    def quire_get(self, archive, *arguments):
        """(bytes, succeeded, messages) of the C++ client."""
        run = subprocess.run(
            [QUIRE, "--server", self.server.address, "--cache-dir", "-", "get", archive,
             *arguments], capture_output=True, check=False)
        return run.stdout, run.returncode == 0, run.stderr.decode()

    def read(self, archive, key, **options):
        """(bytes, succeeded) of this client."""
        try:
            return archive.payload(key, **options).data, True
        except quire.PayloadDamaged as error:
            return error.payload.data, False
        except quire.DocumentNotFound:
            return b"", False

    def test_named_cases_are_as_quire_get(self):
        for key, arguments, options in [
                (SITE, [], {}), (SITE + "moved", [], {}), (SITE + "undated", [], {}),
                (SITE + "bare", [], {}), (SITE + "lost", [], {}), (SITE + "gone", [], {}),
                (SITE + "text", [], {}), ("file:///notes", [], {}), (SITE + "none", [], {}),
                (SITE, ["--at", "2022-06"], {"at": "2022-06"}),
                (SITE, ["--at", "2022-05"], {"at": "2022-05"}),
                (SITE, ["--at", "1999"], {"at": "1999"}),
                (SITE, ["--record-type", "request"], {"record_types": ["request"]}),
                (SITE, ["--record-type", "response"], {"record_types": ["response"]}),
                (SITE + "gone", ["--record-type", "revisit"], {"record_types": ["revisit"]}),
                (SITE + "text", ["--record-type", "conversion"],
                 {"record_types": ["conversion"]}),
                (SITE, ["--occurrence", "2"], {"occurrence": 2}), (SITE + "large", [], {})]:
            with self.subTest(key=key, options=options):
                data, succeeded, messages = self.quire_get("web", key, *arguments)
                self.assertEqual(self.read(self.web, key, **options), (data, succeeded), messages)
        self.assertEqual(self.web.payload(SITE).data, b"<p>first</p>")

    def test_random_records_are_as_quire_get(self):
        complete = 0
        for number in range(RANDOM_COUNT):
            key = f"{SITE}random/{number}"
            with self.subTest(seed=SEED, key=key):
                expected, expected_success, messages = self.quire_get("web", key)
                data, succeeded = self.read(self.web, key)
                self.assertEqual(succeeded, expected_success, messages)
                if succeeded or "cut short" in messages:
                    self.assertEqual(data, expected, messages)
                else:
                    # After damage both have a part of the same.
                    self.assertEqual(*(x[:min(len(data), len(expected))]
                                       for x in (data, expected)), messages)
                complete += succeeded
        self.assertGreater(complete, RANDOM_COUNT // 4)
        self.assertLess(complete, RANDOM_COUNT)

    def test_origin_of_a_payload(self):
        payload = self.web.payload(SITE)
        self.assertEqual(payload.document.capture_time.isoformat(), "2021-01-01T00:00:00+00:00")
        self.assertEqual(payload.revisit.record_type, "revisit")
        self.assertEqual(payload.http_status, 200)
        self.assertIn(("Content-Type", "text/html"), payload.http_headers)
        self.assertIn(("X-Folded", "one two"), payload.http_headers)
        self.assertIn(("WARC-Type", "response"), payload.warc_headers)
        self.assertEqual(payload.unresolved, "")
        lost = self.web.payload(SITE + "lost")
        self.assertEqual(lost.data, b"held")
        self.assertIn('a revisit of "http://other.org/" of "2020-01-01T00:00:00Z", which the '
                      "archive does not hold", lost.unresolved)
        with self.assertRaisesRegex(quire.RevisitTargetNotFound, "other.org"):
            self.web.payload(SITE + "gone")
        note = self.client["plain"].payload("note.txt")
        self.assertEqual((note.data, note.warc_headers, note.http_status),
                         (b"not a record", None, None))
        self.assertEqual(self.web.read(SITE, at="2021"), self.records[1])
        with self.assertRaises(quire.RecordTypeNotFound):
            self.web.read(SITE + "text")
        with self.assertRaisesRegex(ValueError, "as a whole"):
            self.web.payload(quire.Key(SITE, range=(0, 1)))

    def test_brotli_needs_its_package(self):
        from quire_archive import _payload  # pylint: disable=import-outside-toplevel
        block = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x0b\x02\x80abcde\x03"
        record = (b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n"
                  % len(block)) + block
        if _payload.brotli is not None:
            self.assertEqual(_payload.decode_record(record).data, b"abcde")
            for key in (SITE + "br", SITE + "br-cut"):
                expected, succeeded, messages = self.quire_get("web", key)
                self.assertEqual(self.read(self.web, key), (expected, succeeded), messages)
            saved = _payload.brotli
            self.addCleanup(setattr, _payload, "brotli", saved)
            _payload.brotli = None
        self.assertIn("install the package brotli", _payload.decode_record(record).fault)

    def test_a_bomb_is_bounded(self):
        with self.assertRaisesRegex(quire.LimitExceeded, "more than 1000000 bytes"):
            self.web.payload(SITE + "large", size_max=1_000_000)

    def test_asyncio_payloads(self):
        async def run():
            async with quire.connect_async(self.server.address) as client:
                return await client["web"].payload(SITE)
        self.assertEqual(asyncio.run(run()).data, b"<p>first</p>")

    def test_warcio_reads_the_space(self):
        from warcio.archiveiterator import ArchiveIterator  # pylint: disable=import-outside-toplevel
        with self.web.open_space() as file:
            self.assertEqual(file.read(), b"".join(self.records))
            file.seek(0)
            found = {}
            for record in ArchiveIterator(file):
                uri = record.rec_headers.get_header("WARC-Target-URI")
                if record.rec_type == "response" and uri in (SITE, SITE + "large"):
                    found.setdefault(uri, []).append(record.content_stream().read())
        self.assertEqual(found[SITE], [b"<p>first</p>", b"<p>third</p>", b"<p>second</p>"])
        self.assertEqual(found[SITE + "large"][0], self.web.payload(SITE + "large").data)


if __name__ == "__main__":
    unittest.main()
