#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire ls by digest, status and key: a list has what quired redact selects by the same
filter, in the order of the index of captures. Crawls drawn at random, of WARC and ARC files,
with requests, revisits, answers to POST and records that are no captures.

usage: captured_list_test.py QUIRED QUIRE
"""
import base64
import gzip
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer
from test_level import SEED, rounds

PATIENCE_SECONDS = 60
HOSTS = ("news.test", "www.news.test", "shop.news.test", "oldnews.test", "b.test:8080")
BODIES = [b"<p>body %d</p>" % number for number in range(6)]
STATUSES = (200, 301, 404, 410, 500)
PAGES = 90


def digest_of(body):
    return "sha1:" + base64.b32encode(hashlib.sha1(body).digest()).decode()


def warc_record(kind, uri, date, block, content_type, **fields):
    header = {"WARC-Type": kind, "WARC-Record-ID": "<urn:uuid:0>", "WARC-Date": date,
              "Content-Type": content_type, "Content-Length": str(len(block)),
              "WARC-Target-URI": uri,
              **{name.replace("_", "-"): value for name, value in fields.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in header.items())
    return b"WARC/1.1\r\n" + lines.encode() + b"\r\n" + block + b"\r\n\r\n"


def crawl(draw):
    """Records of WARC files."""
    for number in range(PAGES):
        # Few URLs, so that most have several captures.
        uri = (f"{draw.choice(('http', 'https'))}://{draw.choice(HOSTS)}/"
               f"{draw.choice(('', 'a', 'b/c', 'q?x=1', 'A'))}")
        date = f"20{draw.randrange(18, 24)}-0{draw.randrange(1, 10)}-01T00:00:00Z"
        body = draw.choice(BODIES)
        block = b"HTTP/1.1 %d Said\r\nContent-Type: text/html\r\n\r\n" % draw.choice(STATUSES)
        fields = {} if draw.random() < 0.2 else {"WARC_Payload_Digest": digest_of(body)}
        answer, sent = f"<urn:uuid:{number}>", f"<urn:uuid:{number}-request>"
        kind = draw.random()
        if kind < 0.6:
            yield warc_record("response", uri, date, block + body, "application/http",
                              WARC_Record_ID=answer, **fields)
            if draw.random() < 0.7:
                method = draw.choice(("GET", "POST"))
                path = urllib.parse.urlsplit(uri).path
                text = "q=cats" if method == "POST" else ""
                head = f"{method} {path} HTTP/1.1\r\nContent-Length: {len(text)}\r\n" \
                       f"Content-Type: application/x-www-form-urlencoded\r\n\r\n{text}"
                yield warc_record("request", uri, date, head.encode(), "application/http",
                                  WARC_Record_ID=sent, WARC_Concurrent_To=answer)
        elif kind < 0.8:
            # Some have no head, and so no status.
            yield warc_record("revisit", uri, date, draw.choice((b"", block)), "application/http",
                              WARC_Profile="http://netpreserve.org/warc/1.1/revisit/"
                                           "identical-payload-digest", **fields)
        elif kind < 0.9:
            yield warc_record("resource", uri, date, body, "text/plain", **fields)
        else:
            yield warc_record("metadata", uri, date, b"a: b", "application/warc-fields", **fields)


def arc(draw):
    """The text of an ARC file."""
    head = b"1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n"
    text = b"filedesc://x.arc 0.0.0.0 20050622190800 text/plain %d\n%s\n" % (len(head), head)
    for number in range(12):
        block = b"HTTP/1.1 %d Said\r\nContent-Type: text/html\r\n\r\n%s" % (
            draw.choice(STATUSES), draw.choice(BODIES))
        text += b"http://%s/%d 1.2.3.4 20050622190850 text/html %d\n%s\n" % (
            draw.choice(HOSTS).encode(), number % 4, len(block), block)
    return text


def draw_rule(draw):
    """A short rule with digest or status."""
    terms = [draw.choice((f"status {draw.choice(('404', '3xx', '200', '50x'))}",
                          f"digest {digest_of(draw.choice(BODIES))}"))]
    if draw.random() < 0.5:
        terms.append(draw.choice(("host shop.news.test", "domain news.test", "host b.test")))
    if draw.random() < 0.4:
        terms.append(draw.choice(("2019..2021", "time ..2020", "2022..", "2005")))
    draw.shuffle(terms)
    # The first term names its kind.
    return " ".join(f"time {term}" if index == 0 and term[0] in "2." else term
                    for index, term in enumerate(terms))


def draw_filter(draw, depth=2):
    kind = draw.random()
    if depth and kind < 0.5:
        word = draw.choice((" and ", " and ", " or "))
        return word.join(f"({draw_filter(draw, depth - 1)})" for _ in range(2))
    if depth and kind < 0.6:
        return f"not ({draw_filter(draw, depth - 1)})"
    status = draw.choice(STATUSES)
    return draw.choice((
        f"status = {status}", f"status != {status}", f"status >= {status}",
        f"status in (404, {status})", "status is null", "status is not null",
        f'digest = "{digest_of(draw.choice(BODIES))}"', 'digest prefix "sha1:A"',
        "digest is not null", 'domain "news.test"', 'not host "www.news.test"',
        "time < 2021-01-01", 'type = "text/html"', 'record_type = "response"',
        'record_type in ("revisit", "request")', "ordinal < 60", "size > 300",
        'id prefix "https:"'))


class CapturedListTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-captured-")))
        draw = random.Random(SEED)
        cls.archive = cls.directory / "web.quire"
        (cls.directory / "x.arc").write_bytes(arc(draw))
        for number in range(2):
            (cls.directory / f"{number}.warc.gz").write_bytes(
                b"".join(gzip.compress(record) for record in crawl(draw)))
        quired = [QUIRED, "build", "--quiet", "--dictionary-size", "256KiB", "-o"]
        subprocess.run([*quired, cls.archive, cls.directory / "0.warc.gz",
                        cls.directory / "x.arc"], check=True, capture_output=True)
        subprocess.run([QUIRED, "append", "--quiet", cls.archive, cls.directory / "1.warc.gz"],
                       check=True, capture_output=True)
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [cls.archive]))

    def quire(self, *arguments, code=0, **options):
        done = subprocess.run([QUIRE, "--server", self.server.address, *map(str, arguments)],
                              check=False, capture_output=True, timeout=PATIENCE_SECONDS, **options)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done.stderr.decode() if code else done.stdout

    @staticmethod
    def named(lines):
        """Sorted names of documents: ID is ID<TAB>@0 if no other document has the id."""
        return sorted(line.removesuffix(b"\t@0") for line in lines.splitlines())

    def redacted(self, option, text):
        """The lines of what quired redact would remove."""
        done = subprocess.run([QUIRED, "redact", self.archive, option, text, "--dry-run", "--list"],
                              check=False, capture_output=True, timeout=PATIENCE_SECONDS)
        if done.returncode == 1:
            self.assertIn(b"no document matches", done.stderr)
            return []
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.named(done.stdout)

    def listed(self, option, text):
        expected = self.redacted(option, text)
        lines = self.quire("ls", "web", option, text, code=0 if expected else 1)
        if not expected:
            self.assertIn("has none that passes the filters", lines)
            return 0
        self.assertEqual(self.named(lines), expected, (SEED, text))
        return len(expected)

    def ordinals(self, *arguments):
        return [json.loads(line)["ordinal"]
                for line in self.quire(*arguments, "--json").splitlines()]

    def test_rules_list_what_they_remove(self):
        draw = random.Random(SEED + 1)
        found = [self.listed("--rule", draw_rule(draw)) for _ in range(rounds(8, 150))]
        self.assertGreater(len(set(found)), 3)

    def test_filters_list_what_they_remove(self):
        draw = random.Random(SEED + 2)
        refused = found = 0
        while found < rounds(8, 150) or not refused:
            text = draw_filter(draw)
            if "status" not in text and "digest" not in text:
                continue
            done = subprocess.run([QUIRE, "--server", self.server.address, "ls", "web", "--where",
                                   text], check=False, capture_output=True,
                                  timeout=PATIENCE_SECONDS)
            if done.returncode == 2:
                self.assertIn(b"--dry-run --list", done.stderr)
                # With the advised condition the list is that of captures alone.
                self.listed("--where", f"({text}) and status is not null")
                refused += 1
                continue
            self.listed("--where", text)
            found += 1

    def test_filters_that_others_match_are_refused(self):
        for text in ('status != 404 or record_type = "request"', "status is null",
                     "not (status is not null)", 'digest is null and domain "news.test"'):
            self.assertIn("documents without digest and status may match",
                          self.quire("ls", "web", "--where", text, code=2))
        for text in ("status is null and digest is not null", "not (status = 404)",
                     "not (status is null)", 'status != 404 and (size > 0 or time > 2020-01-01)'):
            self.assertGreater(self.listed("--where", text), 0)

    def test_options(self):
        rule = ("--rule", "status 404")
        for refused, message in ((("http://",), "id prefix \"http://\""),
                                 (("--fields", "lang"), "--fields: "),):
            self.assertIn(message, self.quire("ls", "web", *refused, *rule, code=2))
        for excluded in ("--delimiter=/", "--files", "--fields=a"):
            self.quire("ls", "web", "--key", excluded, code=2)
        self.assertIn("no field \"key\"", self.quire(
            "ls", "web", "--where", "status = 404 and key prefix 'test,'", code=2))
        for options in (("--record-type", "response"), ("--from", "2021"), ("--status", "4xx"),
                        ("--media-type", "text/html")):
            kept = set(self.ordinals("ls", "web", *options))
            self.assertEqual(self.ordinals("ls", "web", *rule, *options), [
                ordinal for ordinal in self.ordinals("ls", "web", *rule) if ordinal in kept])
        self.assertIn("--where and --rule with digest or status",
                      " ".join(self.quire("ls", "--help").decode().split()))

    def test_order_and_lines(self):
        where = ("--where", "status in (301, 404)")
        order = self.ordinals("captures", "web", *where)
        self.assertEqual(self.ordinals("ls", "web", *where), order)
        rows = [line.split() for line in self.quire("ls", "-l", "web", *where).decode()
                .splitlines()]
        self.assertEqual(rows[0], ["SIZE", "TIME", "TYPE", "STATUS", "NUMBER", "ID"])
        self.assertEqual([int(row[4]) for row in rows[1:]], order)
        self.assertEqual({row[3] for row in rows[1:]}, {"301", "404"})
        # The same lines as in the list by id.
        every = self.quire("ls", "-l", "web").decode().splitlines()
        self.assertLess(set(self.quire("ls", "-l", "web", *where).decode().splitlines()),
                        set(every))
        self.assertLess(set(self.quire("ls", "web", *where).splitlines()),
                        set(self.quire("ls", "web").splitlines()))
        records = self.quire("get", "web", "--record", "--ordinal", *order)
        items = self.quire("ls", "web", "-0", *where)
        self.assertEqual(items.count(b"\0"), len(order))
        self.assertEqual(self.quire("batch", "web", "-0", input=items), records)

    def test_keys(self):
        every = [json.loads(line) for line in self.quire("captures", "web", "--json").splitlines()]
        keys = [each["key"] for each in every]
        self.assertEqual(keys, sorted(keys))
        self.assertIn("__wb_method=post", "".join(keys))
        self.assertEqual(len(every), json.loads(self.quire("info", "web", "--json"))
                         ["capture_count"])
        self.assertEqual(self.ordinals("ls", "web", "--key"), [each["ordinal"] for each in every])
        for prefix in ("test,", "test,news)/", "test,news,", "test,b:8080)/b"):
            expected = [each["ordinal"] for each in every if each["key"].startswith(prefix)]
            self.assertTrue(expected)
            self.assertEqual(self.ordinals("ls", "web", prefix, "--key"), expected)
            self.assertEqual(self.ordinals("captures", "web", prefix, "--key", "--match",
                                           "prefix"), expected)
            some = ("--where", "status is null or status > 300")
            kept = [each["ordinal"] for each in every if each["key"].startswith(prefix)
                    and each.get("http_status", 999) > 300]
            self.assertEqual(self.ordinals("ls", "web", prefix, "--key", *some), kept)
        self.assertIn('whose key starts with "test,none"',
                      self.quire("ls", "web", "test,none", "--key", code=1))
        for arguments in (("", "--match", "host"), ("--key",), ("--newest-first",),
                          ("--closest", "2020")):
            self.quire("captures", "web", *arguments, code=1 if arguments[0] == "" else 2)

    def test_an_export_names_what_works(self):
        warc = self.directory / "some.warc"
        message = self.quire("export", "web", "--warc", warc, "--rule", "status 404", code=2)
        self.assertIn("quire ls ARCHIVE -0 --where FILTER | quire batch ARCHIVE -0 -o FILE.warc",
                      message)
        self.assertFalse(warc.exists())
        where = 'status = 404 and time > 2006-01-01'
        self.quire("batch", "web", "-0", "-o", warc,
                   input=self.quire("ls", "web", "-0", "--where", where))
        subprocess.run([QUIRED, "build", "--quiet", "--force", "-o", self.directory / "some.quire",
                        warc], check=True, capture_output=True)
        with LiveServer(QUIRED, [self.directory / "some.quire"]) as server:
            told = subprocess.run([QUIRE, "--server", server.address, "info", "some", "--json"],
                                  check=True, capture_output=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(json.loads(told.stdout)["capture_count"],
                         len(self.redacted("--where", where)))


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
