# SPDX-License-Identifier: Apache-2.0
"""Crawls of wget and of warcio, and a WACZ of py-wacz: deposited, appended, deduplicated, taken
down by domain, exported, and compared with what the crawlers wrote.

Environment: QUIRE_HTTP is the gateway.
"""
import gzip
import hashlib
import http.server
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.parse
import urllib.request
import warnings

from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from package_harness import LiveServer, QUIRE, QUIRED
# pylint: disable=wrong-import-order
from live_gateway import LiveGateway

QUIRE_HTTP = os.environ["QUIRE_HTTP"]
HOSTS = ("news.test", "www.news.test", "archive.news.test", "other.test")
TAKEN_DOWN = ("news.test", ".news.test")
PAGE_COUNT = 40


def page(host, number):
    """A page with links to the next ones of all hosts."""
    links = "".join(f'<a href="http://{other}/page/{number + 1}">{other}</a>' for other in HOSTS
                    if number + 1 < PAGE_COUNT)
    return (f"<!doctype html><title>{host} {number}</title>{links}"
            + f"<p>Paragraph of {host}, page {number}.</p>" * 30).encode()


class Site(http.server.BaseHTTPRequestHandler):
    """A proxy that is all hosts at once."""

    def do_GET(self):  # pylint: disable=invalid-name
        url = urllib.parse.urlsplit(self.path)
        number = url.path.removeprefix("/page/")
        found = url.hostname in HOSTS and number.isdigit()
        body = page(url.hostname, int(number)) if found else b"nothing here"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def crawl_with_wget(directory, name, proxy, *options):
    """Returns the .warc.gz of a crawl."""
    done = subprocess.run(
        ["wget", "--no-config", "--quiet", "--recursive", "--level=inf", "--span-hosts",
         "--delete-after", "-e", "robots=off", "-e", f"http_proxy={proxy}",
         f"--warc-file={name}", "--warc-cdx", *options, f"http://{HOSTS[0]}/page/0"],
        cwd=directory, check=False, capture_output=True, text=True)
    # 8: the site answered 404 to some request.
    assert done.returncode in (0, 8), done.stderr
    return directory / f"{name}.warc.gz"


def write_with_warcio(path):
    with open(path, "wb") as file, warnings.catch_warnings():
        # warcio leaves its buffers to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        writer = WARCWriter(file, gzip=True)
        for number in range(PAGE_COUNT):
            for host in HOSTS:
                headers = StatusAndHeaders("200 OK", [("Content-Type", "text/html")],
                                           protocol="HTTP/1.1")
                writer.write_record(writer.create_warc_record(
                    f"https://{host}:443/page/{number}", "response",
                    payload=io.BytesIO(page(host, number)), http_headers=headers,
                    warc_headers_dict={"WARC-Date": "2023-03-04T05:06:07Z"}))


def records_of(path):
    """(type, URI, date, digest of the block) of each record, as warcio reads them."""
    with open(path, "rb") as file:
        return [(record.rec_type, record.rec_headers.get_header("WARC-Target-URI"),
                 record.rec_headers.get_header("WARC-Date"),
                 hashlib.sha256(record.raw_stream.read()).hexdigest())
                for record in ArchiveIterator(file, no_record_parse=True)]


def is_taken_down(record):
    host = urllib.parse.urlsplit((record[1] or "").strip("<>")).hostname or ""
    return host == TAKEN_DOWN[0] or host.endswith(TAKEN_DOWN[1])


class DepositsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
            thread = threading.Thread(target=site.serve_forever, daemon=True)
            thread.start()
            proxy = f"http://127.0.0.1:{site.server_port}/"
            cls.wget = crawl_with_wget(cls.directory, "wget", proxy)
            cls.again = crawl_with_wget(cls.directory, "again", proxy)
            cls.revisits = crawl_with_wget(cls.directory, "revisits", proxy,
                                           f"--warc-dedup={cls.directory}/wget.cdx")
            site.shutdown()
            thread.join()
        cls.warcio = cls.directory / "warcio.warc.gz"
        write_with_warcio(cls.warcio)
        cls.files = [cls.wget, cls.again, cls.revisits, cls.warcio]
        cls.records = {path.name: records_of(path) for path in cls.files}

    def run_program(self, *arguments, code=0):
        done = subprocess.run([*map(str, arguments)], check=False, capture_output=True)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done.stdout, done.stdout.decode(errors="replace") + done.stderr.decode()

    def quired(self, *arguments, code=0):
        return self.run_program(QUIRED, *arguments, code=code)[1]

    def quire(self, archive, *arguments, code=0):
        return self.run_program(QUIRE, "--archive", archive, *arguments, code=code)[0]

    def grown(self, name):
        """An archive of one crawl to which the others were appended."""
        archive = self.directory / name
        said = self.quired("build", "-o", archive, self.files[0])
        for path in self.files[1:]:
            said += self.quired("append", archive, path)
        self.assertNotIn("not kept", said)
        self.assertEqual(self.records_in(archive),
                         [record for path in self.files for record in self.records[path.name]])
        return archive

    def records_in(self, archive):
        path = self.directory / "exported.warc.gz"
        path.unlink(missing_ok=True)
        self.quire(archive, "export", "--warc", path)
        return records_of(path)

    def check_files(self, archive):
        for path in self.files:
            self.assertEqual(self.quire(archive, "get", "--file", path.name), path.read_bytes())
        self.quired("verify", "--quiet", archive)

    def test_crawls_differ_where_they_should(self):
        kinds = [kind for kind, *_ in self.records[self.revisits.name]]
        self.assertGreater(kinds.count("revisit"), PAGE_COUNT)
        for path in self.files:
            self.assertGreaterEqual(len(self.records[path.name]), PAGE_COUNT * len(HOSTS))

    def test_appends_and_deduplication_keep_files(self):
        archive = self.grown("grown.quire")
        self.check_files(archive)
        size = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
        self.quired("compact", "--all", "--reorder", "dedup", archive)
        self.check_files(archive)
        compact = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
        # The dictionary has all of so little text: nothing can be won.
        self.assertLess(compact, 1.05 * size)
        whole = self.directory / "whole.quire"
        self.quired("build", "-o", whole, *self.files)
        self.check_files(whole)

    def test_take_down_by_domain(self):
        archive = self.grown("redacted.quire")
        every = self.records_in(archive)
        rule = f'domain "{TAKEN_DOWN[0]}"'
        listed = self.quire(archive, "ls", "--where", rule).decode().splitlines()
        gone = [record for record in every if is_taken_down(record)]
        self.assertEqual(len(listed), len(gone))
        self.quired("redact", archive, "--where", rule)
        self.assertEqual(self.records_in(archive),
                         [record for record in every if not is_taken_down(record)])
        # Nothing is found.
        self.assertEqual(self.quire(archive, "ls", "--where", rule, code=1), b"")
        self.quired("verify", "--quiet", archive)
        with LiveServer(QUIRED, [archive]) as server, LiveGateway(
                QUIRE_HTTP, server.address) as gateway:
            for path in self.files:
                with self.assertRaises(urllib.error.HTTPError) as failed:
                    urllib.request.urlopen(f"{gateway.url}/v1/redacted/file/{path.name}")
                with failed.exception:
                    self.assertEqual(failed.exception.code, 451)
            query = urllib.parse.urlencode({"url": f"*.{TAKEN_DOWN[0]}"})
            with urllib.request.urlopen(f"{gateway.url}/v1/redacted/cdx?{query}") as answer:
                self.assertEqual(answer.read(), b"")
            with urllib.request.urlopen(f"{gateway.url}/v1/redacted/cdx?url=*.other.test"
                                        ) as answer:
                self.assertGreater(len(answer.read().splitlines()), 3 * PAGE_COUNT)

    def test_offsets_of_an_index_of_wget(self):
        archive = self.grown("offsets.quire")
        with LiveServer(QUIRED, [archive]) as server, LiveGateway(
                QUIRE_HTTP, server.address) as gateway:
            lines = (self.directory / "wget.cdx").read_text().splitlines()
            self.assertEqual(lines[0], " CDX a b a m s k r M V g u")
            for line in lines[1::7]:
                url, *_, offset, name, uuid = line.split()
                request = urllib.request.Request(
                    f"{gateway.url}/v1/offsets/file/{pathlib.Path(name).name}",
                    headers={"Range": f"bytes={offset}-{int(offset) + 9999}"})
                with urllib.request.urlopen(request) as answer:
                    record = next(iter(ArchiveIterator(io.BytesIO(answer.read()))))
                self.assertEqual(record.rec_headers.get_header("WARC-Record-ID"), uuid)
                self.assertEqual(record.rec_headers.get_header("WARC-Target-URI").strip("<>"), url)

    def test_wacz(self):
        wacz = self.directory / "crawl.wacz"
        subprocess.run(
            [sys.executable, "-c", "from wacz.main import main; raise SystemExit(main())",
             "create", "-o", wacz, self.wget, self.warcio], check=True, capture_output=True)
        archive = self.directory / "wacz.quire"
        # Its indexes and pages are a large part of so small a crawl.
        self.assertIn("other entries than WARCs", self.quired("build", "-o", archive, wacz))
        every = sorted(self.records[self.wget.name] + self.records[self.warcio.name], key=repr)
        self.assertEqual(sorted(self.records_in(archive), key=repr), every)
        self.quired("build", "--force", "--deposited-files", "-o", archive, wacz)
        self.quired("append", archive, self.revisits)
        for change in ((), ("compact", "--all", "--reorder", "dedup", archive)):
            if change:
                self.quired(*change)
            self.assertEqual(self.quire(archive, "get", "--file", wacz.name), wacz.read_bytes())
            self.assertEqual(self.quire(archive, "get", "--file", self.revisits.name),
                             self.revisits.read_bytes())
            self.quired("verify", "--quiet", archive)
        self.quired("redact", archive, "--where", f'domain "{TAKEN_DOWN[0]}"')
        self.quired("verify", "--quiet", archive)
        self.assertIn("withdrawn", self.run_program(
            QUIRE, "--archive", archive, "get", "--file", wacz.name, code=1)[1])
        every += self.records[self.revisits.name]
        self.assertEqual(sorted(self.records_in(archive), key=repr), sorted(
            (record for record in every if not is_taken_down(record)), key=repr))

    def test_sizes(self):
        """Prints sizes next to .warc.gz."""
        archive = self.directory / "sizes.quire"
        self.quired("build", "-o", archive, *self.files)
        size = sum(file.stat().st_size for file in archive.rglob("*") if file.is_file())
        given = sum(path.stat().st_size for path in self.files)
        text = sum(len(gzip.decompress(path.read_bytes())) for path in self.files)
        print(f".warc.gz {given:,} bytes of {text:,}, archive {size:,}")
        self.assertLess(size, given)


if __name__ == "__main__":
    unittest.main()
