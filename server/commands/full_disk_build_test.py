#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired build` where files cannot grow, as on a full disk: while text is spooled,
while it is moved, and while the archive is written. The error names the directory or
file and the reason, the existing archive stays unchanged, and nothing else remains.
RLIMIT_FSIZE limits the files. Where text is reordered only if there is space, the
build continues without.

Usage: full_disk_build_test.py; QUIRE_BINARY_DIR names the build directory.
"""
import json
import os
import random
import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
SEGMENT_SIZE_BYTES = 400 << 10
DOCUMENT_COUNT = 24
DOCUMENT_SIZE_BYTES = 100 << 10


def contents_of(directory):
    """Returns the bytes of all files, by path."""
    return {path.relative_to(directory): path.read_bytes()
            for path in directory.rglob("*") if path.is_file()}


class FullDiskBuildTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-full-disk-")
        self.addCleanup(scratch.cleanup)
        directory = Path(scratch.name)
        self.source = directory / "in"
        self.source.mkdir()
        generator = random.Random(1)
        for i in range(DOCUMENT_COUNT):
            (self.source / f"{i:02}").write_bytes(
                generator.randbytes(DOCUMENT_SIZE_BYTES))
        self.output = directory / "out"
        self.output.mkdir()
        self.archive = self.output / "x.quire"
        self.assertEqual(self.build("off", resource.RLIM_INFINITY).returncode, 0)

    def build(self, reorder, file_size_bytes_max):
        return subprocess.run(
            [QUIRED, "build", "--quiet", "--force", "-o", self.archive,
             "--codec", "zstd", "--segment-size", str(SEGMENT_SIZE_BYTES),
             "--reorder", reorder, "--inflate", "off", self.source],
            stderr=subprocess.PIPE, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE,
                (file_size_bytes_max, resource.RLIM_INFINITY)))

    def test_the_old_archive_stays_and_nothing_else_is_left(self):
        before = contents_of(self.output)
        aside = f"{self.output}: cannot copy the text to be stored to: File too large"
        for reorder, limit, message in [
                ("off", SEGMENT_SIZE_BYTES // 2, "cannot write: File too large"),
                # The text of all segments.
                ("dedup", 0, aside),
                ("dedup", SEGMENT_SIZE_BYTES * 2, aside),
                # The text of the first segment, before any is moved.
                ("full", SEGMENT_SIZE_BYTES // 2, aside),
                # Moved text, while there is space for one segment's text.
                ("full", SEGMENT_SIZE_BYTES * 3, aside),
                ("auto", SEGMENT_SIZE_BYTES // 2, "cannot write: File too large")]:
            with self.subTest(reorder=reorder, limit=limit):
                result = self.build(reorder, limit)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertIn(message, result.stderr)
                self.assertEqual(contents_of(self.output), before)

    def test_goes_without_what_has_no_space(self):
        uuids = set()
        for inflate, limit in (("off", resource.RLIM_INFINITY),
                               ("auto", SEGMENT_SIZE_BYTES * 3)):
            reorder = "off" if inflate == "off" else "auto"
            result = subprocess.run(
                [QUIRED, "build", "--force", "-o", self.archive, "--codec", "zstd",
                 "--segment-size", str(SEGMENT_SIZE_BYTES), "--reorder", reorder,
                 "--inflate", inflate, self.source],
                stderr=subprocess.PIPE, text=True, check=False,
                preexec_fn=lambda size=limit: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)))
            self.assertEqual(result.returncode, 0, result.stderr)
            info = json.loads(subprocess.run(
                [QUIRED, "inspect", "--json", self.archive], check=True,
                stdout=subprocess.PIPE).stdout)
            uuids.add(info["uuid"])
            for what in ("not reordered", "members not inflated"):
                missing = f"warning: {what}: {self.output}: cannot copy the text"
                self.assertEqual(missing in result.stderr, inflate == "auto", result.stderr)
                self.assertEqual(f"{what} for lack of space" in info["choice"],
                                 inflate == "auto", info)
        self.assertEqual(len(uuids), 1)

    def test_builds_where_the_text_just_fits(self):
        text_size_bytes = DOCUMENT_COUNT * DOCUMENT_SIZE_BYTES
        for reorder in ("dedup", "full"):
            with self.subTest(reorder=reorder):
                result = self.build(reorder, text_size_bytes)
                self.assertEqual(result.returncode, 0, result.stderr)
                subprocess.run([QUIRED, "verify", "--quiet", self.archive],
                               check=True)


if __name__ == "__main__":
    unittest.main()
