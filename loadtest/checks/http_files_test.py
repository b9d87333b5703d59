#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http --files: plain files, and files that consist of pieces.

usage: http_files_test.py QUIRED QUIRE_HTTP
"""
import json
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import GatewayCase, PROGRAMS, run_tests
from live_gateway import LiveGateway


class FilesTest(GatewayCase):
    """quire-http --files"""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = cls.directory / "files"
        cls.files.mkdir()
        cls.gateway = cls.enterClassContext(LiveGateway(
            PROGRAMS.quire_http, cls.server.address, "--files", cls.files,
            "--allow-origin", "https://replayweb.page"))
        with cls.gateway.connect() as connection:
            cls.web = json.loads(connection.ask("/v1/web").body)
        cls.space = b"".join(cls.records)

    def write(self, name, data):
        path = self.files / name
        path.with_suffix(".new").write_bytes(data)
        path.with_suffix(".new").rename(path)

    def describe(self, name, pieces, **changes):
        self.write(f"{name}.pieces.json", json.dumps(
            {"format": 1, "archive": "web", "uuid": self.web["uuid"], "pieces": pieces,
             **changes}).encode())

    def space_piece(self):
        return {"space": True, "size_bytes": len(self.space)}

    def test_plain_files(self):
        data = random.Random(5).randbytes(900_000)
        self.write("a b.bin", data)
        path = "/files/a%20b.bin"
        reply = self.got(path)
        self.assertTrue(reply.body == data)
        self.assertEqual(reply.headers["content-type"], "application/octet-stream")
        self.assertEqual(reply.headers["accept-ranges"], "bytes")
        self.assertEqual(self.got(path, 206, Range="bytes=800000-").body, data[800_000:])
        self.assertTrue(self.got(path, 200, Range="bytes=0-1,5-6").body == data)
        self.got(path, 416, Range="bytes=900000-")
        self.got(path, 304, If_None_Match=reply.headers["etag"])
        self.write("whole.wacz", data)
        self.got("/files/whole.wacz", 416, Range="bytes=0-1,5-6")
        self.write("a b.bin", data[1:] + b"x")
        self.assertNotEqual(self.got(path).headers["etag"], reply.headers["etag"])
        self.write("empty", b"")
        self.assertEqual(self.got("/files/empty").body, b"")

    def test_names_stay_in_the_directory(self):
        self.write(".hidden", b"secret")
        (self.files / "sub").mkdir()
        (self.files / "sub" / "file").write_bytes(b"secret")
        (self.files / "link").symlink_to("/etc/passwd")
        os.mkfifo(self.files / "pipe")
        self.write("x.pieces.json", b"{}")
        for name in ("", ".", "..", ".hidden", "%2ehidden", "sub", "sub/file", "sub%2Ffile", "link",
                     "pipe", "../access.log", "..%2faccess.log", "%2e%2e%2faccess.log", "none",
                     "x.pieces.json", "none%00", "a" * 300, "/etc/passwd", "%2Fetc%2Fpasswd"):
            self.assertEqual(self.ask(f"/files/{name}").status, 404, name)
        with LiveGateway(PROGRAMS.quire_http, self.server.address) as gateway, \
                gateway.connect() as connection:
            self.assertEqual(connection.ask("/files/link").status, 404)

    def test_files_of_pieces(self):
        head, tail = b"head " * 30_000, b"tail"
        self.write(".web.head", head)
        self.write(".web.tail", tail)
        self.describe("web.wacz", [{"file": ".web.head", "size_bytes": len(head)},
                                   self.space_piece(), {"file": ".web.tail", "size_bytes": 4}])
        whole = head + self.space + tail
        path = "/files/web.wacz"
        reply = self.got(path, Origin="https://replayweb.page")
        self.assertTrue(reply.body == whole)
        self.assertEqual(reply.headers["content-type"], "application/wacz")
        self.assertEqual(reply.headers["content-length"], str(len(whole)))
        self.assertIn("ETag", reply.headers["access-control-expose-headers"])
        etag = reply.headers["etag"]
        draw = random.Random(29)
        borders = (0, len(head), len(head) + len(self.space), len(whole))
        for number in range(100):
            first = min(max(0, draw.choice(borders) + draw.randint(-20, 20)), len(whole) - 1)
            last = first + draw.choice((0, 1, 30, 300_000, 10**12))
            part = self.got(path, 206, Range=f"bytes={first}-{last}", If_Range=etag)
            self.assertTrue(part.body == whole[first:last + 1], (number, first, last))
        self.assertEqual(self.got(path, 206, Range="bytes=-4").body, tail)
        self.assertEqual(self.got(path, 206, Range=f"bytes=-{10**12}").headers["content-range"],
                         f"bytes 0-{len(whole) - 1}/{len(whole)}")
        self.got(path, 416, Range="bytes=0-1,5-6")
        self.got(path, 416, Range=f"bytes={len(whole)}-")
        self.assertTrue(self.got(path, 200, Range="bytes=5-1").body == whole)
        self.got(path, 304, If_None_Match=etag)
        # Another piece, another tag.
        self.write(".web.tail", b"TAIL")
        self.assertNotEqual(self.ask(path, "HEAD").headers["etag"], etag)

    def test_descriptions_that_do_not_fit(self):
        self.write(".part", b"1234")
        part = {"file": ".part", "size_bytes": 4}
        self.describe("good", [part])
        self.assertEqual(self.got("/files/good").body, b"1234")
        for number, (pieces, changes, status, word) in enumerate((
                ([{**part, "size_bytes": 5}], {}, 502, b"has 4 bytes"),
                ([{**part, "file": ".none"}], {}, 502, b".none"),
                ([{**part, "file": "../access.log"}], {}, 502, b"name of a file"),
                ([{"space": True, "size_bytes": 1}], {}, 502, b"logical space has"),
                ([part], {"uuid": "0" * 32}, 404, b"other contents"),
                ([part], {"archive": "none"}, 404, b"none"),
                ([part], {"format": 2}, 502, b"format"),
                ([part], {"more": 1}, 502, b"members"),
                ([], {}, 502, b"1 to 64"))):
            self.describe(f"bad{number}", pieces, **changes)
            reply = self.ask(f"/files/bad{number}")
            self.assertEqual(reply.status, status, (pieces, changes, reply))
            self.assertIn(word, reply.body)
        self.write("garbage.pieces.json", b"[" * 60_000)
        self.got("/files/garbage", 502)

    def test_pieces_replaced_while_they_are_read(self):
        self.write(".large", b"old " * 5_000_000)
        self.describe("large", [{"file": ".large", "size_bytes": 20_000_000}])
        with self.gateway.connect(receive_buffer=4096) as slow:
            slow.send(b"GET /files/large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(slow.read_head()[0], 200)
            self.write(".large", b"new " * 5_000_000)
            body = slow.take(20_000_000)
        self.assertLess(len(body), 20_000_000)
        self.assertTrue(body == b"old " * (len(body) // 4) + b"old "[:len(body) % 4])
        self.assertTrue(self.got("/files/large").body == b"new " * 5_000_000)


if __name__ == "__main__":
    run_tests()
