#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quire scan -o FILE` of archives whose stored order differs from the logical one.

Usage: stored_scan_test.py; QUIRE_BINARY_DIR names the build directory.
"""
import json
import random
import re
import subprocess
import tempfile
import unittest
import urllib.request
from pathlib import Path

from served_case import PATIENCE_S, PROGRAMS, metrics_url, start


class StoredScanTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-stored-scan-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        source = self.directory / "in"
        source.mkdir()
        generator = random.Random(5)
        words = [f"word{i} " for i in range(3000)]
        documents = []
        for i in range(12):
            # Versions of the same text, with changes and some new text.
            texts = random.Random(i % 3)
            text = bytearray("".join(texts.choices(words, k=60000)), "ascii")
            for _ in range(40):
                text[generator.randrange(len(text))] = 35
            documents.append(bytes(text) + generator.randbytes(70000))
        # One block that is referenced from very many offsets.
        documents.append(bytes(generator.randbytes(600)) * 6000)
        for i, document in enumerate(documents):
            (source / f"v{i:02}").write_bytes(document)
        self.text = b"".join(documents)
        self.names = ["off"]
        self.run_program("quired", "build", "-q", "-o", "off", "--codec", "zstd", "in")
        for codec in (["zstd"], ["rlz", "--dictionary-size", "256KiB"]):
            for mode in ("dedup", "auto", "full"):
                name = f"{codec[0]}-{mode}"
                self.names.append(name)
                self.run_program("quired", "build", "-q", "-o", name, "--reorder", mode,
                                 "--segment-size", "3MiB", "in", "--codec", *codec)

    def run_program(self, program, *arguments):
        result = subprocess.run([PROGRAMS / program, *arguments], cwd=self.directory,
                                stdin=subprocess.DEVNULL, capture_output=True,
                                timeout=PATIENCE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def serve(self):
        """Returns the server's address, and the URL of its metrics."""
        _, said = start(self, *self.names, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
                        cwd=self.directory)
        return said.split()[-1], metrics_url(said)

    def blocks_asked_for(self, url):
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        return sum(int(float(value)) for value in
                   re.findall(r"^quire_cache_(?:hits|misses)_total (\S+)$", text, re.M))

    def test_asks_for_each_block_once(self):
        address, url = self.serve()
        info = json.loads(self.run_program("quired", "inspect", "--json", "zstd-full"))
        asked = [self.blocks_asked_for(url)]
        for order in (("-o", "out"), ()):
            self.run_program("quire", "scan", "zstd-full", "-s", address, *order)
            asked.append(self.blocks_asked_for(url))
        # The block with very many references comes several times.
        self.assertLessEqual(asked[1] - asked[0], info["block_count"] + 5)
        self.assertGreater(asked[2] - asked[1], 2 * info["block_count"])

    def test_gives_every_byte_its_place(self):
        address = self.serve()[0]
        for name in self.names:
            for encoding in ("identity", "stored", "fsst"):
                out = self.directory / "out"
                out.unlink(missing_ok=True)
                self.run_program("quire", "scan", name, "-s", address, "-e", encoding, "-o", out)
                self.assertTrue(out.read_bytes() == self.text, (name, encoding))
            # To a pipe the bytes come in logical order.
            self.assertTrue(self.run_program("quire", "scan", name, "-s", address) == self.text)
        part = self.directory / "part"
        self.run_program("quire", "scan", "zstd-full", "-s", address, "--offset", "1000",
                         "--length", "70000", "-o", part)
        self.assertEqual(part.read_bytes(), self.text[1000:71000])


if __name__ == "__main__":
    unittest.main()
