#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests what remains readable of damaged archives, with the programs themselves.

usage: damaged_archive_test.py QUIRED QUIRE
"""
import io
import json
import pathlib
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

COUNT = 500
SIZE = 1000
BLOCK = 65536
LARGE = 12 << 20
# Damaged blocks of the first archive.
DAMAGED = (0, 4, 7)


def text_of(number):
    return b"%03d\n" % number * (SIZE // 4)


def members_of(path):
    with tarfile.open(fileobj=io.BytesIO(path.read_bytes())) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


class DamagedArchiveTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        files = {f"{number:03}": text_of(number) for number in range(COUNT)}
        cls.text = b"".join(files.values())
        cls.large = b"".join(b"%07d\n" % number for number in range(LARGE // 8))
        small = cls.build("small", files)
        cls.damage(small, [BLOCK * block + 5 * SIZE for block in DAMAGED])
        large = cls.build("large", {"a": cls.large, "b": b"after it"})
        cls.damage(large, [LARGE - BLOCK // 2])
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [small, large]))

    @classmethod
    def build(cls, name, files, *flags):
        (cls.directory / name).mkdir()
        for file, contents in files.items():
            (cls.directory / name / file).write_bytes(contents)
        archive = cls.directory / f"{name}.quire"
        subprocess.run([QUIRED, "build", "-q", "-o", archive, "--codec", "copy",
                        "--block-size", "64KiB", *flags, cls.directory / name], check=True)
        return archive

    @staticmethod
    def damage(archive, offsets):
        """Flips a bit of the text at each offset."""
        segment, = archive.glob("segment-*")
        contents = bytearray(segment.read_bytes())
        for offset in offsets:
            # A header, then blocks, each with a word before it and a checksum after it.
            contents[48 + offset + offset // BLOCK * 12 + 4] ^= 1
        segment.write_bytes(contents)

    def quire(self, *arguments, code=0, server=None):
        """Returns (standard output, standard error)."""
        run = subprocess.run(
            [QUIRE, "--server", (server or self.server).address, *map(str, arguments)],
            capture_output=True, check=False)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout, run.stderr.decode()

    def test_a_scan_is_resumed_after_the_damage(self):
        """Each hint leads past the block that ended the previous scan."""
        path = self.directory / "scanned"
        found, offsets = b"", []
        _, messages = self.quire("scan", "small", "-o", path, code=1)
        self.assertFalse(path.exists())
        found += pathlib.Path(f"{path}.partial").read_bytes()
        while True:
            hint = re.search(r"the rest: quire scan small --uuid [0-9a-f-]+ --offset (\d+)",
                             messages)
            if hint is None:
                break
            offsets.append(int(hint.group(1)))
            code = 0 if len(offsets) == len(DAMAGED) else 1
            out, messages = self.quire("scan", "small", "--offset", offsets[-1], code=code)
            found += out
        end = len(self.text)
        self.assertEqual(offsets, [min(end, (block + 1) * BLOCK) for block in DAMAGED])
        self.assertEqual(found, b"".join(
            self.text[block * BLOCK:(block + 1) * BLOCK]
            for block in range(end // BLOCK + 1) if block not in DAMAGED))
        _, messages = self.quire("scan", "small", "--offset", BLOCK, "--length", 4 * BLOCK, code=1)
        self.assertIn(f"the 65,536 bytes at offset {4 * BLOCK} cannot be read", messages)
        self.assertRegex(messages, r"the rest: quire scan small --uuid [0-9a-f-]+ "
                                   r"--offset 327680 --length 0\n")
        self.assertEqual(self.quire("scan", "small", "--offset", 327680, "--length", 0)[0], b"")

    def whole_documents(self):
        lost = {offset // SIZE for block in DAMAGED
                for offset in range(block * BLOCK, min((block + 1) * BLOCK, len(self.text)))}
        return {f"{number:03}": text_of(number) for number in range(COUNT) if number not in lost}

    def test_export_keeps_going(self):
        path = self.directory / "kept.tar"
        _, messages = self.quire("export", "small", "--tar", path, code=1)
        self.assertFalse(path.exists())
        whole = self.whole_documents()
        self.assertLess(len(whole), COUNT - 100)
        _, messages = self.quire("export", "small", "--tar", path, "--keep-going", code=1)
        self.assertEqual(members_of(path), whole)
        lost_count = COUNT - len(whole)
        self.assertIn(f"exported {len(whole)} documents, and left out {lost_count}", messages)
        self.assertEqual(messages.count("is left out: "), 20)
        self.assertIn('document number 0, "000", is left out: block 0 of segment 0', messages)
        self.assertIn(f"and {lost_count - 20} more damaged documents", messages)
        _, messages = self.quire("export", "small", "--tar", path, "--keep-going", "-v", code=1)
        self.assertEqual(messages.count("is left out: "), lost_count)
        path = self.directory / "kept.warc"
        self.quire("export", "small", "--warc", path, "--keep-going", code=1)
        uris = re.findall(rb"WARC-Target-URI: file:///(\d+)\r\n", path.read_bytes())
        self.assertEqual([uri.decode() for uri in uris], list(whole))

    def test_export_of_a_large_document_has_zeros(self):
        path = self.directory / "large.tar"
        _, messages = self.quire("export", "large", "--tar", path, "--keep-going", code=1)
        self.assertIn('"a", has zeros in place of what is damaged: ', messages)
        start = (LARGE - 1) // BLOCK * BLOCK
        # "b" is in the next block.
        self.assertEqual(members_of(path), {
            "a": self.large[:start] + bytes(LARGE - start), "b": b"after it"})

    def test_export_without_damage_is_the_same(self):
        good = self.build("good", {"a": b"1" * 100_000, "b": b"", "c": self.large})
        with LiveServer(QUIRED, [good]) as server:
            plain = self.quire("export", "good", "--tar", "-", server=server)[0]
            kept = self.quire("export", "good", "--tar", "-", "--keep-going", server=server)[0]
        self.assertEqual(plain, kept)

    def test_export_of_a_reordered_archive_keeps_what_can_be_read(self):
        """A damaged block has text of many documents, some of it used twice."""
        draw = random.Random(5)
        pieces = [draw.randbytes(3000) for _ in range(300)]
        files = {f"{number:03}": b"".join(draw.choices(pieces, k=draw.randrange(20)))
                 for number in range(200)}
        archive = self.build("moved", files, "--reorder", "dedup")
        segment, = archive.glob("segment-*")
        contents = bytearray(segment.read_bytes())
        for _ in range(6):
            contents[draw.randrange(100, len(contents) * 9 // 10)] ^= 1
        segment.write_bytes(contents)
        path = self.directory / "moved.tar"
        with LiveServer(QUIRED, [archive]) as server:
            self.quire("export", "moved", "--tar", path, "--keep-going", code=1, server=server)
            readable = {}
            for name, contents in files.items():
                run = subprocess.run([QUIRE, "--server", server.address, "get", "moved", name],
                                     capture_output=True, check=False)
                if run.returncode == 0:
                    readable[name] = contents
        self.assertGreater(len(readable), 100)
        self.assertLess(len(readable), len(files))
        self.assertEqual(members_of(path), readable)

    def damage_ids(self, archive):
        """Flips a bit of the index of ids, and returns the message of verify."""
        segment, = archive.glob("segment-*")
        good = segment.read_bytes()
        for at in range(len(good) - 1, 0, -16):
            segment.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1:])
            run = subprocess.run([QUIRED, "verify", "--json", archive],
                                 capture_output=True, check=False)
            damages = json.loads(run.stdout)["damages"]
            if len(damages) == 1 and "document ids" in damages[0]["message"]:
                self.assertEqual(run.returncode, 1)
                return damages[0]
        return self.fail("there is no index of ids")

    def test_serves_the_rest_of_an_archive_without_ids(self):
        files = {f"{number:03}": text_of(number) for number in range(50)}
        archive = self.build("unnamed", files)
        damage = self.damage_ids(archive)
        self.assertIn("quired serve --skip-broken", damage["effect"])
        self.assertEqual(damage["lost_size_bytes"], 0)
        refused = subprocess.run([QUIRED, "serve", archive, "--listen", "127.0.0.1:0"],
                                 capture_output=True, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(b"document ids checksum", refused.stderr)
        with LiveServer(QUIRED, [archive], "--skip-broken") as server:
            self.assertTrue(any("archive unnamed is served without a damaged index" in line
                                for line in server.messages), server.messages)
            self.assertEqual(self.quire("scan", "unnamed", server=server)[0],
                             b"".join(files.values()))
            self.assertEqual(self.quire("range", "unnamed", 3000, 1000, server=server)[0],
                             text_of(3))
            self.assertEqual(self.quire("get", "unnamed", "--ordinal", 7, server=server)[0],
                             text_of(7))
            self.assertIn("no such document",
                          self.quire("get", "unnamed", "007", code=1, server=server)[1])


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
