#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: archives that are replaced and taken down from.

usage: http_contents_test.py QUIRED QUIRE_HTTP
"""
import pathlib
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import PROGRAMS, build, run_tests
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


if __name__ == "__main__":
    run_tests()
