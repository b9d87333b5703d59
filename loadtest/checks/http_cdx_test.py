#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: captures by URL, from the indexes of archives.

usage: http_cdx_test.py QUIRED QUIRE_HTTP
"""
import base64
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import build, PROGRAMS, response, run_tests, warc_record
from live_gateway import LiveGateway
from live_server import LiveServer

PAGES = 700


def page(number):
    return f"http://example.org/page-{number:04}"


def digest(body):
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


def capture(uri, date, body):
    """A response that states the digest of its body."""
    record = response(uri, date, body, "Content-Type: text/html")
    return record.replace(b"WARC-Date:", f"WARC-Payload-Digest: {digest(body)}\r\n".encode() +
                          b"WARC-Date:", 1)


def crawl(path, records):
    path.write_bytes(b"".join(gzip.compress(record) for record in records))
    return path


def post(uri, date, sent, body):
    """A POST request and its answer."""
    head = f"POST {urllib.parse.urlsplit(uri).path} HTTP/1.1\r\n" \
           f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(sent)}\r\n\r\n"
    return [warc_record("response", uri, date, b"HTTP/1.1 200 OK\r\n\r\n" + body,
                        "application/http; msgtype=response", WARC_Record_ID="<urn:uuid:answer>"),
            warc_record("request", uri, date, head.encode() + sent,
                        "application/http; msgtype=request", WARC_Record_ID="<urn:uuid:question>",
                        WARC_Concurrent_To="<urn:uuid:answer>")]


class CdxTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-cdx-")))
        cls.root = [capture("http://www.example.org/", f"20{year}-06-01T12:00:00Z",
                            b"<p>%d</p>" % year) for year in (19, 21, 23)]
        cls.old = crawl(cls.directory / "old.warc.gz", [
            *cls.root,
            *(capture(page(number), "2021-01-01T00:00:00Z", b"page %d" % number)
              for number in range(PAGES)),
            *post("http://example.org/search", "2021-01-01T00:00:00Z", b"q=cats&lang=en", b"cats"),
            warc_record("response", "http://example.org/moved", "2021-02-01T00:00:00Z",
                        b"HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n",
                        "application/http; msgtype=response"),
            warc_record("metadata", "http://example.org/", "2021-01-01T00:00:00Z", b"a: b",
                        "application/warc-fields"),
            capture("http://blog.example.org/a b", "2021-01-01T00:00:00Z", b"blog")])
        cls.new = crawl(cls.directory / "new.warc.gz", [
            capture("https://example.org/", "2022-06-01T12:00:00Z", b"<p>22</p>"),
            warc_record("revisit", "http://example.org/", "2024-06-01T12:00:00Z",
                        b"HTTP/1.1 200 OK\r\n\r\n", "application/http; msgtype=response"),
            capture("http://example.com/", "2022-01-01T00:00:00Z", b"elsewhere")])
        for name in "old", "new":
            subprocess.run([PROGRAMS.quired, "build", "--quiet", "-o",
                            cls.directory / f"{name}.quire", "--dictionary-size", "256KiB",
                            cls.directory / f"{name}.warc.gz"], check=True, capture_output=True)
        build(PROGRAMS.quired, cls.directory / "docs.quire", {"a.txt": b"text"})
        cls.server = cls.enterClassContext(LiveServer(
            PROGRAMS.quired,
            [f"{name}={cls.directory}/{name}.quire" for name in ("docs", "new", "old")]))
        cls.gateway = cls.enterClassContext(LiveGateway(PROGRAMS.quire_http, cls.server.address))

    def got(self, target, status=200, **headers):
        with self.gateway.connect() as connection:
            reply = connection.ask(target, **headers)
        self.assertEqual(reply.status, status, reply)
        self.assertTrue(reply.is_complete, reply)
        return reply

    def asked(self, archives, **parameters):
        """Objects of the answer."""
        reply = self.got(f"/v1/{archives}/cdx?" + urllib.parse.urlencode(
            {**parameters, "output": "json"}, doseq=True))
        return [json.loads(line) for line in reply.body.decode().splitlines()]

    def times(self, archives, **parameters):
        return [each["timestamp"][:4] for each in self.asked(archives, **parameters)]

    def test_lines(self):
        reply = self.got("/v1/old/cdx?url=http://EXAMPLE.org:80&limit=1")
        key, time, fields = reply.body.decode().rstrip("\n").split(" ", 2)
        fields = json.loads(fields)
        self.assertEqual((key, time), ("org,example)/", "20190601120000"))
        self.assertEqual(fields["url"], "http://www.example.org/")
        self.assertEqual((fields["mime"], fields["status"]), ("text/html", "200"))
        self.assertEqual(fields["digest"], digest(b"<p>19</p>"))
        self.assertEqual(reply.headers["content-type"], "text/plain; charset=utf-8")
        text = self.got("/v1/old/cdx?url=example.org/&limit=1&output=text").body.decode()
        self.assertEqual(text, " ".join(
            (key, time, fields["url"], "text/html", "200", fields["digest"], "-", "-",
             fields["length"], fields["offset"], fields["filename"])) + "\n")

    def test_record_is_where_the_line_says(self):
        for uri, record in (("example.org", self.root[0]),
                            (page(5), capture(page(5), "2021-01-01T00:00:00Z", b"page 5"))):
            line = self.asked("old", url=uri, limit=1)[0]
            begin, size = int(line["offset"]), int(line["length"])
            reply = self.got(f"/v1/{line['filename']}", 206,
                             Range=f"bytes={begin}-{begin + size - 1}")
            self.assertEqual(reply.body, record)

    def test_every_page_is_found(self):
        self.assertEqual([each["url"] for each in self.asked("old", url="example.org/page-*")],
                         [page(number) for number in range(PAGES)])
        for number in range(0, PAGES, 37):
            self.assertEqual([each["url"] for each in self.asked("old", url=page(number))],
                             [page(number)])

    def test_match_types(self):
        host = self.asked("old", url="example.org", matchType="host")
        self.assertEqual(len(host), 3 + PAGES + 1 + 1)
        domain = self.asked("old", url="*.example.org")
        self.assertEqual([each for each in domain if each not in host],
                         self.asked("old", url="http://blog.example.org/a%20b"))
        self.assertEqual(len(domain), len(host) + 1)
        self.assertEqual(self.asked("old", url="example.net", matchType="domain"), [])
        self.assertEqual(self.asked("old", urlkey="org,example)/page-0007"),
                         self.asked("old", url=page(7)))

    def test_times(self):
        self.assertEqual(self.times("old", url="example.org"), ["2019", "2021", "2023"])
        self.assertEqual(self.times("old", url="example.org", to="2021"), ["2019", "2021"])
        self.assertEqual(self.times("old", **{"url": "example.org", "from": "20200101"}),
                         ["2021", "2023"])
        self.assertEqual(self.times("old", url="example.org", closest="2022"),
                         ["2021", "2023", "2019"])
        self.assertEqual(self.times("old", url="example.org", sort="reverse", limit=2),
                         ["2023", "2021"])

    def test_archives_are_merged(self):
        self.assertEqual(self.times("old,new", url="example.org"),
                         ["2019", "2021", "2022", "2023", "2024"])
        closest = self.asked("new,old", url="example.org", closest="20220701", limit=3)
        self.assertEqual([each["timestamp"][:4] for each in closest], ["2022", "2023", "2021"])
        self.assertEqual([each["filename"].split("@")[0] for each in closest],
                         ["new", "old", "old"])
        for each in closest:
            begin = int(each["offset"])
            self.got(f"/v1/{each['filename']}", 206, Range=f"bytes={begin}-{begin}")

    def test_filters(self):
        self.assertEqual(self.times("old,new", url="example.org", filter="=mime:warc/revisit"),
                         ["2024"])
        self.assertEqual([each["url"] for each in self.asked(
            "old", url="example.org/*", filter=["!status:200", "~mime:.*"])],
            ["http://example.org/moved"])
        self.assertEqual(len(self.asked("old", url="example.org/*", filter="~url:.*page-0[1-2]")),
                         200)

    def test_post(self):
        key = "org,example)/search?__wb_method=post&lang=en&q=cats"
        url = "http://example.org/search?__wb_method=POST&q=cats&lang=en"
        (line,) = self.asked("old", url=url)
        self.assertEqual(line["urlkey"], key)
        self.assertEqual(line["url"], "http://example.org/search")
        self.assertEqual(self.asked("old", url="http://example.org/search"), [])

    def test_refusals(self):
        for query, part in (("", "url"), ("url=a&closest=x", "closest"), ("url=a&limit=0", "limit"),
                            ("url=a&from=2021x", "from"), ("url=a&filter=~url:(", "filter"),
                            ("url=a&matchType=range", "matchType"), ("url=a&what=1", "what"),
                            ("url=a*&closest=2021", "closest"), ("url=a&output=xml", "output")):
            reply = self.got(f"/v1/old/cdx?{query}", 400)
            self.assertIn(part, reply.body.decode(), query)
        reply = self.got("/v1/docs/cdx?url=a", 404)
        self.assertIn("index", reply.body.decode())
        self.assertIn("docs", self.got("/v1/old,docs/cdx?url=a", 404).body.decode())
        self.got("/v1/none/cdx?url=a", 404)

    def test_pages_of_many_archives_are_charged(self):
        gateway = self.enterContext(LiveGateway(
            PROGRAMS.quire_http, self.server.address, "--memory", "96MiB"))
        for count, status in ((2, 200), (64, 503)):
            with gateway.connect() as connection:
                names = ",".join(["old"] * count)
                self.assertEqual(connection.ask(
                    f"/v1/{names}/cdx?url=example.org&limit=1").status, status, count)
        gateway.wait_for("quire_http_connections", 1)

    def test_conditions(self):
        first = self.got("/v1/old/cdx?url=example.org")
        self.assertEqual(first.headers["cache-control"], "no-cache")
        self.assertNotIn("quire-unindexed-documents", first.headers)


if __name__ == "__main__":
    run_tests()
