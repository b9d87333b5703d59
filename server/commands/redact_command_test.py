#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests quired redact from the command line: what it prints, mistakes, a full disk, and
kills at random times, after which the archive is the old or the new one.
redact_layout_test kills at every system call in turn.

QUIRE_BINARY_DIR names the build directory.
"""
import io
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from killed_command import kill_after
from test_level import SEED, rounds

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
QUIRE = QUIRED.parent / "quire"
SECRET = "the password of the administrator is 4711, tell nobody"
KILL_COUNT = rounds(8, 24)


class RedactCommandTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-redact-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        words = random.Random(1)
        for i in range(40):
            path = self.directory / f"in/d/{i:02}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = " ".join(f"word{words.randrange(500)}" for _ in range(700))
            path.write_text(text + (SECRET * 3 if i == 7 else ""))
        built = self.quired("build", "--codec", "rlz", "--block-size", "4KiB", "--quiet",
                            "--segment-size", "64KiB", "--dictionary-size", "64KiB",
                            "--dictionary-method", "uniform", "-o", "x.quire", "in")
        self.assertEqual(built.returncode, 0, built.stderr)
        self.before = self.contents("x.quire")

    def quired(self, *arguments, text=None, **options):
        return subprocess.run([QUIRED, *map(str, arguments)], cwd=self.directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              input=text, **options)

    def contents(self, archive):
        return {path.name: path.read_bytes() for path in (self.directory / archive).iterdir()}

    def info(self, archive):
        self.assertEqual(self.quired("verify", "--quiet", archive).returncode, 0)
        return json.loads(self.quired("inspect", "--json", archive).stdout)

    def salvaged(self, archive):
        """Returns the bytes of all documents, decoded."""
        shutil.rmtree(self.directory / "saved", ignore_errors=True)
        self.assertEqual(
            self.quired("salvage", "--quiet", archive, "-o", "saved").returncode, 0)
        return [path.read_bytes() for path in (self.directory / "saved").rglob("*")
                if path.is_file()]

    def test_removes_and_proves(self):
        shutil.copytree(self.directory / "x.quire", self.directory / "replica.quire")
        planned = self.quired("redact", "x.quire", "-", "--dry-run", text="d/07.txt\n")
        self.assertEqual((planned.returncode, planned.stderr), (0, (
            "warning: replica.quire has the dictionary that x.quire has, with text of the "
            "documents: remove them from it too, or build it again\n")))
        self.assertIn("x.quire: would remove 1 document with ", planned.stdout)
        self.assertIn(" would be new, with ", planned.stdout)
        self.assertEqual(self.contents("x.quire"), self.before)
        (self.directory / "ids").write_text("\nd/07.txt\nd/07.txt\n\n")
        result = self.quired("redact", "x.quire", "ids", "--prove")
        self.assertEqual((result.returncode, result.stderr),
                         (0, planned.stderr.replace("x.quire has,", "x.quire had,")))
        self.assertIn("x.quire: removed 1 document with ", result.stdout)
        self.assertRegex(result.stdout, r"dictionary: [1-9][0-9,]* bytes of 64 KiB became")
        self.assertIn("x.quire: proved:\n", result.stdout)
        self.assertIn("\n  found: none\n", result.stdout)
        info = self.info("x.quire")
        self.assertEqual(info["document_count"], 40)
        self.assertEqual(info["history"], [])
        self.assertEqual([state["uuid"] for state in info["redacted_states"]],
                         [self.info("replica.quire")["uuid"]])
        self.assertFalse(any(SECRET.encode() in text for text in self.salvaged("x.quire")))
        # A replica becomes the same.
        replica = self.quired("redact", "replica.quire/", "ids", "--quiet", "--threads", 1)
        self.assertEqual((replica.returncode, replica.stdout, replica.stderr), (0, "", ""))
        self.assertEqual(self.contents("replica.quire"), self.contents("x.quire"))

    def serve(self, archive):
        """Returns the address of a server."""
        server = subprocess.Popen([QUIRED, "serve", archive, "--listen", "127.0.0.1:0"],
                                  cwd=self.directory, text=True, stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        for line in server.stderr:
            if "listening on " in line:
                return line.split("listening on ")[1].split()[0]
        self.fail("the server did not start")

    def test_lists_and_exports_leave_removed_documents_out(self):
        result = self.quired("redact", "x.quire", "-", text="d/07.txt\nd/08.txt\n")
        self.assertEqual(result.returncode, 0, result.stderr)
        address = self.serve("x.quire")

        def quire(*arguments):
            return subprocess.run([QUIRE, *arguments, "--server", address], cwd=self.directory,
                                  check=True, stdout=subprocess.PIPE).stdout

        kept = [f"d/{i:02}.txt" for i in range(40) if i not in (7, 8)]
        self.assertEqual(quire("ls", "x").decode().split(), kept)
        self.assertEqual(quire("ls", "x", "--record-type", "withdrawn").count(b"\n"), 2)
        quire("export", "x", "--tar", "out.tar")
        with tarfile.open(self.directory / "out.tar") as tar:
            self.assertEqual(tar.getnames(), kept)
        warc = quire("export", "x", "--warc", "-")
        self.assertEqual(warc.count(b"WARC-Type: resource"), len(kept))
        self.assertNotIn(bytes(32), warc)

    def test_removes_what_a_list_prints(self):
        with tarfile.open(self.directory / "twice.tar", "w") as tar:
            for i, name in enumerate(("d/a", "d/two", "d/two", "e", "d/new\nline")):
                member = tarfile.TarInfo(name)
                member.size = 2000
                tar.addfile(member, io.BytesIO(f"{i} ".encode() * 1000))
        self.assertEqual(
            self.quired("build", "--quiet", "-o", "t.quire", "twice.tar").returncode, 0)
        address = self.serve("t.quire")

        def listed(*arguments):
            return subprocess.run([QUIRE, "ls", "t", *arguments, "--server", address],
                                  check=True, stdout=subprocess.PIPE).stdout.decode()

        self.assertEqual(listed("d/two"), "d/two\t@0\nd/two\t@1\n")
        refused = self.quired("redact", "t.quire", "-", text="d/two\t@0\n")
        self.assertEqual(refused.returncode, 1)
        uuid = self.info("t.quire")["uuid"]
        self.assertIn(f"give --uuid {uuid}\n", refused.stderr)
        once = self.quired("redact", "t.quire", "-", "--uuid", uuid, text="d/two\t@0\n")
        self.assertEqual((once.returncode, once.stderr), (0, ""))
        self.assertIn("\n  numbers: of 1 id other documents stay", once.stdout)
        address = self.serve("t.quire")
        self.assertEqual(listed("d/two"), "d/two\n")
        every = self.quired("redact", "t.quire", "-", "-0", "--prove", text=listed("d/", "-0"))
        self.assertEqual((every.returncode, every.stderr), (0, ""))
        address = self.serve("t.quire")
        self.assertEqual(listed(), "e\n")

    def test_counts_what_a_filter_selects(self):
        (self.directory / "ids").write_text("d/01.txt\nd/07.txt\n")
        where = ("--where", "ordinal < 2 and id prefix 'd/'")
        planned = self.quired("redact", "x.quire", "ids", *where, "--dry-run")
        self.assertEqual((planned.returncode, planned.stderr), (0, ""))
        self.assertIn("x.quire: would remove 3 documents with ", planned.stdout)
        self.assertIn("\n  selected: 2 documents match --where, 2 are named by ids, 1 is both\n",
                      planned.stdout)
        self.assertEqual(self.contents("x.quire"), self.before)
        result = self.quired("redact", "x.quire", *where, "--prove")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("x.quire: removed 2 documents with ", result.stdout)
        self.assertIn("\n  selected: 2 documents match --where\n", result.stdout)
        self.assertIn("\n  found: none\n", result.stdout)
        again = self.quired("redact", "x.quire", *where)
        self.assertEqual(again.returncode, 1)
        self.assertIn("x.quire: no document matches --where ", again.stderr)

    def test_refuses_mistakes(self):
        (self.directory / "ids").write_text("d/07.txt\nd/7.txt\n")
        (self.directory / "empty").write_text("\n")
        for arguments, code, message in (
                (("x.quire", "ids"), 1, 'x.quire: no document has the id "d/7.txt"; '
                 "nothing was changed"),
                (("x.quire", "empty"), 2, "empty has no ids; expected one per line"),
                (("x.quire", "none"), 1, "none: cannot open: No such file"),
                (("x.quire", "in"), 1, "in: cannot read: Is a directory"),
                (("none.quire", "ids"), 1, "none.quire"),
                (("none.quire", "ids", "--dry-run"), 1, "none.quire"),
                (("in", "ids"), 1, "in"),
                (("x.quire", "ids", "--prove", "--dry-run"), 2, "give one of them"),
                (("x.quire",), 2, "IDS or --where is required"),
                (("x.quire", "--where", "size > 0", "-0"), 2, "--null is about IDS"),
                (("x.quire", "--where", "size > 0 and"), 2, "--where: column 13: found "),
                (("x.quire", "--where", 'size = "1"'), 1, "x.quire: --where: column 8: "),
                (("x.quire", "--where", "lang = 1"), 1, 'no field "lang"'),
                (("x.quire", "--where", "size > 999999"), 1,
                 'x.quire: no document matches --where "size > 999999"; nothing was changed')):
            result = self.quired("redact", *arguments)
            self.assertEqual(result.returncode, code, (arguments, result.stderr))
            self.assertIn(message, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertEqual(self.contents("x.quire"), self.before)

    def test_a_full_disk_changes_nothing(self):
        sizes = sorted(len(contents) for contents in self.before.values())
        for limit in (0, 20, sizes[1] // 2, sizes[-1] // 2):
            result = self.quired(
                "redact", "x.quire", "-", text="d/07.txt\n",
                preexec_fn=lambda size=limit: resource.setrlimit(
                    resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)))
            self.assertEqual(result.returncode, 1, limit)
            self.assertIn("File too large", result.stderr)
            self.assertEqual(self.contents("x.quire"), self.before)
            self.assertFalse((self.directory / "x.quire.partial").exists())

    def test_a_kill_leaves_the_old_or_the_new_archive(self):
        seed = SEED
        print(f"seed {seed}", file=sys.stderr)
        generator = random.Random(seed)
        (self.directory / "ids").write_text("d/07.txt\nd/30.txt\n")
        archive = self.directory / "y.quire"
        command = [QUIRED, "redact", "--quiet", archive, self.directory / "ids"]
        old = self.info("x.quire")["uuid"]
        shutil.copytree(self.directory / "x.quire", archive)
        start = time.monotonic()
        subprocess.run(command, check=True)
        duration = time.monotonic() - start
        after = self.contents("y.quire")
        new = self.info("y.quire")["uuid"]
        killed_count = 0
        for i in range(KILL_COUNT):
            shutil.rmtree(archive)
            shutil.copytree(self.directory / "x.quire", archive)
            seconds = None if i % 3 == 0 else generator.random() * duration
            killed_count += kill_after(command, seconds,
                                       self.directory / "y.quire.partial" / "MANIFEST")
            found = self.info("y.quire")["uuid"]
            self.assertIn(found, (old, new))
            # Once more completes it, or removes the old files.
            result = subprocess.run(command, check=False, stderr=subprocess.PIPE)
            self.assertEqual(result.returncode, 0 if found == old else 1, result.stderr)
            self.assertEqual(self.contents("y.quire"), after)
            self.assertFalse((self.directory / "y.quire.partial").exists())
        self.assertGreater(killed_count, KILL_COUNT // 6)


if __name__ == "__main__":
    unittest.main()
