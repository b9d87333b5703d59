# SPDX-License-Identifier: Apache-2.0
"""Payloads of a crawl are those that the C++ client makes, byte for byte."""
import asyncio
import gzip
import os
import pathlib
import random
import struct
import subprocess
import tempfile
import unittest
import zlib

import zstandard

import quire_archive as quire
from quire_archive import _codings, _payload
from quire_archive.records import header
from package_harness import LiveServer, QUIRE, QUIRED, SEED, build
# pylint: disable=wrong-import-order
from crawl_test import Crawl, chunked, digest_of

try:
    import brotli
except ImportError:
    brotli = None

SITE = "http://example.org/"
RANDOM_COUNT = 250
# Number of records that both decoders get; more for a longer search.
RECORD_COUNT = int(os.environ.get("QUIRE_TEST_RECORDS", "600"))
RECORD_SIZE_MAX = 1 << 20


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
            body = brotli.compress(body) if name == "br" else CODINGS[name](body)
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
        fields.append("Content-Encoding: " + draw.choice(("rot13", "utf-8", "compress", "exi")))
    first = draw.choice(("HTTP/1.1 200 OK", "HTTP/1.1 200 OK", "HTTP/1.1 304 Not Modified",
                         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", "HTTP/2 404", "HTTPS?",
                         "HTTP/1.1 103 Early Hints\r\nLink: x"))
    end = draw.choice(("\r\n", "\r\n", "\n"))
    head = end.join([first, *fields, "", ""]).encode()
    block = damage(draw, head + body) if draw.random() < 0.2 else head + body
    options = {"WARC_Truncated": "length"} if draw.random() < 0.05 else {}
    crawl.add("response", uri, date, block, draw.choice(
        ("application/http; msgtype=response", "Application/HTTP", "text/plain")), **options)


def add_captures_that_are_no_pages(crawl):
    """Redirects and answers to HEAD, next to pages and alone."""
    kind = "application/http; msgtype=response"
    moved = b"HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 5\r\n\r\nmoved"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
    for name, captures in (("passed", ("page", moved, head)), ("moved-only", (moved,)),
                           ("head-only", (head, moved)), ("revisit", ("page", "revisit", moved)),
                           ("revisit-moved", ("page", moved, "of-moved")),
                           ("cut", ("page", moved[:-3])), ("at", (moved, "page", moved))):
        for number, block in enumerate(captures, 1):
            uri, date = SITE + name, f"202{number}-01-01T00:00:00Z"
            if block == "page":
                crawl.add_response(uri, date, b"page of " + name.encode())
            elif block == "revisit":
                crawl.add_revisit(uri, date, uri, "2021-01-01T00:00:00Z",
                                  b"page of " + name.encode())
            elif block == "of-moved":
                crawl.add("revisit", uri, date, b"", kind, WARC_Refers_To_Target_URI=uri,
                          WARC_Refers_To_Date="2022-01-01T00:00:00Z")
            else:
                crawl.add("response", uri, date, block, kind)
    crawl.add_response(SITE + "passed/below", "2024-01-01T00:00:00Z", b"another id")


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
    add_captures_that_are_no_pages(crawl)
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


# --- Records that no crawler writes.

NUMBERS = ("0", "5", "+5", "-1", " 5", "5 5", "5,5", "0x5", "5.0", "\uff15", "0" * 30 + "7", "9" * 5000,
           "0" * 5000 + "9", str(2**64), str(2**64 - 1), "")
ENDS = ("\r\n",) * 6 + ("\n", "\n", "\r", "\r\r\n", " \r\n", "\x0b\r\n")
VALUES = ("", " ", "x", "\x00", "\udcff\udc80", "a\u212ab", "<>", "<u>", "a: b", "; q", ",", "\x85", "\x1c")


def hostile_case(draw, text):
    """The text in other cases, sometimes in characters whose lower case is in ASCII."""
    kind = draw.randrange(6)
    if kind == 0:
        return "".join(draw.choice((c.upper(), c.lower())) for c in text)
    return text.replace("k", "\u212a") if kind == 1 and draw.random() < 0.2 else text


def hostile_fields(draw, fields):
    """Lines of a header, with the empty line that ends it."""
    lines = []
    for name, value in fields:
        for _ in range(draw.choice((0, 1, 1, 1, 1, 1, 1, 1, 1, 2))):
            colon = draw.choice((":", ": ", ":  ", " :", "\t:\t", "\x0c:\x0b", "\x85: ", ""))
            if draw.random() < 0.7:
                colon = ": "
            if draw.random() < 0.1:
                value = draw.choice(VALUES)
            fold = draw.choice(("\r\n ", "\n\t", "\r\n \r\n ", "\n\x0b"))
            if draw.random() < 0.1 and value:
                at = draw.randrange(len(value))
                value = value[:at] + fold + value[at:]
            lines.append(hostile_case(draw, name) + colon + value)
    if draw.random() < 0.2:
        lines.append(draw.choice(("no colon", ": no name", " folded", "\x00", "\u20ac: x")))
    draw.shuffle(lines)
    end = draw.choice(ENDS)
    return "".join(line + (end if draw.random() < 0.9 else draw.choice(ENDS))
                   for line in lines) + draw.choice(("\r\n",) * 8 + ("\n", "\r", ""))


def hostile_http(draw):
    """An HTTP message, and what it says of its body is mostly true."""
    text = draw.choice((b"", b"x", b"{}", b"\xff" * 9, b"caf\xe9", b"text " * draw.randrange(2000),
                        draw.randbytes(draw.choice((1, 3, 63, 64, 65, 4095, 4096, 4097, 9000)))))
    codings = [*CODINGS, "utf-8", "none", "compress", "dcz", "exi"]
    if brotli is not None:
        codings += ["br", "br"]
    content = draw.choices(codings, k=draw.choice((0, 1, 1, 1, 2, 3)))
    transfer = draw.choices(("chunked", "gzip", "deflate", "utf-8"), k=draw.choice((0, 0, 1, 1, 2)))
    # A coding that is named is sometimes not applied.
    applied = [name for name in content + transfer
               if name in (*CODINGS, "chunked", "br") and draw.random() < 0.8]
    body = encode(draw, text, applied)
    fields = [(name, draw.choice((", ", ",", ";q=1,", " ,\t")).join(
        hostile_case(draw, coding) for coding in values))
        for name, values in (("Content-Encoding", content), ("Transfer-Encoding", transfer))
        if values]
    if draw.random() < 0.5:
        fields.append(("Content-Length", draw.choice((*NUMBERS, *[str(len(body))] * 9))))
    fields.append(("Content-Type", "text/html"))
    first = draw.choice(
        ("HTTP/1.1 200 OK",) * 9 + (
            "HTTP/1.1 304 x", "HTTP/1.1 204 x", "HTTP/1.1 101 x", "HTTP/1.1  200", "HTTP/1.1\t200",
            "HTTP/1.1 +20", "HTTP/1.1 -20", "HTTP/1.1 2", "HTTP/1.1", "http/1.1 200", "HTTP/", "HTTP",
            "ICY 200 OK", "HTTP/1.1 \uff12\uff10\uff10", "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 200 OK",
            "HTTP/1.1 103 x\nA: b\n\n" * 3 + "HTTP/2 200", "HTTP/1.1 199 x\r\n\r\nbody", ""))
    if draw.random() < 0.1:
        first = draw.choice(("\r\n", "\n", "\r\n" * 32, "\n" * 63 + "\r\n", "\n" * 70, "\r")) + first
    if draw.random() < 0.02:
        return draw.choice((b"\r\n", b"\n\r", b"\r", b"\r\r", b"\n" * 64, b"\n" * 99, b"\r\nHT", b""))
    head = first + draw.choice(ENDS) + hostile_fields(draw, fields)
    return damage(draw, head.encode("utf-8", "surrogateescape")) + damage(draw, body)


def hostile_record(draw):
    """Any bytes that resemble a record."""
    block = hostile_http(draw)
    length = draw.choice((*NUMBERS, *[str(len(block))] * 40, str(len(block) + 3),
                          str(max(0, len(block) - 3)), "0" * 9 + str(len(block))))
    fields = [("WARC-Type", draw.choice(("response",) * 9 + (
        "request", "revisit", "resource", "Response", "respon\u017fe", ""))),
        ("Content-Length", length),
        ("Content-Type", draw.choice(("application/http; msgtype=response",) * 6 + (
            "application/http", "Application/HTTP ;", "text/plain", "", ";application/http"))),
        ("WARC-Target-URI", draw.choice(("http://h/", "<http://h/>", "<", "<>", "\udcff"))),
        ("WARC-Date", "2021"), ("WARC-Refers-To-Date", "x"), ("WARC-Payload-Digest", "sha1:K"),
        ("WARC-Refers-To-Target-URI", "<u>")]
    if draw.random() < 0.1:
        line = draw.choice((" ",) * 9 + ("  ", "")).join((
            draw.choice(("http://h/", "http://h/", "http://h/a b 20210101000000", "filedesc://a", "h")),
            draw.choice(("1.2.3.4", "1.2.3.4", "::1", "x", "")),
            draw.choice(("20210101000000", "20210101000000", "202101010000", "null", "-", "2021", "1")),
            draw.choice(("text/html", "no-type", "text/html; a=b", "", "x 200 - - 5 f.arc")),
            draw.choice((length, str(len(block)))))) + draw.choice(("\n", "\n", "\r\n", "\r", ""))
        return damage(draw, line.encode("utf-8", "surrogateescape") + block + b"\n")
    if draw.random() < 0.1:
        fields.append(("WARC-Truncated", "length"))
    first = draw.choice(("WARC/1.0",) * 20 + ("WARC/1.1", "WARC/0.17", "warc/1.0", "WARC/", "WARC", "",
                                              " WARC/1.0", "\ufeffWARC/1.0"))
    head = (first + draw.choice(ENDS) + hostile_fields(draw, fields)).encode(
        "utf-8", "surrogateescape")
    if draw.random() < 0.1:
        head = damage(draw, head)
    record = head + block + draw.choice((b"\r\n\r\n", b"", b"\n"))
    return record if draw.random() < 0.97 else b""


# WARC-Truncated among the texts.
_TRUNCATED = 10


def decode_here(record):
    """What decode_records.cc prints for a record."""
    try:
        decoded = _payload.decode_record(record, RECORD_SIZE_MAX)
    except quire.LimitExceeded:
        return [b"RESOURCE_EXHAUSTED"]
    # pylint: disable=protected-access
    http = decoded.http or _payload._Http(None, [], None)
    warc = decoded.warc or []

    def number(value):
        return "" if value is None else str(value)

    texts = ["OK" if decoded.fault is None else "DATA_LOSS", decoded.fault or "", decoded.data,
             f"{decoded.warc is not None:d}{decoded.http is not None:d}", decoded.type,
             *(_payload._without_angles(header(warc, f"WARC-{name}"))
               for name in ("Target-URI", "Refers-To-Target-URI")),
             *(header(warc, name) for name in (
                 "WARC-Date", "WARC-Refers-To-Date", "WARC-Payload-Digest", "WARC-Truncated",
                 "Content-Type")),
             number(http.status), header(http.fields, "Content-Type"), number(http.content_length),
             *(",".join(_payload._codings(http.fields, name))
               for name in ("transfer-encoding", "content-encoding"))]
    return [text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            for text in texts]


class HostileRecordsTest(unittest.TestCase):
    """Both decoders make the same of any record."""

    def decode_there(self, records):
        """What decode_records.cc prints."""
        output = subprocess.run(
            [os.environ["DECODE_RECORDS"]], check=True, stdout=subprocess.PIPE,
            input=b"".join(struct.pack("<I", len(record)) + record for record in records)).stdout
        texts, at = [], 0
        while at < len(output):
            (size,) = struct.unpack_from("<I", output, at)
            texts.append(output[at + 4:at + 4 + size])
            at += 4 + size
        width = len(texts) // len(records)
        return [texts[at:at + width] for at in range(0, len(texts), width)]

    def check(self, record, there, where):
        here = decode_here(record)
        if b"RESOURCE_EXHAUSTED" in (here[0], there[0]):
            self.assertEqual(here[0], there[0], where)
            return
        # Of a record that the crawler has cut, the C++ decoder names the cut before damage that
        # it finds at the end.
        is_truncated = bool(there[_TRUNCATED])
        # Of a body that was coded several times, each decoder names the damage that it finds
        # first; and if bytes are missing, an inner coding without a header is guessed.
        codings = [name for name in b",".join(here[-2:]).split(b",") if name]
        is_guessed = len(codings) > 1 and here[0] == b"DATA_LOSS"
        outcomes = [(found[0], is_truncated or is_guessed or b"cut short" in found[1], *found[3:])
                    for found in (here, there)]
        self.assertEqual(*outcomes, where)
        if is_guessed:
            return
        if here[0] == b"OK" or b"cut short" in here[1]:
            self.assertEqual(here[2], there[2], where)
        else:
            # After damage both have a part of the same.
            size = min(len(here[2]), len(there[2]))
            self.assertEqual(here[2][:size], there[2][:size], where)

    def test_random_records(self):
        draw = random.Random(SEED)
        records = [hostile_record(draw) for _ in range(RECORD_COUNT)]
        found = self.decode_there(records)
        self.assertEqual(len(found), len(records))
        complete = 0
        for number, (record, there) in enumerate(zip(records, found)):
            complete += there[0] == b"OK"
            self.check(record, there, f"seed {SEED}, record {number}: {record[:2000]!r}")
        self.assertGreater(complete, RECORD_COUNT // 10)
        self.assertLess(complete, RECORD_COUNT)

    def test_a_record_of_an_arc(self):
        block = b"\r\nHTTP/1.1 200 OK\r\nContent-Encoding: utf-8\r\n\r\nbody"
        decoded = _payload.decode_record(
            b"http://h/a b 1.2.3.4 20210102030405 text/html %d\n%b\n" % (len(block), block))
        self.assertEqual((decoded.fault, decoded.data, decoded.http.status), (None, b"body", 200))
        self.assertEqual(decoded.warc[:3], [
            ("WARC-Type", "response"), ("WARC-Target-URI", "http://h/a b"),
            ("WARC-Date", "2021-01-02T03:04:05Z")])

    def test_limits(self):
        def record(head, body):
            block = head + b"\r\n\r\n" + body
            return b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n%b" % (
                len(block), block)
        http = b"HTTP/1.1 200 OK\r\n"
        gzipped = CODINGS["gzip"]
        records = [
            record(http + b"Content-Encoding: gzip", gzipped(bytes(RECORD_SIZE_MAX + extra)))
            for extra in (0, 1)] + [
            record(http + b"Content-Encoding: gzip", bytes(RECORD_SIZE_MAX + extra))
            for extra in (0, 1)] + [
            record(http + b"Transfer-Encoding: chunked", b"x" * size + b"\n")
            for size in (16_383, 16_384, 16_385)] + [
            record(http + b"A: " + b"x" * (RECORD_SIZE_MAX - len(http) - 7 + extra), b"y")
            for extra in (-1, 0, 1)] + [
            record(http + b"Content-Encoding: deflate", zlib.compress(bytes(size), 9))
            for size in (65_535, 65_536, 65_537, 900_000)] + [
            record(http + b"Content-Encoding: " + b", ".join([b"gzip"] * count), b"x")
            for count in (5, 6)] + [
            record(b"HTTP/1.1 103 x\r\n\r\n" * 20_000 + http + b"A: b", b"late")]
        for number, (one, there) in enumerate(zip(records, self.decode_there(records))):
            self.check(one, there, f"record {number}")
        self.assertEqual(_payload.decode_record(records[-1]).data, b"late")


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

    def test_captures_that_are_no_pages_are_passed(self):
        for name, at, data, passed_count in [
                ("passed", None, b"page of passed", 2), ("moved-only", None, b"moved", 0),
                ("head-only", None, b"moved", 0), ("revisit", None, b"page of revisit", 1),
                ("revisit-moved", None, b"page of revisit-moved", 2),
                ("cut", None, b"page of cut", 1), ("at", None, b"page of at", 1),
                ("at", "2021", b"page of at", 1), ("passed", "2022", b"page of passed", 1)]:
            with self.subTest(name=name, at=at):
                expected = self.quire_get("web", SITE + name, *(["--at", at] if at else []))
                self.assertEqual(expected[:2], (data, True), expected[2])
                payload = self.web.payload(SITE + name, at=at)
                self.assertEqual((payload.data, payload.passed_count), (data, passed_count))
        self.assertEqual(self.web.payload(SITE + "revisit").revisit.record_type, "revisit")
        newest = self.web.document(quire.Key(SITE + "revisit-moved", with_revisits=True))
        self.assertEqual(newest.record_type, "revisit")
        (answer,) = self.web.get_many([quire.Key(SITE + "revisit-moved", with_revisits=True)])
        self.assertEqual(answer.document, newest)
        # A record that is named is read, whatever it is.
        named = self.web.payload(SITE + "passed", record_types=["response"])
        self.assertEqual((named.data, named.passed_count), (b"", 0))

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
        block = b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\n\x0b\x02\x80abcde\x03"
        record = (b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: %d\r\n\r\n"
                  % len(block)) + block
        if _codings.brotli is not None:
            self.assertEqual(_payload.decode_record(record).data, b"abcde")
            for key in (SITE + "br", SITE + "br-cut"):
                expected, succeeded, messages = self.quire_get("web", key)
                self.assertEqual(self.read(self.web, key), (expected, succeeded), messages)
            saved = _codings.brotli
            self.addCleanup(setattr, _codings, "brotli", saved)
            _codings.brotli = None
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
