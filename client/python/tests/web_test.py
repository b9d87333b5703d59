# SPDX-License-Identifier: Apache-2.0
"""quire-web: keys, indexes and WACZ of a crawl, read by warcio, zipfile, unzip and quired."""
import asyncio
import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
import zipfile

from surt import surt
from warcio.archiveiterator import ArchiveIterator
from warcio.recompressor import Recompressor

import quire_archive as quire
from quire_archive import captures, wacz, web
from package_harness import LiveServer, QUIRE, QUIRED, SEED, build
# pylint: disable=wrong-import-order
from crawl_test import Crawl
from random_urls import random_url

SITE = "http://www.example.org/"
PAGES = 1500
URL_COUNT = 20_000
# Keys of answers to other methods than GET, as cdxj-indexer -p has them, and to HEAD.
METHOD_KEYS = ["org,example)/headed?__wb_method=head", "org,example)/search?__wb_method=post&q=cats",
               "org,example)/search?__wb_method=post&q=dogs"]


class KeysTest(unittest.TestCase):
    def test_keys_are_those_of_surt(self):
        draw = random.Random(SEED)
        plain = 0
        for _ in range(URL_COUNT):
            url = random_url(draw)
            try:
                expected = surt(url)
            except Exception:  # pylint: disable=broad-except
                continue
            key = captures.surt_key(url)
            if "\0" not in expected and " " not in expected:
                self.assertEqual(key, expected, f"seed {SEED}: {url!r}")
            # pylint: disable=protected-access
            plain += captures._PLAIN_URL.fullmatch(url) is not None
        self.assertGreater(plain, URL_COUNT // 20)

    def test_a_key_has_no_blanks(self):
        for url in ("not a url", "http://[", "", "a\tb", "\n", "http://h/\udcff", "\udcff \u20ac"):
            self.assertRegex(captures.surt_key(url), r"\A[!-~]*\Z")

    def test_an_id_that_is_not_utf_8(self):
        document = quire.Document()
        document.ordinal, document.id, document.offset, document.size = 1, b"http://h/\xff \n", 5, 7
        document.capture_time_ms, document.media_type = 0, None
        document.record_type = "resource"
        line = captures.make_capture(document, b"WARC/1.0\r\n\r\n").line("space").encode()
        self.assertEqual(line.count(b"\n"), 1)
        self.assertEqual(json.loads(line[line.index(b"{"):])["url"].encode(
            "utf-8", "surrogateescape"), document.id)

    def test_times(self):
        for milliseconds, text in ((0, "19700101000000"), (-1, "19691231235959"),
                                   (951_782_399_999, "20000228235959"),
                                   (253_402_300_799_999, "99991231235959"),
                                   (-62_135_596_800_000, "00010101000000")):
            self.assertEqual(captures.timestamp(milliseconds), text)


class HeadTest(unittest.TestCase):
    def test_any_bytes(self):
        """A head is enough, or more of it is asked for; the answer is that of the whole."""
        draw = random.Random(SEED)
        record = (b"WARC/1.1\r\nWARC-Type: response\r\nWARC-Payload-Digest: sha1:ABC\r\n"
                  b"Content-Type: application/http\r\n\r\nHTTP/1.1 404 Gone\r\nA: b\r\n\r\nx")
        document = quire.Document()
        document.ordinal, document.id, document.offset = 1, b"http://h/", 5
        document.capture_time_ms, document.media_type = 0, None
        found = set()
        for _ in range(5000):
            data = bytearray(record)
            for _ in range(draw.choice((0, 1, 3))):
                data[draw.randrange(len(data))] = draw.choice(b"\r\n :/4W\0\xff")
            document.size, document.record_type = len(data), draw.choice(("response", "resource"))
            whole = captures.make_capture(document, bytes(data))
            part = captures.make_capture(document, bytes(data[:draw.randrange(len(data))]))
            self.assertIn(part, (None, whole), f"seed {SEED}")
            found.add(whole and (whole.status, whole.digest))
        self.assertIn(("404", "sha1:ABC"), found)
        self.assertIn((None, "sha1:ABC"), found)
        self.assertIn(None, found)


class SorterTest(unittest.TestCase):
    def test_any_memory_gives_the_same_order(self):
        draw = random.Random(SEED)
        lines = [draw.randbytes(draw.randint(0, 9)).replace(b"\n", b"") + b"\n"
                 for _ in range(2000)]
        for size_max in (0, 10, 1000, 1 << 20):
            with captures.LineSorter(size_max) as sorter:
                for line in lines:
                    sorter.add(line)
                self.assertEqual(list(sorter.sorted()), sorted(lines))

    def test_few_files_are_open(self):
        def count_open():
            return len(os.listdir("/proc/self/fd"))

        before = count_open()
        with captures.LineSorter(0) as sorter:
            for number in range(5000):
                sorter.add(b"%d\n" % number)
                if number % 100 == 0:
                    self.assertLess(count_open() - before, 200)
            self.assertEqual(list(sorter.sorted()), sorted(b"%d\n" % n for n in range(5000)))
        self.assertEqual(count_open(), before)


def add_exchange(crawl, method, url, asked, kind, body):
    """Adds a request and its answer, which name each other."""
    answer = f"<urn:uuid:{len(crawl.records):036}>"
    date = f"2021-03-01T00:00:{len(crawl.records):02}Z"
    crawl.add_response(url, date, body, f"Content-Type: {kind}")
    # That of add_response() is of GET.
    crawl.records.pop()
    crawl.add("request", url, date,
              f"{method} / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\n"
              f"{asked}".encode(), "application/http; msgtype=request",
              WARC_Concurrent_To=answer)


def make_crawl():
    crawl = Crawl()
    draw = random.Random(SEED)
    crawl.add("warcinfo", None, "2021-01-01T00:00:00Z", b"software: test\r\n",
              "application/warc-fields")
    crawl.add_response(SITE, "2021-01-01T00:00:00Z", b"<p>first</p>", "Content-Type: text/html")
    crawl.add_revisit(SITE, "2022-07-01T00:00:00Z", SITE, "2021-01-01T00:00:00Z", b"<p>first</p>")
    crawl.add("resource", "file:///notes", "2021-01-01T00:00:00Z", b"notes", "text/plain")
    crawl.add("conversion", SITE + "text", "2021-01-01T00:00:00Z", b"as text", "text/plain")
    crawl.add("metadata", SITE + "text", "2021-01-02T00:00:00Z", b"a: b",
              "application/warc-fields")
    for size in (1000, 2100, 17_000, 130_000, 1_000_000):
        # The digest comes after the long field.
        crawl.add("response", f"{SITE}long/{size}", "2021-01-01T00:00:00Z",
                  b"HTTP/1.1 404 Not Found\r\nContent-Type: text/css\r\n\r\nx", "application/http",
                  WARC_Long="x" * size, WARC_Payload_Digest=f"sha1:{size}")
    crawl.add("response", SITE + "undated", "no date", b"HTTP/1.1 200 OK\r\n\r\n",
              "application/http")
    crawl.add("response", "dns:example.org", "2021-01-01T00:00:00Z", b"1.2.3.4\n", "text/dns")
    crawl.add("response", SITE + "empty", "2021-01-01T00:00:00Z", b"", "application/http")
    crawl.records.append(
        b"WARC/1.0\nWARC-Type: response\nWARC-Target-URI: http://example.org/lines\n"
        b"WARC-Date: 2021-01-01T00:00:00Z\nwarc-payload-digest:sha1:LF\nContent-Length: 16\n"
        b"Content-Type: application/http\n\nHTTP/1.0 301 X\r\n\n\n")
    add_exchange(crawl, "POST", SITE + "search", "q=dogs", "text/plain", b"found dogs")
    add_exchange(crawl, "POST", SITE + "search", "q=cats", "text/plain", b"found cats")
    add_exchange(crawl, "HEAD", SITE + "headed", "", "text/html", b"")
    add_exchange(crawl, "GET", SITE + "got", "", "text/html", b"got")
    for number in range(PAGES):
        crawl.add_response(
            f"{SITE}dir-{draw.randrange(9)}/Page?b={number}&a=\u00fc",
            f"20{draw.randint(10, 24)}-0{draw.randint(1, 9)}-11T10:20:30Z",
            draw.randbytes(draw.choice((10, 1000, 5000))),
            f"Content-Type: {draw.choice(('text/html; charset=utf-8', 'image/png'))}")
    return crawl


class WebTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        crawl = make_crawl()
        cls.records = crawl.records
        cls.warc = b"".join(cls.records)
        crawl.write(cls.directory / "web.warc.gz")
        (cls.directory / "files").mkdir()
        (cls.directory / "files" / "plain.txt").write_bytes(b"no crawl")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            build(cls.directory / "web.quire", cls.directory / "web.warc.gz"),
            build(cls.directory / "files.quire", cls.directory / "files")]))
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))
        cls.archive = cls.client["web"]

    def expected(self):
        """(time, fields) of each line, by warcio and the documents' positions."""
        found = []
        with self.archive.open_space() as file:
            iterator = ArchiveIterator(file)
            for record, document in zip(iterator, self.archive):
                kind = record.rec_type
                date = record.rec_headers.get_header("WARC-Date")
                if kind not in captures.INDEXED_TYPES or not date.startswith("20"):
                    continue
                http = record.http_headers
                fields = {"url": record.rec_headers.get_header("WARC-Target-URI"),
                          "length": str(document.size),
                          "offset": str(iterator.get_record_offset()), "filename": "space"}
                mime = record.rec_headers.get_header("Content-Type") if http is None \
                    else http.get_header("Content-Type")
                if kind == "revisit":
                    mime = "warc/revisit"
                if mime:
                    fields["mime"] = mime.split(";")[0]
                if http is not None and http.get_statuscode().isdigit():
                    fields["status"] = http.get_statuscode()
                digest = record.rec_headers.get_header("WARC-Payload-Digest")
                if digest:
                    fields["digest"] = digest
                found.append((date.translate({ord(c): None for c in "-:TZ"}), fields))
        return sorted(found, key=str)

    def test_the_index_has_what_warcio_finds(self):
        out = self.directory / "out.cdxj"
        self.assertEqual(web.main(["cdxj", "web", "-o", str(out), "--server",
                                   self.server.address]), 0)
        lines = out.read_bytes().splitlines()
        self.assertEqual(lines, sorted(lines))
        found, methods = [], []
        for line in lines:
            key, time, fields = line.decode().split(" ", 2)
            fields = json.loads(fields)
            if "__wb_method" in key:
                methods.append(key)
                key = key.partition("?")[0]
            self.assertEqual(key, captures.surt_key(fields["url"]))
            offset, length = int(fields["offset"]), int(fields["length"])
            self.assertIn(self.warc[offset:offset + length], self.records)
            found.append((time, fields))
        self.assertEqual(sorted(found, key=str), self.expected())
        self.assertGreater(len(found), PAGES)
        self.assertEqual(methods, METHOD_KEYS)

    def test_an_archive_without_an_index(self):
        """The heads of its records give the same lines, except for keys with methods."""
        out = self.directory / "index.cdxj"
        arguments = ["cdxj", "web", "--server", self.server.address, "-o", str(out)]
        self.assertEqual(web.main(arguments), 0)
        expected = sorted(re.sub(r"\?__wb_method=\S+", "", line)
                          for line in out.read_text().splitlines())
        with contextlib.redirect_stderr(io.StringIO()) as said, \
                unittest.mock.patch.object(captures, "has_index", return_value=False):
            self.assertEqual(web.main(arguments), 0)
        self.assertIn("any method have the key of their URL", said.getvalue())
        self.assertEqual(out.read_text().splitlines(), expected)
        with tempfile.TemporaryDirectory() as name:
            with unittest.mock.patch.object(wacz, "has_index", return_value=False):
                written = wacz.write_wacz(self.archive, name, "web.wacz", "one")
            self.assertEqual((written.capture_count, written.is_indexed), (len(expected), False))
            with zipfile.ZipFile(io.BytesIO(self.assemble(pathlib.Path(name)))) as file:
                lines = gzip.decompress(file.read("indexes/index.cdx.gz")).decode()
        self.assertEqual(lines.replace("space.warc", "space").splitlines(), expected)

    def test_what_counts_as_an_index(self):
        def missing(**_):
            warnings.warn("captures are missing")
            return iter(())

        self.assertFalse(captures.has_index(unittest.mock.Mock(captures=missing)))
        self.assertFalse(captures.has_index(self.client["files"]))
        self.assertTrue(captures.has_index(self.archive))

    def test_the_index_of_the_archive(self):
        out = self.directory / "compared.cdxj"
        self.assertEqual(web.main(["cdxj", "web", "-o", str(out), "--server",
                                   self.server.address]), 0)
        expected = []
        for line in out.read_text().splitlines():
            key, time, fields = line.split(" ", 2)
            fields = json.loads(fields)
            expected.append((key, time, fields["url"], fields.get("status"), fields.get("digest"),
                             fields["offset"]))
        found = []
        for key in {key.partition(")")[0] + ")" if ")" in key else key for key, *_ in expected}:
            for each in self.archive.captures(key=key, match="prefix"):
                document = each.document
                self.assertEqual(self.archive.document(document.ordinal), document)
                found.append((each.key, captures.timestamp(document.capture_time_ms), each.url,
                              each.status and str(each.status), each.digest,
                              str(document.offset)))
        self.assertEqual(sorted(found, key=str), sorted(expected, key=str))
        self.assertEqual(self.archive.info().capture_count, len(expected))
        every = [(each.key, str(each.document.offset)) for each in self.archive.captures()]
        self.assertEqual([key for key, _ in every], sorted(key for key, _ in every))
        self.assertEqual(sorted(every), sorted((each[0], each[5]) for each in expected))

    def test_captures_of_a_url(self):
        def times(url, **options):
            return [each.document.capture_time_ms for each in self.archive.captures(url, **options)]

        url, listed = max(
            ((url, times(url)) for url in {each.name for each in self.archive.documents(
                SITE + "dir-1/")}), key=lambda each: (len(each[1]), each[0]))
        self.assertGreater(len(listed), 0)
        # Letters outside ASCII have a case.
        self.assertEqual(times(url.replace("http://www.", "HTTPS://").encode().upper().decode()),
                         listed)
        self.assertEqual(times(url, newest_first=True), listed[::-1])
        self.assertEqual(times(url, closest=listed[-1] + 5)[0], listed[-1])
        self.assertEqual(times(url, since=listed[0], until=listed[0]), listed[:1])
        self.assertEqual(times(url, until="1990"), [])
        self.assertEqual({each.status for each in self.archive.captures(
            "example.org", match="domain", where="status = 404")}, {404})

        found = next(self.archive.captures(key="org,example)/", closest="2021-01",
                                           where='status = 200 and record_type = "response"'))
        self.assertEqual(self.archive.payload(found.document.ordinal).data, b"<p>first</p>")

        async def collect():
            async with quire.connect_async(self.server.address) as client:
                return [each async for each in client["web"].captures(url)]
        self.assertEqual(asyncio.run(collect()), list(self.archive.captures(url)))

    def test_captures_that_cannot_be_listed(self):
        with self.assertRaises(quire.CapturesNotIndexed):
            list(self.client["files"].captures("example.org"))
        for options in ({"match": "host"}, {"closest": "2021"}, {"newest_first": True},
                        {"url": "a", "key": "b"}, {"url": "a", "match": "range"},
                        {"url": "a", "closest": "soon"}):
            with self.assertRaises(ValueError):
                list(self.archive.captures(**options))
        for options in ({"closest": "2021", "match": "host"}, {"where": "lang = 'de'"}):
            with self.assertRaises(quire.MalformedRequest):
                list(self.archive.captures("example.org", **options))

    def run_program(self, *arguments, **options):
        return subprocess.run([sys.executable, "-m", "quire_archive.web", *arguments], check=False,
                              capture_output=True,
                              env={**os.environ, "QUIRE_SERVER": self.server.address}, **options)

    def test_the_program(self):
        done = self.run_program("cdxj", "web", "--filename", "other.warc")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count(b'"filename": "other.warc"'),
                         len(done.stdout.splitlines()))
        self.assertIn(f"captures of web@{self.archive.info().uuid}".encode(), done.stderr)
        for arguments, message in (
                (("cdxj", "absent"), b"absent"), (("cdxj", "web", "--filename", ""), b"--filename"),
                (("wacz", "web", "--dir", "/absent"), b"not a directory"),
                (("wacz", "web", "--dir", ".", "--name", "../x"), b"--name"),
                (("wacz", "files", "--dir", self.directory), b"no captures"),
                (("cdxj", "web", "-o", "/absent/file"),
                 b"/absent/file: cannot write to the directory /absent: No such file")):
            done = self.run_program(*arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(message, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = self.run_program("cdxj", "files")
        self.assertEqual((done.returncode, done.stdout), (0, b""))
        self.assertIn(b"no records of a crawl", done.stderr)
        self.assertEqual(self.run_program("cdxj").returncode, 2)
        self.assertEqual(list(self.directory.glob(".*")), [])

    def test_a_reader_that_ends_early(self):
        with subprocess.Popen([sys.executable, "-m", "quire_archive.web", "cdxj", "web", "--server",
                               self.server.address], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as program:
            program.stdout.close()
            self.assertEqual(program.stderr.read(), b"")
        self.assertEqual(program.returncode, 141)

    # --- WACZ.

    def assemble(self, directory, name="web.wacz"):
        """The bytes that quire-http serves."""
        described = json.loads((directory / f"{name}.pieces.json").read_text())
        self.assertEqual((described["format"], described["archive"]), (1, "web"))
        self.assertEqual(described["uuid"], self.archive.info().uuid)
        parts = [self.warc if piece.get("space") else (directory / piece["file"]).read_bytes()
                 for piece in described["pieces"]]
        self.assertEqual([len(part) for part in parts],
                         [piece["size_bytes"] for piece in described["pieces"]])
        return b"".join(parts)

    def test_a_wacz(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            with contextlib.redirect_stderr(io.StringIO()) as said, \
                    unittest.mock.patch.object(wacz, "_FIRST_PAGES_MAX", 5):
                self.assertEqual(web.main(["wacz", "web", "--dir", name, "--title", "A crawl",
                                           "--server", self.server.address]), 0)
            self.assertIn(f"a WACZ of {len(self.assemble(directory))}", said.getvalue())
            path = directory / "whole.wacz"
            path.write_bytes(self.assemble(directory))
            self.check_wacz(path)
            subprocess.run(["unzip", "-tqq", path], check=True)
            copy = build(directory / "copy.quire", path)
            # The WARC in a WACZ is not a deposited file.
            records = build(directory / "records.quire", "--records-only",
                            self.directory / "web.warc.gz")
            self.assertEqual(quired_uuid(copy), quired_uuid(records))

    def check_wacz(self, path):
        with zipfile.ZipFile(path) as file:
            self.assertIsNone(file.testzip())
            self.assertTrue(all(info.compress_type == zipfile.ZIP_STORED
                                for info in file.infolist()))
            package = json.loads(file.read("datapackage.json"))
            self.assertEqual(package["title"], "A crawl")
            self.assertEqual(json.loads(file.read("datapackage-digest.json"))["hash"],
                             f"sha256:{hashlib.sha256(file.read('datapackage.json')).hexdigest()}")
            # As the specification of data packages has it.
            for entry in package["resources"]:
                self.assertRegex(entry["name"], r"\A[-a-z0-9._/]+\Z")
            self.assertEqual(
                {entry["path"]: (entry["hash"], entry["bytes"]) for entry in package["resources"]},
                {name: (f"sha256:{hashlib.sha256(file.read(name)).hexdigest()}",
                        len(file.read(name)))
                 for name in file.namelist() if not name.startswith("datapackage")})
            self.assertEqual(file.read("archive/space.warc"), self.warc)
            index = file.read("indexes/index.idx").decode().splitlines()
            data = file.read("indexes/index.cdx.gz")
            pages, further = ([json.loads(line) for line in file.read(f"pages/{name}").splitlines()]
                              for name in ("pages.jsonl", "extraPages.jsonl"))
        self.assertEqual(index.pop(0), '!meta 0 {"format": "cdxj-gzip-1.0", '
                         '"filename": "index.cdx.gz"}')
        lines, at = [], 0
        for entry in index:
            key, time, where = entry.split(" ", 2)
            where = json.loads(where)
            self.assertEqual(where["offset"], at)
            at += where["length"]
            part = data[where["offset"]:at]
            self.assertEqual(where["digest"], f"sha256:{hashlib.sha256(part).hexdigest()}")
            text = gzip.decompress(part).decode().splitlines()
            self.assertTrue(text[0].startswith(f"{key} {time} {{"))
            lines += text
        self.assertEqual(at, len(data))
        self.assertGreater(len(index), 1)
        plain = self.run_program("cdxj", "web", "--filename", "space.warc").stdout
        self.assertEqual(lines, plain.decode().splitlines())
        html = [fields["url"] for _, fields in self.expected()
                if fields.get("mime") == "text/html" and fields.get("status") == "200"
                and fields["url"] != SITE + "headed"]
        self.assertEqual({pages.pop(0)["format"], further.pop(0)["format"]}, {"json-pages-1.0"})
        self.assertEqual(len(pages), 5)
        self.assertEqual(sorted(page["url"] for page in pages + further), sorted(html))

    def test_a_wacz_replaces_the_one_before(self):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            wacz.write_wacz(self.archive, name, "web.wacz", "one")
            first = set(os.listdir(name))
            self.assertEqual(len(first), 3)
            (directory / ".unrelated").write_bytes(b"")
            wacz.write_wacz(self.archive, name, "web.wacz", "two")
            self.assertEqual(len(os.listdir(name)), 4)
            self.assertEqual(len(set(os.listdir(name)) & first), 1)
            with zipfile.ZipFile(io.BytesIO(self.assemble(directory))) as file:
                self.assertEqual(json.loads(file.read("datapackage.json"))["title"], "two")
                # It has few pages.
                self.assertNotIn("pages/extraPages.jsonl", file.namelist())
            # A failure leaves it.
            with self.assertRaisesRegex(ValueError, "no captures"):
                wacz.write_wacz(self.client["files"], name, "web.wacz")
            self.assertEqual(len(os.listdir(name)), 4)

    def test_equal_archives_give_equal_bytes(self):
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"
        self.addCleanup(os.environ.pop, "SOURCE_DATE_EPOCH")
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
            for name in (one, two):
                wacz.write_wacz(self.archive, name, "web.wacz")
            self.assertEqual(self.assemble(pathlib.Path(one)), self.assemble(pathlib.Path(two)))

    def test_members_of_more_than_4_gib(self):
        draw = random.Random(SEED)
        for sizes in ([10, 5 << 30, 10], [(1 << 32) - 1, 3], [(1 << 32) - 2, 3], [6 << 30]):
            members = [wacz.Member(f"m{number}", size, draw.getrandbits(32), "")
                       for number, size in enumerate(sizes)]
            with tempfile.TemporaryFile() as file:
                offsets = []
                for member in members:
                    offsets.append(file.tell())
                    file.write(wacz.local_header(member))
                    file.seek(member.size, os.SEEK_CUR)
                file.write(wacz.central_directory(members))
                with zipfile.ZipFile(file) as found:
                    self.assertEqual(
                        [(info.filename, info.file_size, info.compress_size, info.CRC,
                          info.header_offset) for info in found.infolist()],
                        [(member.name, member.size, member.size, member.crc, offset)
                         for member, offset in zip(members, offsets)])
                    # Checks the local header.
                    found.open(members[-1].name).close()


def arc_record(url, date, block, kind="text/html"):
    return f"{url} 192.0.2.7 {date} {kind} {len(block)}\n".encode() + block + b"\n"


def make_arc():
    """Records of an ARC file, by URL."""
    draw = random.Random(SEED)
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    description = b"1 0 InternetArchive\nURL IP-address Archive-date Content-type " \
        b"Archive-length\n<?xml?>\n"
    records = {"filedesc://x.arc": ("20050622190800", description, "text/plain")}
    for number in range(40):
        body = draw.randbytes(draw.choice((0, 10, 3000)))
        records[f"{SITE}{number}"] = (f"200506221908{number:02}", http + b"\r\n" + body)
    records |= {
        f"{SITE}a b": ("20050622190901", http + b"\r\nspace"),
        f"{SITE}gone": ("20050622190902", b"HTTP/1.0 404 Gone\r\n\r\n"),
        f"{SITE}coded": ("20050622190903", http + b"Content-Encoding: gzip\r\n\r\n"
                         + gzip.compress(b"coded", mtime=0)),
        f"{SITE}large": ("20050622190904", http + b"\r\n" + draw.randbytes(700_000)),
        "dns:example.org": ("20050622190905", b"20050622190905\nexample.org. 1 IN A 192.0.2.7\n",
                            "text/dns"),
        f"{SITE}minute": ("200506221909", http + b"\r\nminute"),
        f"{SITE}undated": ("null", http + b"\r\nundated")}
    return records


class ArcTest(unittest.TestCase):
    """ARC files: what becomes of them is what warcio makes of them."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.records = make_arc()
        arc = cls.directory / "x.arc.gz"
        arc.write_bytes(b"".join(gzip.compress(arc_record(url, *record), mtime=0)
                                 for url, record in cls.records.items()))
        (cls.directory / "files").mkdir()
        for number in range(30):
            (cls.directory / "files" / f"{number}.txt").write_bytes(b"text" * number)
        done = subprocess.run([QUIRED, "build", "--force", "-o", cls.directory / "arc.quire", arc],
                              check=True, capture_output=True)
        cls.messages = done.stderr.decode()
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            cls.directory / "arc.quire",
            build(cls.directory / "files.quire", cls.directory / "files")]))
        with contextlib.redirect_stdout(io.StringIO()):
            Recompressor(str(arc), str(cls.directory / "warcio.warc.gz")).recompress()

    def quire(self, *arguments):
        done = subprocess.run([QUIRE, *arguments], check=False, capture_output=True,
                              env={"QUIRE_SERVER": self.server.address})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    @staticmethod
    def read_warc(path):
        """(type, headers, HTTP headers, content) of each record, all but what is random."""
        with path.open("rb") as file:
            return [(record.rec_type,
                     sorted(header for header in record.rec_headers.headers
                            if header[0] != "WARC-Record-ID"),
                     record.http_headers and str(record.http_headers), record.raw_stream.read())
                    for record in ArchiveIterator(file)]

    def test_odd_dates_are_named(self):
        self.assertIn("2 faults of records", self.messages)
        self.assertIn('got "200506221909"', self.messages)
        self.assertIn('got "null"', self.messages)

    def test_an_export_is_what_warcio_makes(self):
        path = self.directory / "quire.warc.gz"
        self.quire("export", "arc", "--warc", str(path))
        expected = self.read_warc(self.directory / "warcio.warc.gz")
        found = self.read_warc(path)
        self.assertEqual(len(found), len(self.records))
        # warcio takes the date of 12 digits for the last second of the minute, and "null" for
        # the year 2999.
        odd = [f"{SITE}minute", f"{SITE}undated"]
        for record, other, url in zip(found, expected, self.records):
            if url in odd:
                other[1].remove(next(h for h in other[1] if h[0] == "WARC-Date"))
                record[1].remove(next(h for h in record[1] if h[0] == "WARC-Date"))
            self.assertEqual(record, other)

    def test_pages_and_status(self):
        for name, page in (("a b", b"space"), ("coded", b"coded"), ("gone", b""),
                           ("undated", b"undated")):
            self.assertEqual(self.quire("get", "arc", SITE + name), page)
        self.assertEqual(self.quire("ls", "arc", "--status", "404").decode(), f"{SITE}gone\n")

    def test_the_index_has_what_warcio_finds(self):
        out = self.directory / "arc.cdxj"
        self.assertEqual(web.main(["cdxj", "arc", "-o", str(out), "--server",
                                   self.server.address]), 0)
        found = {}
        for line in out.read_text().splitlines():
            _, time, fields = line.split(" ", 2)
            fields = json.loads(fields)
            found[fields["url"].replace(" ", "%20")] = (
                time, fields.get("status"), fields["digest"], fields.get("mime"))
        expected = {}
        for kind, headers, http, _ in self.read_warc(self.directory / "warcio.warc.gz"):
            headers = dict(headers)
            url = headers.get("WARC-Target-URI")
            if kind == "response" and url != f"{SITE}undated":
                status = http.split(" ", 2)[1] if http else None
                mime = "text/dns" if http is None else found[url][3]
                time = headers["WARC-Date"].translate({ord(c): None for c in "-:TZ"})
                expected[url] = (time, status, headers["WARC-Payload-Digest"], mime)
        minute = f"{SITE}minute"
        expected[minute] = ("20050622190900", *expected[minute][1:])
        self.assertEqual(found, expected)

    def test_a_wacz_of_it_is_refused(self):
        with contextlib.redirect_stderr(io.StringIO()) as messages:
            self.assertNotEqual(web.main(["wacz", "arc", "--dir", str(self.directory), "--server",
                                          self.server.address]), 0)
        self.assertIn("comes from an ARC file", messages.getvalue())

    def test_every_record_of_files_is_a_member(self):
        path = self.directory / "files.warc.gz"
        self.quire("export", "files", "--warc", str(path))
        records = self.read_warc(path)
        self.assertEqual([kind for kind, *_ in records], ["warcinfo"] + 30 * ["resource"])
        self.assertEqual(sorted(len(content) for _, _, _, content in records[1:]),
                         [4 * number for number in range(30)])


def quired_uuid(archive):
    said = subprocess.run([QUIRED, "inspect", "--json", archive], check=True, capture_output=True)
    return json.loads(said.stdout)["uuid"]


if __name__ == "__main__":
    unittest.main()
