#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `--build-memory` of quired build and recompress: the stored text is the same with
any sufficient memory, and too little is a clear error.

Usage: build_memory_test.py; QUIRE_BINARY_DIR names the build directory.
"""
import os
import random
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
# Little more than the tables of 2,000 chunks.
LITTLE = "300KiB"


class BuildMemoryTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-build-memory-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        source = self.directory / "in"
        source.mkdir()
        generator = random.Random(5)
        words = [f"word{i} " for i in range(300)]
        for i in range(8):
            # Versions of the same text, in which most chunks have changed.
            texts = random.Random(1)
            text = bytearray("".join(texts.choices(words, k=90000)), "ascii")
            for _ in range(400):
                text[generator.randrange(len(text))] = 35
            (source / f"v{i}").write_bytes(text)

    def run_quired(self, *arguments):
        return subprocess.run([QUIRED, *arguments], cwd=self.directory,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)

    def segments_of(self, archive):
        """Returns the bytes of the segment files, which must be complete."""
        result = self.run_quired("verify", "--quiet", archive)
        self.assertEqual(result.returncode, 0, result.stderr)
        paths = sorted((self.directory / archive).glob("segment-*"))
        self.assertTrue(paths)
        return [path.read_bytes() for path in paths]

    def test_the_archive_does_not_depend_on_it(self):
        found = []
        for memory, threads in (("1GiB", "1"), (LITTLE, "1"), (LITTLE, "3")):
            result = self.run_quired(
                "build", "--force", "-o", "x", "--codec", "zstd", "--reorder",
                "full", "--build-memory", memory, "--threads", threads, "in")
            self.assertEqual(result.returncode, 0, result.stderr)
            found.append(self.segments_of("x"))
        self.assertEqual(found[1], found[0])
        self.assertEqual(found[2], found[0])
        self.assertEqual(sorted(os.listdir(self.directory)), ["in", "x"])

        for name, memory in (("y", "1GiB"), ("z", LITTLE)):
            result = self.run_quired(
                "recompress", "x", "-o", name, "--codec", "lz4", "--reorder",
                "auto", "--build-memory", memory)
            self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.segments_of("z"), self.segments_of("y"))

    def test_too_little_is_an_error(self):
        for mode, memory in (("full", "50KiB"), ("dedup", "10KiB")):
            with self.subTest(mode=mode):
                result = self.run_quired("build", "-o", "x", "--reorder", mode,
                                         "--build-memory", memory, "in")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(f"and --build-memory is {memory}; give about ",
                              result.stderr)
                self.assertEqual(os.listdir(self.directory), ["in"])
                # Following the advice once or twice yields an archive.
                for _ in range(2):
                    memory = re.search("give about ([^,]+),", result.stderr)[1]
                    result = self.run_quired(
                        "build", "-o", "x", "--reorder", mode,
                        "--build-memory", memory, "in")
                    if result.returncode == 0:
                        break
                self.assertEqual(result.returncode, 0, result.stderr)
                shutil.rmtree(self.directory / "x")

    def test_with_too_little_auto_does_not_reorder(self):
        result = self.run_quired("build", "-o", "x", "--codec", "zstd",
                                 "--build-memory", "1B", "in")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("warning: not reordered: the tables of --reorder take at least",
                      result.stderr)
        self.assertIn("not reordered for lack of space or memory",
                      self.run_quired("inspect", "x").stdout)
        self.run_quired("build", "-o", "y", "--codec", "zstd", "--reorder", "off",
                        "in")
        self.assertEqual(self.segments_of("x"), self.segments_of("y"))

    def test_without_reordering_it_does_not_matter(self):
        result = self.run_quired("build", "-o", "x", "--reorder", "off",
                                 "--build-memory", "1B", "in")
        self.assertEqual(result.returncode, 0, result.stderr)


if __name__ == "__main__":
    unittest.main()
