#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a crawl that is built, served and read with the programs themselves.

The WARC is like a crawler's: a gzip member for each record, requests and responses in
pairs, the same pages several times, revisits.

usage: crawl_test.py QUIRED QUIRE
"""
import base64
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

PAGE = "http://example.org/"
OFTEN = "http://example.org/often"
OFTEN_COUNT = 500


def digest_of(payload):
    return "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()


class Crawl:
    """The records of a WARC, in order."""

    def __init__(self):
        self.records = []

    def add(self, kind, uri, date, block, content_type, **fields):
        header = {"WARC-Type": kind, "WARC-Record-ID": f"<urn:uuid:{len(self.records):036}>",
                  "WARC-Date": date, "Content-Type": content_type,
                  "Content-Length": str(len(block))}
        if uri:
            header["WARC-Target-URI"] = uri
        header.update({name.replace("_", "-"): value for name, value in fields.items()})
        lines = "".join(f"{name}: {value}\r\n" for name, value in header.items())
        self.records.append(b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n")
        return self.records[-1]

    def add_response(self, uri, date, body, *fields, payload=None, **warc_fields):
        """Adds a response and its request, in a crawl's order."""
        http = "".join(f"{field}\r\n" for field in ("HTTP/1.1 200 OK", *fields))
        record = self.add("response", uri, date, http.encode() + b"\r\n" + body,
                          "application/http; msgtype=response",
                          WARC_Payload_Digest=digest_of(payload or body), **warc_fields)
        self.add("request", uri, date, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n",
                 "application/http; msgtype=request")
        return record

    def add_revisit(self, uri, date, of_uri, of_date, payload):
        self.add("revisit", uri, date, b"HTTP/1.1 200 OK\r\n\r\n",
                 "application/http; msgtype=response",
                 WARC_Profile="http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
                 WARC_Refers_To_Target_URI=of_uri, WARC_Refers_To_Date=of_date,
                 WARC_Payload_Digest=digest_of(payload))

    def write(self, path):
        with open(path, "wb") as file:
            for record in self.records:
                file.write(gzip.compress(record, mtime=0))


def chunked(body, size):
    pieces = [body[at:at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class CrawlTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        crawl = Crawl()
        crawl.add("warcinfo", None, "2021-01-01T00:00:00Z", b"software: test\r\n",
                  "application/warc-fields")
        cls.first = crawl.add_response(PAGE, "2021-01-01T00:00:00Z", b"<p>first</p>",
                                       "Content-Type: text/html", "Content-Length: 12")
        coded = gzip.compress(b"<p>third</p>", mtime=0)
        cls.third = crawl.add_response(
            PAGE, "2022-06-10T08:00:00Z", chunked(coded, 7), "Content-Type: text/html",
            "Content-Encoding: gzip", "Transfer-Encoding: chunked")
        # Captures need not be in the order of their times.
        cls.second = crawl.add_response(PAGE, "2022-05-31T23:59:59Z", b"<p>second</p>")
        crawl.add_revisit(PAGE, "2022-07-01T00:00:00Z", PAGE, "2021-01-01T00:00:00Z",
                          b"<p>first</p>")
        crawl.add_response("http://example.org/lost", "2021-01-01T00:00:00Z", b"held")
        crawl.add_revisit("http://example.org/lost", "2022-01-01T00:00:00Z",
                          "http://other.org/", "2020-01-01T00:00:00Z", b"not held")
        crawl.add("resource", "file:///notes", "2021-01-01T00:00:00Z", b"notes", "text/plain")
        crawl.add("conversion", "http://example.org/text", "2021-01-01T00:00:00Z", b"as text",
                  "text/plain")
        crawl.add("metadata", "http://example.org/text", "2021-01-02T00:00:00Z", b"a: b",
                  "application/warc-fields")
        crawl.add_response("http://example.org/cut", "2021-01-01T00:00:00Z", b"only so much",
                           "Content-Length: 9999", WARC_Truncated="length")
        cls.large = b"".join(b"line %d of a large page\n" % number for number in range(300_000))
        crawl.add_response("http://example.org/large", "2021-01-01T00:00:00Z",
                           zlib.compress(cls.large), "Content-Encoding: deflate")
        cls.start = datetime.datetime(2010, 1, 1, tzinfo=datetime.timezone.utc)
        for day in range(OFTEN_COUNT):
            # Backwards in time, so that the last one is not the newest.
            crawl.add_response(OFTEN, cls.often_date(OFTEN_COUNT - 1 - day),
                               b"day %d" % (OFTEN_COUNT - 1 - day))
        crawl.add("conversion", OFTEN, "2022-01-01T00:00:00Z", b"as text", "text/plain")
        cls.records = crawl.records
        crawl.write(f"{cls.directory}/crawl.warc.gz")
        cls.said = subprocess.run(
            [QUIRED, "build", "-o", f"{cls.directory}/web.quire", "--dictionary-size", "256KiB",
             f"{cls.directory}/crawl.warc.gz"], check=True, capture_output=True, text=True).stderr
        cls.server = cls.enterClassContext(
            LiveServer(QUIRED, [f"web={cls.directory}/web.quire"]))

    @classmethod
    def often_date(cls, day):
        return (cls.start + datetime.timedelta(days=day)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def quire(self, *arguments, code=0):
        """Returns (standard output, standard error)."""
        run = subprocess.run([QUIRE, "--server", self.server.address, "--cache-dir", "-", *arguments],
                             capture_output=True, check=False)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout, run.stderr.decode()

    def test_captures_of_a_url(self):
        def listed(*arguments):
            lines = self.quire("captures", "web", *arguments)[0].decode().splitlines()
            self.assertEqual(lines[0].split(), ["TIME", "STATUS", "TYPE", "NUMBER", "URL"])
            return [line.split() for line in lines[1:]]

        found = listed("HTTPS://www.Example.org")
        self.assertEqual([(time[:10], status, kind) for time, status, kind, *_ in found], [
            ("2021-01-01", "200", "response"), ("2022-05-31", "200", "response"),
            ("2022-06-10", "200", "response"), ("2022-07-01", "200", "revisit")])
        self.assertEqual({url for *_, url in found}, {PAGE})
        # Numbers are those that get takes.
        self.assertEqual(self.get("--ordinal", found[1][3]), b"<p>second</p>")
        self.assertEqual([line[0][:7] for line in listed(PAGE, "--closest", "2022-06-05")],
                         ["2022-05", "2022-06", "2022-07", "2021-01"])
        self.assertEqual(listed(PAGE, "--newest-first", "--limit", "2"), found[:1:-1])
        self.assertEqual(listed(PAGE, "--from", "2022", "--to", "2022-06"), found[1:3])
        self.assertEqual(len(listed("example.org", "--match", "host", "--where",
                                    "url prefix 'http://example.org/often'")), OFTEN_COUNT + 1)
        self.assertEqual(listed("org,example)/", "--key"), found)
        line = json.loads(self.quire("captures", "web", PAGE, "--limit", "1", "--json")[0])
        self.assertEqual((line["key"], line["url"], line["http_status"], line["digest"]),
                         ("org,example)/", PAGE, 200, digest_of(b"<p>first</p>")))
        self.assertIn('no capture of "http://none/"', self.quire(
            "captures", "web", "http://none/", code=1)[1])
        for arguments in (("--closest", "soon"), ("--match", "some"), ("--limit", "0"),
                          ("--closest", "2022", "--newest-first")):
            self.quire("captures", "web", PAGE, *arguments, code=2)

    def test_get_by_the_index(self):
        out, messages = self.quire("get", "web", "www.example.org", "--closest", "2022-06-05")
        self.assertEqual(out, b"<p>second</p>")
        self.assertIn("this is the closest capture, of 2022-05-31T23:59:59.000Z", messages)
        self.assertEqual(self.get("HTTPS://Example.org:443/#top", "--closest", "2022-06-10T08"),
                         b"<p>third</p>")
        self.assertEqual(self.get("example.org", "--closest", "20220610080000", "--record"),
                         self.third)
        # The newest is a revisit.
        self.assertEqual(self.get("org,example)/", "--key"), b"<p>first</p>")
        self.assertEqual(self.get("org,example)/", "--key", "--record-type", "response"),
                         b"<p>third</p>")
        self.assertIn("has none of this URL", self.quire(
            "get", "web", "http://none/", "--closest", "2022", code=1)[1])
        for arguments in (("--closest", "soon"), ("--closest", "2022", "--at", "2022"),
                          ("--key", "--occurrence", "1"), ("--key", "--ordinal")):
            self.quire("get", "web", PAGE, *arguments, code=2)

    def test_inspect_counts_captures(self):
        def inspect(*options):
            return subprocess.run([QUIRED, "inspect", *options, f"{self.directory}/web.quire"],
                                  check=True, capture_output=True, text=True).stdout
        found = json.loads(inspect("--json"))["captures"]
        indexed = ("response", "revisit", "resource", "conversion")
        self.assertEqual(found["count"], sum(
            b"WARC-Type: " + kind.encode() in record for record in self.records
            for kind in indexed))
        self.assertEqual(found["unindexed_document_count"], 0)
        self.assertLess(0, found["stored_size_bytes"])
        self.assertLess(found["stored_size_bytes"], 100 * found["count"])
        self.assertLess(8 * found["memory_bytes"], 4 * found["count"])
        self.assertRegex(inspect(), rf"captures +{found['count']}, .* bytes per capture; in memory")
        self.assertEqual(json.loads(self.quire("info", "web", "--json")[0])["capture_count"],
                         found["count"])

    def get(self, *arguments):
        out, messages = self.quire("get", "web", *arguments)
        self.assertEqual(messages, "")
        return out

    def test_a_url_is_its_newest_page(self):
        self.assertIn("an id reads the newest of them, or the newest response of a crawl", self.said)
        # The newest capture is a revisit of the first.
        self.assertEqual(self.get(PAGE), b"<p>first</p>")
        self.assertEqual(self.get("file:///notes"), b"notes")
        # A conversion of it is newer.
        self.assertEqual(self.get(OFTEN), b"day %d" % (OFTEN_COUNT - 1))
        _, messages = self.quire("get", "web", "http://example.org/text", code=1)
        self.assertIn("--record-type names others", messages)
        self.assertEqual(self.get("http://example.org/text", "--record-type", "conversion"),
                         b"as text")
        self.assertEqual(self.get("http://example.org/large"), self.large)

    def test_record_is_what_was_crawled(self):
        self.assertEqual(self.get(PAGE, "--record"), self.third)
        self.assertEqual(self.get(PAGE, "--record", "--at", "2021"), self.first)
        self.assertEqual(self.get(PAGE, "--record", "--occurrence", "4"), self.second)
        self.assertEqual(self.quire("scan", "web")[0], b"".join(self.records))

    def test_at_is_the_page_of_that_time(self):
        for time, expected in [
                ("2022-06", b"<p>third</p>"), ("2022-06-10T07", b"<p>second</p>"),
                ("2022-05", b"<p>second</p>"), ("20220531235959", b"<p>second</p>"),
                ("2022-05-31T23:59:58Z", b"<p>first</p>"), ("2021", b"<p>first</p>"),
                ("2023", b"<p>first</p>")]:
            self.assertEqual(self.get(PAGE, "--at", time), expected, time)
        for day in range(0, OFTEN_COUNT, 37):
            self.assertEqual(self.get(OFTEN, "--at", self.often_date(day)), b"day %d" % day)
        out, messages = self.quire("get", "web", PAGE, "--at", "2020")
        self.assertEqual(out, b"<p>first</p>")
        self.assertIn("this is the oldest, of 2021-01-01T00:00:00.000Z", messages)
        _, messages = self.quire("get", "web", PAGE, "--at", "last year", code=2)
        self.assertIn("--at: a time must look like 2022, 2022-06", messages)

    def test_record_type_selects(self):
        self.assertIn(b"WARC-Type: request", self.get(PAGE, "--record-type", "request", "--record"))
        self.assertEqual(self.get(PAGE, "--record-type", "response"), b"<p>third</p>")
        # A revisit is followed in all forms of names.
        self.assertEqual(self.get(PAGE, "--record-type", "revisit"), b"<p>first</p>")
        self.assertIn(b"WARC-Type: revisit", self.get(PAGE, "--record-type", "revisit", "--record"))
        info = f"urn:uuid:{0:036}"
        self.assertEqual(self.get(info, "--record-type", "warcinfo"), b"software: test\r\n")
        _, messages = self.quire("get", "web", info, code=1)
        self.assertIn('there is 1, of type "warcinfo"; --record-type names others', messages)

    def test_revisits_say_where_they_refer(self):
        out, messages = self.quire("get", "web", "http://example.org/lost")
        self.assertEqual(out, b"held")
        self.assertIn('a revisit of "http://other.org/" of "2020-01-01T00:00:00Z", which the '
                      "archive does not hold", messages)

    def test_a_truncated_payload_is_told(self):
        out, messages = self.quire("get", "web", "http://example.org/cut", code=1)
        self.assertEqual(out, b"only so much")
        self.assertIn("cut short by the crawler (WARC-Truncated: length)", messages)
        path = f"{self.directory}/cut.html"
        self.quire("get", "web", "http://example.org/cut", "-o", path, code=1)
        self.assertFalse(os.path.exists(path))

    def test_listings_show_type_and_time(self):
        lines = self.quire("ls", "-l", "web", PAGE)[0].decode().splitlines()
        page = [line.split()[1:3] for line in lines if line.endswith(f" {PAGE}")]
        self.assertEqual(page, [
            ["2021-01-01T00:00:00.000Z", "response"], ["2021-01-01T00:00:00.000Z", "request"],
            ["2022-06-10T08:00:00.000Z", "response"], ["2022-06-10T08:00:00.000Z", "request"],
            ["2022-05-31T23:59:59.000Z", "response"], ["2022-05-31T23:59:59.000Z", "request"],
            ["2022-07-01T00:00:00.000Z", "revisit"]])
        answer = json.loads(self.quire("get", "web", PAGE, "--json")[0])
        self.assertEqual(base64.b64decode(answer["data_base64"]), b"<p>first</p>")
        self.assertEqual(answer["record_type"], "response")
        self.assertEqual(answer["http_status"], 200)


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
