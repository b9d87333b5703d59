#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: archives that are replaced, appended to and taken down from.

usage: http_contents_test.py QUIRED QUIRE_HTTP
"""
import contextlib
import gzip
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import PROGRAMS, build, response, run_tests
from live_gateway import PATIENCE_S, LiveGateway
from live_server import LiveServer


class ReplacedArchiveTest(unittest.TestCase):
    def test_no_answer_mixes_two_archives(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-replaced-")))
        size = 20_000_000
        old, new = b"old " * (size // 4), b"new " * (size // 4)
        archive = directory / "docs.quire"
        build(PROGRAMS.quired, archive, {"document": old})
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"docs={archive}"]))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address))
        with gateway.connect(receive_buffer=4096) as slow:
            slow.send(b"GET /v1/docs/doc/document HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _, headers = slow.read_head()
            etag = headers["etag"]
            build(PROGRAMS.quired, archive, {"document": new}, "--force")
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


class RecordTypesTest(unittest.TestCase):
    def test_records_of_an_arc_are_no_warc(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-arc-")))
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\npage"
        about = b"1 0 Other\nURL IP-address Archive-date Content-type Archive-length\n\n"
        (directory / "a.arc").write_bytes(
            b"filedesc://a.arc 0.0.0.0 20210101000000 text/plain %d\n%b\n" % (len(about), about)
            + b"http://h/arc 1.2.3.4 20210101000000 text/html %d\n%b\n" % (len(block), block))
        (directory / "b.warc").write_bytes(response("http://h/warc", "2021-01-01T00:00:00Z", b"page"))
        for name, inputs in ("arc", ["a.arc"]), ("both", ["b.warc", "a.arc"]):
            subprocess.run([PROGRAMS.quired, "build", "--quiet", "-o", directory / f"{name}.quire",
                            *(directory / each for each in inputs)], check=True, capture_output=True)
        server = self.enterContext(LiveServer(
            PROGRAMS.quired, [f"{name}={directory}/{name}.quire" for name in ("arc", "both")]))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address))
        arc, warc = "application/x-internet-archive", "application/warc"
        for target, expected in (
                ("arc/space", arc), ("both/space", warc), ("arc/doc/http://h/arc", arc),
                ("both/doc/http://h/arc", arc), ("both/doc/http://h/warc", warc),
                ("both/ordinal/0", warc), ("both/page/http://h/arc", "text/html")):
            # The second time the gateway knows the archive.
            for method, options in (("HEAD", {}), ("GET", {}), ("GET", {"Range": "bytes=2-3"}),
                                    ("GET", {"Range": "bytes=0-9"}), ("GET", {})):
                with gateway.connect() as connection:
                    reply = connection.ask(f"/v1/{target}", method, **options)
                self.assertIn(reply.status, (200, 206), target)
                self.assertEqual(reply.headers["content-type"], expected, (target, method, options))


class FieldsTest(unittest.TestCase):
    def test_lists_with_fields_and_filters(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-fields-")))
        rows = [{"id": f"r{n:02}", "lang": "de" if n % 3 else 'f"r', "score": n / 2 + 0.25,
                 "t": "x" * n} for n in range(30)]
        del rows[5]["lang"]
        (directory / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        subprocess.run(
            [PROGRAMS.quired, "build", "--quiet", "-o", directory / "rows.quire", "--split", "lines",
             "--id-field", "id", "--text-field", "t", "--field", "lang", "--field", "score",
             directory / "rows.jsonl"], check=True, capture_output=True)
        subprocess.run([PROGRAMS.quired, "redact", directory / "rows.quire", "--where", "score > 14"],
                       check=True, capture_output=True)
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"rows={directory}/rows.quire"]))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address))

        def ask(query="", status=200, resource="/list"):
            with gateway.connect() as connection:
                reply = connection.ask(
                    f"/v1/rows{resource}" + ("?" + urllib.parse.urlencode(query) if query else ""))
            self.assertEqual(reply.status, status, reply)
            return reply.body.decode() if status >= 400 else \
                [json.loads(line) for line in reply.body.splitlines()]

        self.assertEqual(ask(resource="")[0]["fields"],
                         [{"name": "lang", "type": "string"}, {"name": "score", "type": "float"}])
        listed = ask({"where": "lang = 'f\"r' and score < 8 or lang is null and size < 9",
                      "fields": "score,lang"})
        self.assertEqual([line["id"] for line in listed], ["r00", "r03", "r05", "r06", "r09", "r12",
                                                           "r15"])
        self.assertEqual(listed[1]["fields"], {"score": 1.75, "lang": 'f"r'})
        self.assertEqual(listed[2]["fields"], {"score": 2.75, "lang": None})
        self.assertEqual(len(ask({"fields": "lang"})), 28 + 1)
        self.assertEqual(ask({"fields": "lang"})[-1], {"withdrawn_count": 2})
        self.assertNotIn("fields", ask({"where": "size = 3"})[0])
        # A page of few candidates has fewer documents, and leads on.
        page = ask({"where": "size = 7", "limit": 5})
        self.assertEqual([*page[0]], ["next_token"])
        page = ask({"where": "size = 7", "limit": 5, "token": page[0]["next_token"]})
        self.assertEqual(page[0]["id"], "r07")
        for query, message in (
                ({"where": "lang = de"}, "where: column 8: found \"de\", expected a value"),
                ({"where": "language = 'de'"}, 'column 1: no field "language"; expected a field of '
                 "the archive or an attribute: lang, score, id"),
                ({"where": "score = 'x'"}, "column 9: found a value of the type string"),
                ({"fields": "language"}, 'fields has "language", expected fields of the archive: '
                 "lang, score"),
                ({"fields": "a b"}, "fields: the name of a field must have")):
            self.assertIn(message, ask(query, 400))


class WithdrawnTest(unittest.TestCase):
    def test_withdrawn_documents(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-withdrawn-")))
        large = b"text" * 5_000_000
        build(PROGRAMS.quired, directory / "docs.quire", {"a": b"one", "b": b"two", "c": large})
        rules = directory / "withdrawn"
        rules.write_text("")
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"docs={directory}/docs.quire"],
                                              "--withdrawn", rules))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address))

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


class RedactedTest(unittest.TestCase):
    def test_documents_that_were_removed_for_good(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-redacted-")))
        archive = directory / "docs.quire"
        build(PROGRAMS.quired, archive, {"a": b"one", "b": b"two", "c": b"three"})
        (directory / "ids").write_text("b\n")
        subprocess.run([PROGRAMS.quired, "redact", archive, directory / "ids"], check=True,
                       capture_output=True)
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"docs={archive}"]))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address))

        def ask(target, method="GET", **headers):
            with gateway.connect() as connection:
                return connection.ask(target, method, **headers)

        for method in "GET", "HEAD":
            self.assertEqual(ask("/v1/docs/ordinal/1", method).status, 451)
        self.assertEqual(ask("/v1/docs/ordinal/1", Range="bytes=0-0").status, 451)
        self.assertEqual(ask("/v1/docs/doc/b").status, 404)
        self.assertEqual(ask("/v1/docs/ordinal/2").body, b"three")
        self.assertEqual(ask("/v1/docs/space").body, b"one\0\0\0three")
        lines = [json.loads(line) for line in ask("/v1/docs/list").body.splitlines()]
        self.assertEqual([line.get("id") for line in lines], ["a", "c", None])
        self.assertEqual(lines[-1], {"withdrawn_count": 1})
        page = ask("/browse/docs/").body
        self.assertIn(b"1 withdrawn document is not shown", page)
        self.assertNotIn(b"empty id", page)


class GrowthTest(unittest.TestCase):
    """An archive that is appended to and taken down from, and a cache in front of it."""

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-growth-")))
        draw = random.Random(41)
        self.large = draw.randbytes(900_000)
        self.records = {
            "http://a/1": response("http://a/1", "2021-01-01T00:00:00Z", b"<p>one</p>",
                                   "Content-Type: text/html"),
            "http://a/2": response("http://a/2", "2021-01-02T00:00:00Z",
                                   gzip.compress(self.large), "Content-Encoding: gzip"),
            "http://a/3": response("http://a/3", "2021-01-03T00:00:00Z", draw.randbytes(70_000))}
        self.later = {
            "http://a/4": response("http://a/4", "2021-01-04T00:00:00Z", draw.randbytes(50_000)),
            "http://b/5": response("http://b/5", "2021-01-05T00:00:00Z", b"five")}
        self.archive = self.directory / "web.quire"
        self.quired("build", "-o", self.archive, "--dictionary-size", "256KiB",
                    self.warc("first", self.records))
        self.rules = self.directory / "withdrawn"
        self.rules.write_text("")
        self.files = self.directory / "files"
        self.files.mkdir()
        self.server = self.enterContext(LiveServer(
            PROGRAMS.quired, [f"web={self.archive}"], "--withdrawn", self.rules))
        self.gateway = self.enterContext(LiveGateway(
            PROGRAMS.quire_http, self.server.address, "--files", self.files))
        self.first = json.loads(self.ask("/v1/web").body)
        (self.files / "web.wacz.pieces.json").write_text(json.dumps(
            {"format": 1, "archive": "web", "uuid": self.first["uuid"],
             "pieces": [{"space": True, "size_bytes": self.first["size_bytes"]}]}))
        self.named = f"/v1/web@{self.first['uuid']}"

    def quired(self, command, *arguments):
        subprocess.run([PROGRAMS.quired, command, "--quiet", *arguments], check=True,
                       capture_output=True)

    def warc(self, name, records):
        path = self.directory / f"{name}.warc.gz"
        path.write_bytes(b"".join(gzip.compress(record) for record in records.values()))
        return path

    def ask(self, target, method="GET", **headers):
        with self.gateway.connect() as connection:
            return connection.ask(target, method, **headers)

    def reload_until(self, is_there):
        self.server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + PATIENCE_S
        while not is_there():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def append(self):
        self.quired("append", self.archive, self.warc("later", self.later))
        # The server knows more than the gateway, until a request of another kind finds out.
        before = len(self.server.messages)
        self.reload_until(lambda: any("web" in line for line in self.server.messages[before:]))

    def withdraw(self, rules, is_there):
        self.rules.write_text(rules)
        self.reload_until(is_there)

    def cached(self):
        """Entity tags of everything that the first state has, by path."""
        paths = [f"/v1/web/{kind}/{name}" for name in self.records for kind in ("doc", "page")]
        paths += [f"/v1/web/ordinal/{number}" for number in range(len(self.records))]
        paths += [path.replace("/v1/web/", f"{self.named}/") for path in paths]
        tags = {}
        for path in [*paths, f"{self.named}/space", "/files/web.wacz"]:
            reply = self.ask(path)
            self.assertEqual(reply.status, 200, path)
            self.assertEqual(self.ask(path, "HEAD").headers["etag"], reply.headers["etag"], path)
            tags[path] = reply.headers["etag"]
        return tags

    def assert_unchanged(self, tags):
        for path, tag in tags.items():
            for method in "GET", "HEAD":
                self.assertEqual(self.ask(path, method, If_None_Match=tag).status, 304, path)
            self.assertEqual(self.ask(path, If_Range=tag, Range="bytes=1-2").status, 206, path)

    def test_appending_does_not_empty_caches(self):
        tags = self.cached()
        space = self.ask("/v1/web/space")
        token = json.loads(self.ask("/v1/web/list?limit=1").body.splitlines()[-1])["next_token"]
        self.append()
        text = b"".join(self.records.values())
        grown = text + b"".join(self.later.values())
        # In any order: whatever comes first finds that the archive has grown.
        first = [
            lambda: self.assertEqual(self.ask("/v1/web/doc/http://b/5").status, 200),
            lambda: self.assertEqual(self.ask("/v1/web/page/http://b/5").body, b"five"),
            lambda: self.assertTrue(self.ask("/v1/web/space", If_None_Match=space.headers["etag"]
                                             ).body == grown),
            lambda: self.assertEqual(
                self.ask("/v1/web/ordinal/4", Range="bytes=0-3").body, b"WARC"),
            lambda: self.assertIn(b">b/<", self.ask("/browse/web/http%3A//").body)]
        random.Random(self.id()).shuffle(first)
        for check in first:
            check()
        self.assert_unchanged(tags)
        self.assertEqual(self.ask("/v1/web/space", "HEAD").headers["content-length"],
                         str(len(grown)))
        self.assertEqual(self.ask(
            "/v1/web/space", Range=f"bytes={len(text)}-").body, grown[len(text):])
        # The earlier state ends where it did.
        self.assertTrue(self.ask(f"{self.named}/space").body == text)
        self.assertTrue(self.ask("/files/web.wacz").body == text)
        self.assertEqual(self.ask(f"{self.named}/space", Range=f"bytes={len(text)}-").status, 416)
        for kind in "doc/http://b/5", "page/http://b/5", "ordinal/4":
            self.assertEqual(self.ask(f"{self.named}/{kind}").status, 404, kind)
        self.assertEqual(json.loads(self.ask(self.named).body), self.first)
        self.assertEqual(len(self.ask(f"{self.named}/list").body.splitlines()), 3)
        browsed = self.ask(f"/browse/web@{self.first['uuid']}/http%3A//").body
        self.assertIn(b">a/<", browsed)
        self.assertNotIn(b">b/<", browsed)
        # A list continues as it began, another one has all.
        rest = self.ask(f"/v1/web/list?limit=100&token={token}").body.splitlines()
        self.assertEqual([json.loads(line)["id"] for line in rest], ["http://a/2", "http://a/3"])
        self.assertEqual(len(self.ask("/v1/web/list").body.splitlines()), 5)
        # All states of the archive, not just the first, have their tags.
        present = json.loads(self.ask("/v1/web").body)["uuid"]
        self.assertNotEqual(present, self.first["uuid"])
        later = self.ask("/v1/web/doc/http://b/5").headers["etag"]
        self.assertIn(present, later)
        self.assertEqual(self.ask(f"/v1/web@{present}/doc/http://b/5", If_None_Match=later).status,
                         304)

    def test_ranges_before_and_after(self):
        self.ask("/v1/web/space", Range="bytes=0-0")
        self.append()
        grown = b"".join([*self.records.values(), *self.later.values()])
        reply = self.ask("/v1/web/space", Range="bytes=5-70000")
        self.assertEqual(reply.headers["content-range"], f"bytes 5-70000/{len(grown)}")
        self.assertTrue(reply.body == grown[5:70_001])

    def test_withdrawals(self):
        self.append()
        tags = self.cached()
        tags["/v1/web/space"] = self.ask("/v1/web/space").headers["etag"]
        grown = b"".join([*self.records.values(), *self.later.values()])

        def without(name):
            record = {**self.records, **self.later}[name]
            return grown.replace(record, bytes(len(record)))

        # What the first state does not have.
        self.withdraw("web id http://a/4 block\n",
                      lambda: self.ask("/v1/web/doc/http://a/4").status == 451)
        present = tags.pop("/v1/web/space")
        self.assert_unchanged(tags)
        reply = self.ask("/v1/web/space", If_None_Match=present)
        self.assertEqual(reply.status, 200)
        self.assertTrue(reply.body == without("http://a/4"))
        self.assertEqual(self.ask("/v1/web/space", If_Range=present, Range="bytes=0-1").status, 200)
        self.assertEqual(self.ask("/v1/web/space", If_Match=present).status, 412)
        # What all have: the space and the file differ, other documents do not.
        self.withdraw("web id http://a/1 exclude\n",
                      lambda: self.ask("/v1/web/doc/http://a/1").status == 404)
        other = {path: tag for path, tag in tags.items()
                 if "http://a/1" not in path and "ordinal/0" not in path
                 and not path.endswith("/space") and not path.endswith(".wacz")}
        self.assertEqual(len(other), 12)
        self.assert_unchanged(other)
        for path in set(tags) - set(other):
            reply = self.ask(path, If_None_Match=tags[path])
            if path.endswith("/space") or path.endswith(".wacz"):
                self.assertEqual(reply.status, 200, path)
                self.assertTrue(reply.body == without("http://a/1")[:len(reply.body)])
                self.assertEqual(len(reply.body), self.first["size_bytes"])
                self.assertEqual(self.ask(path, If_None_Match=reply.headers["etag"]).status, 304)
            else:
                self.assertEqual(reply.status, 404, path)
        reply = self.ask("/v1/web/space", "HEAD")
        self.assertEqual(reply.headers["content-type"], "application/warc")
        self.assertNotEqual(reply.headers["etag"], present)
        # Everything is back.
        self.withdraw("", lambda: self.ask("/v1/web/doc/http://a/1").status == 200)
        self.assert_unchanged({**tags, "/v1/web/space": present})

    def test_a_space_that_loses_a_document_while_it_is_read(self):
        self.later = {"http://c/6": response("http://c/6", "2021-01-06T00:00:00Z",
                                             b"text" * 5_000_000)}
        self.append()
        present = json.loads(self.ask("/v1/web").body)
        (self.files / "all.wacz.pieces.json").write_text(json.dumps(
            {"format": 1, "archive": "web", "uuid": present["uuid"],
             "pieces": [{"space": True, "size_bytes": present["size_bytes"]}]}))
        text = b"".join([*self.records.values(), *self.later.values()])
        with contextlib.ExitStack() as stack:
            readers = []
            for path in ("/v1/web/space", f"/v1/web@{present['uuid']}/space", "/files/all.wacz"):
                reader = stack.enter_context(self.gateway.connect(receive_buffer=4096))
                reader.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
                self.assertEqual(reader.read_head()[0], 200)
                readers.append(reader)
            self.withdraw("web id http://a/3 block\n",
                          lambda: self.ask("/v1/web/doc/http://a/3").status == 451)
            for reader in readers:
                body = reader.take(len(text))
                # Cut, and without zeros.
                self.assertLess(len(body), len(text))
                self.assertTrue(body == text[:len(body)])


if __name__ == "__main__":
    run_tests()
