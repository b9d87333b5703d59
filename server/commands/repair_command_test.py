#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests quired repair and quired salvage from the command line.

QUIRE_BINARY_DIR names the build directory.
"""
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"


class RepairCommandTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-repair-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        words = random.Random(1)
        self.files = {
            f"in/d/{i:02}.txt": " ".join(f"word{words.randrange(500)}"
                                         for _ in range(700)).encode()
            for i in range(40)}
        for name, contents in self.files.items():
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
        built = self.quired("build", "--codec", "zstd", "--block-size", "4KiB",
                            "--segment-size", "64KiB", "-o", "x.quire", "in")
        self.assertEqual(built.returncode, 0, built.stderr)
        shutil.copytree(self.directory / "x.quire", self.directory / "copy.quire")
        self.good = self.contents("x.quire")

    def quired(self, *arguments):
        return subprocess.run([QUIRED, *map(str, arguments)], cwd=self.directory,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def contents(self, archive):
        return {path.name: path.read_bytes() for path in (self.directory / archive).iterdir()}

    def flip(self, archive, name, offset):
        path = self.directory / archive / name
        contents = bytearray(path.read_bytes())
        contents[offset] ^= 1
        path.write_bytes(contents)

    def saved(self, directory):
        """Text by id."""
        root = self.directory / directory
        return {str(path.relative_to(root)): path.read_bytes()
                for path in root.rglob("*") if path.is_file()}

    def test_repairs_and_reports(self):
        self.flip("x.quire", "segment-00000000", 1000)
        (self.directory / "x.quire/segment-00000001").unlink()
        (self.directory / "x.quire/MANIFEST").unlink()
        damaged = self.contents("x.quire")
        dry = self.quired("repair", "x.quire", "--from", "copy.quire", "--dry-run")
        self.assertEqual(dry.returncode, 0, dry.stderr)
        self.assertIn(b"segment-00000000: can be repaired: 1 part of ", dry.stdout)
        self.assertEqual(self.contents("x.quire"), damaged)
        result = self.quired("repair", "x.quire", "--from", "copy.quire")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"segment-00000000: repaired: 1 part of ", result.stdout)
        self.assertIn(b" 3 damaged, 3 repaired\n", result.stdout)
        self.assertEqual(result.stderr, b"")
        self.assertEqual(self.contents("x.quire"), self.good)
        self.assertEqual(self.quired("verify", "x.quire").returncode, 0)
        again = self.quired("repair", "x.quire", "--from", "copy.quire", "--quiet")
        self.assertEqual((again.returncode, again.stdout), (0, b""))

    def test_takes_parts_from_several_copies_and_names_the_rest(self):
        shutil.copytree(self.directory / "x.quire", self.directory / "third.quire")
        for archive in ("x.quire", "copy.quire", "third.quire"):
            self.flip(archive, "segment-00000001", 200)
        self.flip("x.quire", "segment-00000000", 200)
        self.flip("x.quire", "segment-00000000", 8000)
        self.flip("copy.quire", "segment-00000000", 200)
        self.flip("third.quire", "segment-00000000", 8000)
        one = self.quired("repair", "x.quire", "--from", "copy.quire")
        self.assertEqual(one.returncode, 1)
        self.assertIn(b"segment-00000000: NOT REPAIRED: no copy has block 0\n", one.stdout)
        two = self.quired("repair", "x.quire", "--from", "copy.quire", "--from", "third.quire")
        self.assertEqual(two.returncode, 1)
        self.assertIn(b"segment-00000000: repaired: 2 parts of ", two.stdout)
        self.assertIn(b"segment-00000001: NOT REPAIRED: no copy has block 0\n", two.stdout)
        self.assertEqual((self.directory / "x.quire/segment-00000000").read_bytes(),
                         self.good["segment-00000000"])

    def test_survives_kills(self):
        pause = 0.001
        for _ in range(60):
            for name in self.good:
                self.flip("x.quire", name, 50)
            with subprocess.Popen([QUIRED, "repair", "x.quire", "--from", "copy.quire"],
                                  cwd=self.directory, stdout=subprocess.DEVNULL) as process:
                try:
                    process.wait(pause)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    pause *= 1.1
            for name, contents in self.contents("x.quire").items():
                damaged = bytearray(self.good[name])
                damaged[50] ^= 1
                self.assertIn(contents, (self.good[name], bytes(damaged)), name)
            result = self.quired("repair", "x.quire", "--from", "copy.quire")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.contents("x.quire"), self.good)
            self.assertFalse((self.directory / "x.quire.partial").exists())

    def test_salvages(self):
        whole = self.quired("salvage", "x.quire", "-o", "whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertIn(b"40 documents saved", whole.stdout)
        self.assertEqual(self.saved("whole"), {name.removeprefix("in/"): text
                                               for name, text in self.files.items()})
        (self.directory / "x.quire/MANIFEST").unlink()
        self.flip("x.quire", "segment-00000000", 1000)
        damaged = self.quired("salvage", "x.quire", "-o", "saved.tar")
        self.assertEqual(damaged.returncode, 1)
        self.assertRegex(damaged.stdout, rb"lost: document 0: .*: bytes 0 to \d+ of ")
        self.assertIn(b"without MANIFEST, missing segments are unknown", damaged.stdout)
        self.assertIn(b"can be saved twice", damaged.stdout)
        lost = damaged.stdout.count(b"lost: document ")
        with tarfile.open(self.directory / "saved.tar") as tar:
            members = {member.name: tar.extractfile(member).read() for member in tar}
        self.assertEqual(len(members), 40 - lost)
        for name, text in members.items():
            self.assertEqual(text, self.saved("whole")[name])
        # The tar is an input of a build.
        built = self.quired("build", "-o", "y.quire", "saved.tar")
        self.assertEqual(built.returncode, 0, built.stderr)
        lines = self.quired("salvage", "--json", "x.quire", "-o", "again.tar").stdout
        objects = [json.loads(line) for line in lines.splitlines()]
        self.assertEqual([list(item) for item in objects],
                         [["damage"]] + [["lost"]] * lost + [["summary"]])
        self.assertEqual(objects[-1]["summary"]["lost_count"], lost)
        self.assertEqual((self.directory / "again.tar").read_bytes(),
                         (self.directory / "saved.tar").read_bytes())

    def test_salvages_fields(self):
        rows = "".join(json.dumps({"id": f"r{i}", "lang": "de" if i % 2 else "fr", "n": i}) + "\n"
                       for i in range(5000))
        (self.directory / "rows.jsonl").write_text(rows)
        built = self.quired("build", "-o", "rows.quire", "--split", "lines", "--id-field", "id",
                            "--field", "lang", "--field", "n", "rows.jsonl")
        self.assertEqual(built.returncode, 0, built.stderr)
        whole = self.quired("salvage", "rows.quire", "-o", "whole.quire/")
        self.assertEqual(whole.returncode, 0, whole.stdout)
        self.assertIn(b"5,000 documents saved", whole.stdout)
        segment = "segment-00000000"
        contents = (self.directory / "rows.quire" / segment).read_bytes()
        count, = struct.unpack_from("<I", contents, len(contents) - 24)
        table = len(contents) - 72 - 40 * count
        offset, = [offset for type_, _, offset, _, _, _ in
                   struct.iter_unpack("<IIQQQQ", contents[table:table + 40 * count])
                   if type_ == 0x8000000C]
        # The first group of the first field.
        self.flip("rows.quire", segment, offset)
        damaged = self.quired("salvage", "--json", "rows.quire", "-o", "part.quire")
        self.assertEqual(damaged.returncode, 1, damaged.stdout)
        summary = json.loads(damaged.stdout.splitlines()[-1])["summary"]
        self.assertEqual((summary["saved_count"], summary["lost_count"]), (5000, 0))
        self.assertEqual(summary["lost_field_value_count"], 4096)
        dropped = self.quired("salvage", "whole.quire", "-o", "rows.tar")
        self.assertEqual(dropped.returncode, 1, dropped.stdout)
        self.assertIn(b"(lang, n) are not saved; an output NAME.quire keeps them", dropped.stdout)
        self.assertIn(b"; fields of 1 segment not saved", dropped.stdout)

    def test_salvage_counts_segments_that_are_left_out(self):
        (self.directory / "x.quire/MANIFEST").unlink()
        self.flip("x.quire", "segment-00000000", -40)
        result = self.quired("salvage", "x.quire", "-o", "saved.tar")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"; 0 lost; 1 segment left out, with an unknown number of documents",
                      result.stdout)

    def test_mistakes(self):
        for code, message, arguments in [
                (2, b"--from", ["repair", "x.quire"]),
                (1, b"none: cannot open", ["repair", "x.quire", "--from", "none"]),
                (1, b"none", ["repair", "none", "--from", "x.quire"]),
                (1, b"in: is no archive", ["repair", "x.quire", "--from", "in"]),
                (1, b"x.quire/: is the archive to repair itself",
                 ["repair", "x.quire", "--from", "x.quire/"]),
                (2, b"--output must be a NAME.quire, a directory, or a FILE.tar, which is not compressed; got a.tar.gz",
                 ["salvage", "x.quire", "-o", "a.tar.gz"]),
                (2, b"--output", ["salvage", "x.quire"]),
                (1, b"copy.quire: an archive is there already", ["salvage", "x.quire", "-o", "copy.quire"]),
                (1, b"none: cannot open", ["salvage", "none", "-o", "y"]),
                (1, b"in: holds no segment", ["salvage", "in", "-o", "y"])]:
            with self.subTest(arguments):
                result = self.quired(*arguments)
                self.assertEqual(result.returncode, code, result.stderr)
                self.assertIn(message, result.stderr)
        self.assertFalse((self.directory / "y.partial").exists())
        (self.directory / "x.quire/MANIFEST").unlink()
        self.verify_prints(b"x.quire/MANIFEST: the file is missing, but segments are there; quired repair")

    def test_files_that_this_user_may_not_read_are_not_damage(self):
        if os.getuid() == 0:
            self.skipTest("root may read all files")
        next((self.directory / "x.quire").glob("segment-*")).chmod(0)
        result = self.quired("verify", "x.quire")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn(b"not all files could be read", result.stderr)

    def verify_prints(self, message):
        result = self.quired("verify", "x.quire")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(message, result.stdout)


if __name__ == "__main__":
    unittest.main()
