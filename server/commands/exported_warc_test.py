#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds an archive of a WARC and an ARC, exports it with `quire export --warc`, and builds an
archive of the export: its payloads must be those of the first one.

QUIRE_BINARY_DIR names the build directory.
"""
import base64
import hashlib
import pathlib
import random
import subprocess
import tempfile
import unittest

from served_case import PATIENCE_S, PROGRAMS

QUIRED = PROGRAMS / "quired"
QUIRE = PROGRAMS / "quire"
WORDS = [f"word{number}" for number in range(300)]


def page(number):
    """Returns a page; pages 0, 7, 14 and so on are equal."""
    source = random.Random(number if number % 7 else 0)
    return ("<html><body>" + "<p>of all pages, at some length</p>" * 20
            + " ".join(source.choices(WORDS, k=400)) + "</body></html>").encode()


def sha1(text):
    return "sha1:" + base64.b32encode(hashlib.sha1(text).digest()).decode()


def warc_record(number, body):
    http = (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\nX: %d\r\n\r\n"
            % (len(body), number))
    header = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{number}>\r\n"
              f"WARC-Target-URI: http://e.org/{number}\r\n"
              f"WARC-Date: 2024-05-06T07:{number // 60:02}:{number % 60:02}Z\r\n"
              f"WARC-Payload-Digest: {sha1(body)}\r\nWARC-Block-Digest: {sha1(http + body)}\r\n"
              "Content-Type: application/http; msgtype=response\r\n"
              f"Content-Length: {len(http + body)}\r\n\r\n").encode()
    return header + http + body + b"\r\n\r\n"


def arc_record(url, block):
    return f"{url} 1.2.3.4 20240506080000 text/html {len(block)}\n".encode() + block + b"\n"


class ExportedWarcTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-exported-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        (self.directory / "a.warc").write_bytes(
            b"".join(warc_record(number, page(number)) for number in range(300)))
        (self.directory / "b.arc").write_bytes(
            arc_record("filedesc://b.arc", b"1 0 X\nURL IP-address Archive-date "
                                           b"Content-type Archive-length\n")
            + b"".join(arc_record(f"http://e.org/arc/{number}",
                                  b"HTTP/1.1 200 OK\r\n\r\n" + page(number))
                       for number in range(30)))
        self.run_program(QUIRED, "build", "-q", "-o", "x.quire", "a.warc", "b.arc")

    def run_program(self, program, *arguments):
        result = subprocess.run([program, *map(str, arguments)], capture_output=True,
                                timeout=PATIENCE_S, check=False, cwd=self.directory)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def export(self, archive, *arguments):
        """Returns the messages of an export."""
        return self.run_program(QUIRE, "--archive", archive, "export", *arguments).stderr.decode()

    def payloads(self, archive):
        """Returns the payloads of all documents, by the names of their files. That of a revisit
        ends with the number of the document."""
        directory = self.directory / f"{archive}.pages"
        self.export(archive, "--payload", "--output-dir", directory)
        return {path.name.removesuffix("@0"): path.read_bytes() for path in directory.iterdir()}

    def test_builds_an_equal_archive(self):
        wanted = self.payloads("x.quire")
        self.assertEqual(len(wanted), 330)
        sizes = {}
        for name, options in (("plain.warc", []), ("x.warc.gz", []), ("x.warc.zst", []),
                              ("revisits.warc", ["--revisit-duplicates"])):
            with self.subTest(name=name):
                said = self.export("x.quire", "--warc", name, *options)
                self.assertIn("31 records of ARC files", said)
                if options:
                    # 42 pages of the WARC, and all of the ARC.
                    self.assertIn("72 responses with the payload of an earlier one", said)
                self.run_program(QUIRED, "build", "-q", "-o", f"{name}.quire", name)
                found = self.payloads(f"{name}.quire")
                self.assertEqual(found.keys(), wanted.keys())
                self.assertEqual([key for key in wanted if found[key] != wanted[key]], [])
                sizes[name] = (self.directory / name).stat().st_size
        self.assertLess(sizes["x.warc.zst"], 0.7 * sizes["x.warc.gz"])
        self.assertLess(sizes["revisits.warc"], sizes["plain.warc"])
        # Records of a WARC stay what they are.
        self.assertEqual(
            (self.directory / "plain.warc").read_bytes()[:(self.directory / "a.warc").stat().st_size],
            (self.directory / "a.warc").read_bytes())


if __name__ == "__main__":
    unittest.main()
