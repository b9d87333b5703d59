#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests deposited files from quired build to quire get --file and HTTP: what is kept, printed
and refused, ranges, appends, withdrawals, redaction, damage.

QUIRE_BINARY_DIR names the build directory.
"""
import bz2
import gzip
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path

from served_case import PATIENCE_S, PROGRAMS, await_text, run, start

URI = "http://example.org/{}"


def record(number, size=3000):
    words = random.Random(number)
    block = " ".join(f"word{words.randrange(400)}" for _ in range(size // 7)).encode()
    head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
            f"WARC-Target-URI: {URI.format(number)}\r\nWARC-Date: 2021-01-01T00:00:00Z\r\n"
            "Content-Type: application/http;msgtype=response\r\n"
            f"Content-Length: {len(block) + 19}\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
    return head.encode() + block + b"\r\n\r\n"


def member(text, level=6):
    packer = zlib.compressobj(level, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()


def foreign(text):
    """A member of stored blocks that no encoder makes."""
    stream = b"".join(
        bytes([at + 900 >= len(text)]) + len(text[at:at + 900]).to_bytes(2, "little")
        + (65535 - len(text[at:at + 900])).to_bytes(2, "little") + text[at:at + 900]
        for at in range(0, len(text), 900))
    return (b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + stream + zlib.crc32(text).to_bytes(4, "little")
            + len(text).to_bytes(4, "little"))


def wacz(path, entries):
    """A WACZ of (name, bytes, compression) in this order."""
    with zipfile.ZipFile(path, "w") as out:
        for name, data, compression in (*entries, ("datapackage.json", b"{}", zipfile.ZIP_STORED)):
            out.writestr(zipfile.ZipInfo(name), data, compression)


class DepositedFilesTest(unittest.TestCase):
    def setUp(self):
        self.directory = Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-files-")))
        self.gz = b"".join(member(record(i)) for i in range(60))
        self.plain = b"".join(record(i) for i in range(100, 130))
        (self.directory / "a.warc.gz").write_bytes(self.gz)
        (self.directory / "b.warc").write_bytes(self.plain)
        self.archive = self.directory / "web.quire"

    def quired(self, *arguments, code=0):
        done = run("quired", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def build(self, *options):
        return self.quired("build", "--force", "-o", self.archive, *options,
                           self.directory / "a.warc.gz", self.directory / "b.warc")

    def serve(self, *options):
        server, said = start(self, self.archive, "--listen", "127.0.0.1:0", *options)
        return server, said.split()[-1]

    def gateway(self, address):
        gateway = subprocess.Popen(
            [PROGRAMS / "quire-http", "--server", address, "--listen", "127.0.0.1:0"],
            stderr=subprocess.PIPE, text=True)
        for cleanup in gateway.stderr.close, gateway.wait, gateway.kill:
            self.addCleanup(cleanup)
        said = await_text(self, gateway, "listening on")
        return "http://" + re.search(r"listening on ([0-9.:]+)", said)[1]

    def http_status(self, url):
        with self.assertRaises(urllib.error.HTTPError) as failed:
            urllib.request.urlopen(url)
        failed.exception.close()
        return failed.exception.code

    def quire(self, address, *arguments, code=0):
        done = subprocess.run([PROGRAMS / "quire", "-s", address, *map(str, arguments)],
                              capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode() if code else done.stdout

    def file(self, *arguments, archive=None, code=0):
        """quire get --file without a server of one's own."""
        done = subprocess.run(
            [PROGRAMS / "quire", "--archive", archive or self.archive, "get", "--file",
             *map(str, arguments)], capture_output=True, timeout=PATIENCE_S, check=False,
            env={**os.environ, "QUIRED": str(PROGRAMS / "quired")})
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stderr.decode() if code else done.stdout

    def test_reads_and_lists_by_server(self):
        said = self.build("--segment-size", "100KiB")
        self.assertIn("2 deposited files are kept byte for byte", said)
        self.quired("verify", "--quiet", self.archive)
        self.assertRegex(self.quired("inspect", self.archive), r"files +2, .* \(0\.00%\)")
        _, address = self.serve()
        self.assertEqual(self.quire(address, "get", "web", "--file", "a.warc.gz"), self.gz)
        self.assertEqual(self.quire(address, "get", "web", "--file", "b.warc"), self.plain)
        for offset, size in (0, 1), (5, 4000), (len(self.gz) - 10, 10), (len(self.gz), 0):
            self.assertEqual(
                self.quire(address, "get", "web", "--file", "a.warc.gz",
                           "--range", f"{offset}:{size}"), self.gz[offset:offset + size])
        for arguments, text in (
                (("--file", "a.warc.gz", "--range", f"0:{len(self.gz) + 1}"), "end past"),
                (("--file", "c.warc"), "no deposited file has the path")):
            self.assertIn(text, self.quire(address, "get", "web", *arguments, code=1))
        self.assertEqual(self.quire(address, "ls", "web", "--files"), b"a.warc.gz\nb.warc\n")
        listed = [json.loads(line)
                  for line in self.quire(address, "--json", "ls", "web", "--files").splitlines()]
        self.assertEqual([(entry["size_bytes"], entry["sha256"]) for entry in listed],
                         [(len(data), hashlib.sha256(data).hexdigest())
                          for data in (self.gz, self.plain)])
        self.assertIn(hashlib.sha256(self.gz).hexdigest().encode(),
                      self.quire(address, "ls", "-l", "web", "--files"))
        # Documents stay what they are.
        self.assertIn(b"word", self.quire(address, "get", "web", URI.format(3)))

    def test_serves_http(self):
        self.build()
        _, address = self.serve()
        base = self.gateway(address)
        url = base + "/v1/web/file/a.warc.gz"
        with urllib.request.urlopen(url) as answer:
            self.assertEqual(answer.read(), self.gz)
            tag = answer.headers["ETag"]
        self.assertIn(hashlib.sha256(self.gz).hexdigest(), tag)
        # As an index of offsets asks: one member.
        first = len(member(record(0)))
        second = len(member(record(1)))
        request = urllib.request.Request(
            url, headers={"Range": f"bytes={first}-{first + second - 1}"})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 206)
            self.assertEqual(gzip.decompress(answer.read()), record(1))
        head = urllib.request.Request(url, method="HEAD")
        with urllib.request.urlopen(head) as answer:
            self.assertEqual(answer.headers["Content-Length"], str(len(self.gz)))
        self.assertEqual(self.http_status(base + "/v1/web/file/none"), 404)

    def test_appends_and_carries(self):
        self.build()
        more = b"".join(member(record(i), 9) for i in range(200, 240))
        (self.directory / "c.warc.gz").write_bytes(more)
        said = self.quired("append", self.archive, self.directory / "c.warc.gz")
        self.assertIn("1 deposited file is kept byte for byte", said)
        self.quired("verify", "--quiet", self.archive)
        self.quired("compact", "--all", "--reorder", "dedup", self.archive)
        other = self.directory / "other.quire"
        self.quired("recompress", "--codec", "lz4", "-o", other, self.archive)
        third = self.directory / "third.quire"
        self.quired("build", "-o", third, other)
        for archive in self.archive, other, third:
            for name, data in (("a.warc.gz", self.gz), ("b.warc", self.plain),
                               ("c.warc.gz", more)):
                self.assertEqual(self.file(name, archive=archive), data)
            self.quired("verify", "--quiet", archive)
        # Salvage saves documents alone.
        self.assertIn("deposited file \"a.warc.gz\" is not saved", self.quired(
            "salvage", self.archive, "-o", self.directory / "saved", code=1))

    def test_names_what_is_not_kept(self):
        with open(self.directory / "a.warc.gz", "ab") as file:
            file.write(foreign(record(90)))
        said = self.build()
        self.assertIn("1 deposited file is kept", said)
        self.assertIn("\"a.warc.gz\": of its first", said)
        self.assertIn("no deposited file", self.file("a.warc.gz", code=1))
        self.build("--deposited-files")
        self.assertEqual(self.file("a.warc.gz"), self.gz + foreign(record(90)))
        self.assertRegex(self.quired("inspect", self.archive), r"files +2, ")
        said = self.build("--records-only")
        self.assertNotIn("deposited", said)
        # With records left out there is no file, which was asked for.
        self.assertIn("some were left out", self.quired(
            "build", "--force", "-o", self.archive, "--deposited-files", "--exclude",
            "**/example.org/7", self.directory / "a.warc.gz", code=1))

    def test_keeps_a_wacz(self):
        path = self.directory / "crawl.wacz"
        pages = random.Random(7).randbytes(900)  # Not compressed in the archive.
        wacz(path, [("archive/a.warc.gz", self.gz, zipfile.ZIP_STORED),
                    ("pages/text", pages, zipfile.ZIP_STORED),
                    ("archive/b.warc", self.plain, zipfile.ZIP_STORED)])
        said = self.quired("build", "-o", self.archive, "--segment-size", "100KiB", path)
        self.assertIn("1 deposited file is kept byte for byte", said)
        self.quired("verify", "--quiet", self.archive)
        kept = path.read_bytes()
        self.assertEqual(self.file("crawl.wacz"), kept)
        for offset in 0, len(kept) // 3, len(kept) - 700:
            self.assertEqual(self.file("crawl.wacz", "--range", f"{offset}:700"),
                             kept[offset:offset + 700])
        other = self.directory / "other.quire"
        self.quired("build", "-o", other, "--segment-size", "70KiB", self.archive)
        self.assertEqual(self.file("crawl.wacz", archive=other), kept)
        # What is next to the WARCs may be about what is redacted.
        self.assertTrue(any(pages in file.read_bytes() for file in self.archive.iterdir()))
        (self.directory / "ids").write_text(URI.format(30) + "\n")
        self.quired("redact", self.archive, self.directory / "ids")
        self.assertIn("withdrawn", self.file("crawl.wacz", code=1))
        self.assertFalse(any(pages in file.read_bytes() for file in self.archive.iterdir()))

    def test_waczs_at_random(self):
        draw = random.Random(os.environ.get("QUIRE_TEST_SEED", "44"))
        for number in range(5):
            path = self.directory / f"{number}.wacz"
            entries = []
            for at in range(draw.randrange(1, 5)):
                records = [record(draw.randrange(300), draw.randrange(40, 3000))
                           for _ in range(draw.randrange(1, 20))]
                name, data = draw.choice((
                    (f"archive/{at}.warc", b"".join(records)),
                    (f"archive/{at}.warc.gz", b"".join(map(member, records))),
                    (f"archive/{at}.warc.gz", b"".join(map(foreign, records))),
                    (f"archive/{at}.warc.bz2", bz2.compress(b"".join(records))),
                    (f"indexes/{at}", draw.randbytes(draw.choice((0, 10, 5000))))))
                entries.append((name, data, draw.choice(
                    (zipfile.ZIP_STORED, zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))))
            entries.append(("archive/z.warc", record(1), zipfile.ZIP_STORED))
            draw.shuffle(entries)
            wacz(path, entries)
            with self.subTest(entries=[(name, compression) for name, _, compression in entries]):
                for mode in ("--deposited-files", "--records-only", None):
                    said = self.quired("build", "--force", "-o", self.archive, "--segment-size",
                                       "20KiB", *filter(None, [mode]), path)
                    if "1 deposited file is kept" in said:
                        self.quired("verify", "--quiet", self.archive)
                        self.assertEqual(self.file(path.name), path.read_bytes())
                    else:
                        self.assertNotEqual(mode, "--deposited-files")
                        self.assertIn("no deposited file", self.file(path.name, code=1))
                        self.assertEqual("--deposited-files does so" in said, mode is None)

    def test_says_why_a_wacz_is_not_kept(self):
        stored = zipfile.ZIP_STORED
        for entries, why in (
                ([("archive/a.warc", self.plain, zipfile.ZIP_DEFLATED)], "compressed twice"),
                ([("indexes/index.cdx.gz", bytes(9000), stored),
                  ("archive/a.warc", self.plain, stored)],
                 "(8.88 KiB of other entries than WARCs, 0 members of an unknown encoder")):
            path = self.directory / "x.wacz"
            wacz(path, entries)
            self.assertIn(why, self.quired("build", "--force", "-o", self.archive, path))

    def test_withdraws_and_redacts(self):
        self.build("--segment-size", "50KiB")
        rules = self.directory / "rules"
        rules.write_text("")
        server, address = self.serve("--withdrawn", rules)
        self.assertEqual(self.quire(address, "get", "web", "--file", "a.warc.gz"), self.gz)
        url = self.gateway(address) + "/v1/web/file/a.warc.gz"
        for action in "block", "exclude":
            rules.write_text(f"web id {URI.format(3)} {action}\n")
            server.send_signal(signal.SIGHUP)
            await_text(self, server, "1 document by 1 rule")
            self.assertEqual(self.http_status(url), 451)
            self.assertIn("withdrawn",
                          self.quire(address, "get", "web", "--file", "a.warc.gz", code=1))
            self.assertEqual(self.quire(address, "get", "web", "--file", "b.warc"), self.plain)
        (self.directory / "ids").write_text(URI.format(30) + "\n")
        said = self.quired("redact", self.archive, self.directory / "ids")
        self.assertIn("deposited files: 1 has text of them", said)
        self.quired("verify", "--quiet", self.archive)
        self.assertIn("withdrawn", self.file("a.warc.gz", code=1))
        self.assertEqual(self.file("b.warc"), self.plain)
        digest = hashlib.sha256(self.gz).digest()
        for path in self.archive.iterdir():
            self.assertNotIn(digest, path.read_bytes())
        # It stays so.
        self.quired("compact", "--all", self.archive)
        self.assertIn("withdrawn", self.file("a.warc.gz", code=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
