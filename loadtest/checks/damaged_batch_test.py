#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests a batch over an archive with damaged blocks, read with the programs themselves.

usage: damaged_batch_test.py QUIRED QUIRE
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer

COUNT = 500
SIZE = 1000


class DamagedBatchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (directory / "in").mkdir()
        for number in range(COUNT):
            (directory / "in" / f"{number:03}").write_bytes(b"%03d\n" % number * (SIZE // 4))
        archive = directory / "x.quire"
        subprocess.run([QUIRED, "build", "-q", "-o", archive, "--codec", "copy",
                        "--block-size", "64KiB", directory / "in"], check=True)
        segment, = archive.glob("segment-*")
        contents = bytearray(segment.read_bytes())
        # In two blocks, with some intact ones between them.
        for number in (10, 310):
            contents[contents.index(b"%03d\n" % number * 9)] ^= 1
        segment.write_bytes(contents)
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [f"x={archive}"]))

    def batch(self, *arguments):
        ordinals = "".join(f"{number}\n" for number in range(COUNT))
        return subprocess.run(
            [QUIRE, "--server", self.server.address, "batch", "x", "--ordinal", *arguments],
            input=ordinals, capture_output=True, text=True)

    def test_tells_of_each_block_once(self):
        result = self.batch()
        self.assertEqual(result.returncode, 1)
        lines = result.stderr.splitlines()
        self.assertEqual(len(lines), 4, result.stderr)
        whole_count = len(result.stdout) // SIZE
        lost_count = 2 + sum(int(line.split()[1]) for line in lines if " more items" in line)
        self.assertEqual(whole_count + lost_count, COUNT)
        self.assertGreater(lost_count, 100)

    def test_names_each_item_when_asked(self):
        result = self.batch("-v")
        failed = [line for line in result.stderr.splitlines() if "quire: item " in line]
        self.assertEqual(len(failed) + len(result.stdout) // SIZE, COUNT)


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
