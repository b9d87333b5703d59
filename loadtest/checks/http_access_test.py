#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http in front of a server that asks for tokens.

usage: http_access_test.py QUIRED QUIRE_HTTP
"""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import PROGRAMS, build, run_tests
from live_gateway import LiveGateway
from live_server import LiveServer


class AccessTest(unittest.TestCase):
    """A server that asks for tokens, and a gateway that forwards them."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-http-token-")))
        cls.text = b"text" * 500_000
        build(PROGRAMS.quired, cls.directory / "docs.quire", {"a": cls.text})
        made = subprocess.run([PROGRAMS.quired, "token", "new", "reader", "-o", cls.directory / "token"],
                              check=True, capture_output=True, text=True)
        (cls.directory / "access").write_text(made.stdout)
        cls.bearer = f"Bearer {(cls.directory / 'token').read_text().strip()}"
        cls.server = cls.enterClassContext(LiveServer(
            PROGRAMS.quired, [f"docs={cls.directory}/docs.quire"], "--access", cls.directory / "access"))
        files = cls.directory / "files"
        files.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            PROGRAMS.quire_http, cls.server.address, "--files", files))
        with cls.gateway.connect() as connection:
            described = connection.ask("/v1/docs", Authorization=cls.bearer).body
        cls.uuid = json.loads(described)["uuid"]
        (files / ".docs.head").write_bytes(b"head")
        (files / "docs.wacz.pieces.json").write_text(json.dumps(
            {"format": 1, "archive": "docs", "uuid": cls.uuid, "pieces": [
                {"file": ".docs.head", "size_bytes": 4},
                {"space": True, "size_bytes": len(cls.text)}]}))

    def test_tokens_go_with_each_call(self):
        with self.gateway.connect() as connection:
            for _ in range(2):
                refused = connection.ask("/v1/docs/doc/a")
                self.assertEqual(refused.status, 401, refused)
                self.assertEqual(refused.headers["www-authenticate"], "Bearer")
                reply = connection.ask("/v1/docs/doc/a", Authorization=self.bearer)
                self.assertEqual(reply.status, 200)
                self.assertTrue(reply.body == self.text)
                self.assertEqual(reply.headers["cache-control"], "private, no-cache")
            for wrong in "Bearer x.y", "Basic eDp5", "Bearer", "Bearer a b":
                self.assertEqual(connection.ask("/v1/docs", Authorization=wrong).status, 401)

    def test_nothing_is_answered_from_memory_without_a_token(self):
        targets = ("/v1/docs", "/v1/docs/space", "/v1/docs/ordinal/0", "/v1/docs/page/a",
                   "/v1/docs/list", "/browse/docs/", "/files/docs.wacz", "/v1/",
                   f"/v1/docs@{self.uuid}/space", f"/v1/docs@{'0' * 32}/space")
        conditions = ({}, {"Range": "bytes=0-1"}, {"Range": f"bytes={10**9}-"},
                      {"If_None_Match": "*"}, {"If_Match": '"x"'})
        with self.gateway.connect() as connection:
            for target in targets:
                for headers in conditions:
                    for method in "GET", "HEAD":
                        known = connection.ask(target, method, Authorization=self.bearer, **headers)
                        self.assertIn(known.status, (200, 206, 304, 404, 412, 416), target)
                        reply = connection.ask(target, method, **headers)
                        self.assertEqual(reply.status, 401, (target, method, headers, reply))
                        self.assertNotIn(self.uuid, f"{reply.headers} {reply.body}")

    def test_a_gateway_with_a_token_of_its_own(self):
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, self.server.address, "--token-file",
                                                self.directory / "token"))
        with gateway.connect() as connection:
            self.assertEqual(connection.ask("/v1/docs/doc/a", Range="bytes=0-3").body, b"text")
            # It does not add the rights of both.
            self.assertEqual(connection.ask("/v1/docs", Authorization=self.bearer).status, 403)

    def start_with_quota(self, *flags):
        """A gateway before a server that allows `slow` one call per second; the headers of
        `slow` and of `free`."""
        bearers = []
        access = self.directory / "quota-access"
        rules = ""
        for name, quota in ("slow", " calls=1"), ("free", ""):
            token = self.directory / f"{name}.token"
            made = subprocess.run([PROGRAMS.quired, "token", "new", name, "-o", token],
                                  check=True, capture_output=True, text=True)
            rules += made.stdout.rstrip() + quota + "\n"
            bearers.append({"Authorization": f"Bearer {token.read_text().strip()}"})
            self.addCleanup(token.unlink)
        access.write_text(rules)
        server = self.enterContext(LiveServer(
            PROGRAMS.quired, [f"docs={self.directory}/docs.quire"], "--access", access))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address, *flags))
        return gateway, *bearers

    def test_a_quota_is_waited_for(self):
        gateway, slow, _ = self.start_with_quota()
        with gateway.connect() as connection:
            # The last one is sent in two pieces, each of which is a call.
            for target, last in ("list", None), ("page/a", 9), ("doc/a", 299_999):
                span = {} if last is None else {"Range": f"bytes=0-{last}"}
                reply = connection.ask(f"/v1/docs/{target}", **slow, **span)
                self.assertEqual(reply.status, 206 if span else 200, (target, reply))
                self.assertTrue(reply.is_complete, target)
            self.assertTrue(reply.body == self.text[:last + 1])

    def test_an_error_tells_when_the_quota_is_not_waited_for(self):
        gateway, slow, _ = self.start_with_quota("--timeout", "200ms")
        with gateway.connect() as connection:
            self.assertEqual(connection.ask("/v1/docs", **slow).status, 200)
            reply = connection.ask("/v1/docs/list", **slow)
            self.assertEqual(reply.status, 429, reply)
            self.assertEqual(reply.headers["retry-after"], "1")
            self.assertIn(b"the time limit is 200ms", reply.body)

    def test_requests_that_wait_leave_a_thread_to_others(self):
        gateway, slow, free = self.start_with_quota("--threads", "2")
        ends = threading.Event()

        def ask_slowly():
            statuses = set()
            with gateway.connect() as connection:
                while not ends.is_set():
                    statuses.add(connection.ask("/v1/docs", **slow).status)
            return statuses

        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            asked = [threads.submit(ask_slowly) for _ in range(4)]
            with gateway.connect() as connection:
                for _ in range(200):
                    self.assertEqual(connection.ask("/v1/docs", **free).status, 200)
            ends.set()
            statuses = set().union(*(future.result() for future in asked))
        # Where another request waits already, the answer comes at once.
        self.assertEqual(statuses, {200, 429})


if __name__ == "__main__":
    run_tests()
