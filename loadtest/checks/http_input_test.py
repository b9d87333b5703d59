#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: requests that are malformed, hostile or unusual.

usage: http_input_test.py QUIRED QUIRE_HTTP
"""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import GatewayCase, LARGE, run_tests
from live_gateway import PATIENCE_S


class InputTest(GatewayCase):
    def raw(self, data):
        """The reply, and whether the connection is closed then."""
        with self.gateway.connect() as connection:
            try:
                connection.send(data)
            except (BrokenPipeError, ConnectionResetError):
                pass
            return connection.read_reply(), connection

    def statuses(self, data):
        """Statuses of all replies until the connection closes."""
        found = []
        with self.gateway.connect() as connection:
            connection.send(data)
            connection.socket.shutdown(1)
            while (reply := connection.read_reply()) is not None:
                found.append(reply.status)
        return found

    def test_paths_are_never_normalised(self):
        for target in ("/v1/docs/doc/../doc/empty.txt", "/v1/../v1/docs", "//v1/docs",
                       "/v1//docs", "/v1/docs/../docs/space", "/v1/docs/doc//empty.txt",
                       "/v1/docs/doc/./empty.txt", "/v1/docs/doc/empty.txt%00",
                       "/v1/docs%2Fdoc/empty.txt", "/v1/docs/doc/%2e%2e/doc/empty.txt",
                       "/v1/docs%00/space", "/v1/docs/doc/..%2f..%2f..%2fetc%2fpasswd"):
            self.assertEqual(self.ask(target).status, 404, target)
        twice = self.documents["site//twice.txt"]
        for target in "/v1/docs/doc/site//twice.txt", "/v1/docs/doc/site%2F%2Ftwice.txt":
            self.assertEqual(self.got(target).body, twice)
        for target in "/v1/docs/doc/%", "/v1/docs/doc/%zz", "/v1/docs/list?prefix=%f":
            self.assertEqual(self.ask(target).status, 400, target)

    def test_requests_in_one_packet(self):
        names = [name for name in self.documents if name.startswith("site/")][:20]
        with self.gateway.connect() as connection:
            connection.send(b"".join(
                f"GET {self.path(name)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
                for name in names))
            for name in names:
                self.assertTrue(connection.read_reply().body == self.documents[name], name)

    def test_many_headers(self):
        headers = {f"X-{number}": "a:b " * 20 for number in range(100)}
        self.got("/v1/docs", Cookie="a=b; c", Accept="", **headers)

    def test_headers_up_to_the_limit_are_answered(self):
        target = self.path(LARGE).encode()
        for count in 1, 20, 100:
            statuses = []
            # Each header counts 64 bytes more.
            for size in range(4_000, 17_000 - 64 * count, 64):
                each = size // count - len("X: \r\n")
                head = (b"HEAD %s HTTP/1.1\r\nHost: localhost\r\n" % target
                        + b"X: %s\r\n" % (b"a" * each) * count + b"\r\n")
                with self.gateway.connect() as connection:
                    connection.send(head)
                    reply = connection.read_reply(is_head=True)
                self.assertIsNotNone(reply, (count, len(head)))
                is_within = len(head) + 64 * (count + 1) <= 16_384
                self.assertEqual(reply.status, 200 if is_within else 431, (count, len(head)))
                statuses.append(reply.status)
            self.assertEqual(set(statuses), {200, 431}, count)

    def test_records_of_the_library_take_no_memory(self):
        # Cookies and parameters of the target: it keeps a record of each.
        for count in 176, 1_500:
            self.got("/v1/docs", Cookie="; ".join(["a=b"] * count))
        self.got("/v1/docs/doc/empty.txt?" + "&" * 1_500)
        self.got("/v1/docs/doc/empty.txt?" + "a&" * 1_500, 400)

    def test_long_ids(self):
        self.got("/v1/docs/doc/" + "a" * 8000, 404)
        reply, _ = self.raw(b"GET /v1/docs/doc/" + b"a" * 65536
                            + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.assertTrue(reply is None or reply.status == 414, reply)
        reply, _ = self.raw(b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 65536
                            + b"\r\n\r\n")
        self.assertTrue(reply is None or reply.status in (413, 431), reply)

    def test_bodies(self):
        inner = b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for headers in (b"Content-Length: %d" % len(inner),
                        b"Content-Length: 0\r\nContent-Length: %d" % len(inner),
                        b"Content-Length: %d\r\nContent-Length: 0" % len(inner),
                        b"Transfer-Encoding: chunked",
                        b"Transfer-Encoding: chunked\r\nContent-Length: 4",
                        b"Transfer-Encoding : chunked", b"transfer-encoding: identity",
                        b"Transfer-Encoding:\r\n chunked", b"X: a\r\n\tb",
                        b"X: a\x00Transfer-Encoding: chunked", b"X: a\x00\r\nY\x00: b",
                        b"Content-Length: -1", b"Content-Length: 0x10", b"Content-Length: 1, 2",
                        b"Content-Length: 18446744073709551616"):
            data = b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n" + inner
            found = self.statuses(data)
            # Nothing that follows is taken for a request.
            self.assertEqual(len(found), 1, (headers, found))
            self.assertIn(found[0], (400, 413), headers)

    def test_refusals_are_one_well_formed_answer(self):
        host = b"Host: localhost\r\n"
        for data in (b"GET /v1/docs HTTP/1.1\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\nX: y\r\n\r\n",
                     b"GET /v1/do cs HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET /v1/docs/doc/a\x7fb HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET /v1/docs\rX: y HTTP/1.1\r\n" + host + b"\r\n",
                     *(b"GET /v1/docs HTTP/1.1\r\n" + host + line + b"\r\n\r\n" for line in (
                         b"X: a\rTransfer-Encoding: chunked", b"X: a\r", b"X: \ra", b"X\r: a",
                         b"X: a\x01b", b"X: \x7f", b"Content-Length: +0",
                         b"Content-Length: 00", b"Content-Length:", b"Content-Length: 0, 0",
                         b"Content-Length: 99999999999999999999999", b"no colon"))):
            with self.gateway.connect() as connection:
                connection.send(data)
                reply = connection.read_reply()
                self.assertEqual(reply.status, 400, (data, reply))
                self.assertTrue(reply.is_complete, data)
                self.assertTrue(connection.is_closed())
                self.assertEqual(connection.buffer, b"", data)

    def test_numbers(self):
        for target, status in ((f"/v1/docs/ordinal/{2**64}", 404), ("/v1/docs/ordinal/-1", 400),
                               (f"/v1/docs/ordinal/{2**64 - 1}", 404),
                               ("/v1/docs/ordinal/1e3", 400), ("/v1/docs/list?limit=0", 400),
                               (f"/v1/docs/list?limit={2**32}", 400),
                               (f"/v1/docs/doc/a?occurrence={2**64}", 400),
                               ("/v1/docs/doc/a?at=99999", 400)):
            self.assertEqual(self.ask(target).status, status, target)
        for header in f"bytes={2**64}-", f"bytes={2**64 - 1}-{2**64 - 1}", f"bytes={2**63}-":
            self.got(self.path(LARGE), 416, Range=header)

    def test_malformed_requests(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET /v1/docs\r\n\r\n",
                     b"GET /v1/docs HTTP/9.9\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs\x00/doc/a HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET /v1/docs HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
                     b"GET /v1/do cs HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"PRI * HTTP/2.0\r\n\r\n",
                     bytes(range(256)) * 8):
            found = self.statuses(data)
            self.assertTrue(all(400 <= status < 506 for status in found), (data, found))
            self.assertLessEqual(len(found), 2, data)

    def test_line_ends_do_not_split_answers(self):
        for target in ("/v1/docs/doc/a%0d%0aSet-Cookie:x%0d%0a", "/v1/docs/list?prefix=%0d%0aA:b",
                       "/v1/%0d%0aA:b", "/browse/docs/%0d%0a%0d%0a<script>"):
            reply = self.ask(target)
            self.assertNotIn("set-cookie", reply.headers)
            self.assertNotIn("a", reply.headers)
            self.assertNotIn(b"<script>", reply.body)
        reply = self.ask("/v1/docs/doc/x\ry")
        self.assertIn(reply.status, (400, 404))

    def test_methods_and_hosts(self):
        for method in "POST", "PUT", "DELETE", "TRACE", "PATCH", "get":
            reply = self.ask("/v1/docs", method)
            self.assertEqual(reply.status, 405, method)
            self.assertEqual(reply.headers["allow"], "GET, HEAD, OPTIONS")
        self.got("/v1/docs", 421, Host="evil.example")
        for host in "docs.example", "LOCALHOST:1", "127.0.0.1", "[::1]:7480":
            self.got("/v1/docs", 200, Host=host)

    def test_origins(self):
        reply = self.got("/v1/docs", Origin="https://replayweb.page")
        self.assertEqual(reply.headers["access-control-allow-origin"], "https://replayweb.page")
        self.assertIn("Content-Range", reply.headers["access-control-expose-headers"])
        other = self.got("/v1/docs", Origin="https://evil.example")
        self.assertNotIn("access-control-allow-origin", other.headers)
        self.assertEqual(other.headers["vary"], "Origin")
        preflight = self.ask("/v1/docs/space", "OPTIONS", Origin="https://replayweb.page",
                             Access_Control_Request_Method="GET",
                             Access_Control_Request_Headers="range")
        self.assertEqual(preflight.status, 204)
        self.assertIn("Range", preflight.headers["access-control-allow-headers"])
        self.assertEqual(preflight.headers["access-control-allow-origin"],
                         "https://replayweb.page")

    def test_the_log_has_a_line_of_json_per_request(self):
        self.got("/v1/docs/doc/logged%22%0a", 404, Authorization="Bearer secret.token")
        end = time.monotonic() + PATIENCE_S
        while b"logged" not in self.log.read_bytes():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        text = self.log.read_text()
        self.assertNotIn("secret", text)
        line = next(json.loads(line) for line in text.splitlines() if "logged" in line)
        self.assertEqual((line["status"], line["address"], line["method"]),
                         (404, "127.0.0.1", "GET"))

    @classmethod
    def tearDownClass(cls):
        # Whatever was sent, it works as before.
        with cls.gateway.connect() as connection:
            reply = connection.ask(cls.path(LARGE))
        assert reply.body == cls.documents[LARGE]
        cls.gateway.wait_for("quire_http_requests_in_flight", 0)
        super().tearDownClass()


if __name__ == "__main__":
    run_tests()
