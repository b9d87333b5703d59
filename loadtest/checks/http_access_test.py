#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http in front of a server that asks for tokens.

usage: http_access_test.py QUIRED QUIRE_HTTP
"""
import json
import pathlib
import subprocess
import sys
import tempfile
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


if __name__ == "__main__":
    run_tests()
