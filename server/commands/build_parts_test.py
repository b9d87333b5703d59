#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired dictionary`, `quired build --like` and `quired join` from the command line:
parts that are built in parallel, or killed and built again, equal one series of appends.

QUIRE_BINARY_DIR names the build directory.
"""
import gzip
import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import tempfile
import unittest

from killed_command import kill_after
from served_case import PATIENCE_S, PROGRAMS, start

QUIRED = PROGRAMS / "quired"
QUIRE = PROGRAMS / "quire"
PART_COUNT = 8


def text_of(part, number):
    """Pages of a part repeat each other, and words those of all."""
    words = random.Random(number % 3 + 100 * part)
    page = " ".join(f"word{words.randrange(300)}" for _ in range(900))
    return f"{page} {number}".encode()


def files_of(archive):
    """Returns the bytes of all files except MANIFEST, by name."""
    return {path.name: path.read_bytes() for path in archive.iterdir()
            if path.name != "MANIFEST"}


class PartsTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-parts-")))
        for part in range(PART_COUNT):
            (self.directory / "in" / str(part)).mkdir(parents=True)
            for number in range(6):
                self.page(part, number).write_bytes(text_of(part, number))
            if part > 0:
                self.page(part, "z.gz").write_bytes(
                    gzip.compress(text_of(part, 7) * 9, 6, mtime=0))

    def page(self, part, number):
        return self.directory / "in" / str(part) / f"page-{part}-{number}"

    def quired(self, *arguments, code=0, **options):
        result = subprocess.run([QUIRED, *map(str, arguments)], capture_output=True, text=True,
                                timeout=PATIENCE_S, check=False, cwd=self.directory, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout + result.stderr

    def inspect(self, archive):
        return json.loads(self.quired("inspect", "--json", archive))

    def make_dictionary(self, *options, size="16KiB"):
        return self.quired("dictionary", "-o", "like", "--dictionary-size", size, *options, "in")

    def part_command(self, part, *options):
        return [str(QUIRED), "build", "--quiet", "--like", "like", "--first-segment",
                str(10 * part), *options, "-o", f"part-{part}", f"in/{part}"]

    def build_parts(self, *options):
        """Builds all parts, four at a time, as GNU parallel does."""
        command = " ".join(self.part_command(0, *options)).replace(
            "--first-segment 0", "--first-segment {}0").replace(
            "part-0", "part-{}").replace("in/0", "in/{}")
        subprocess.run(["xargs", "-P", "4", "-I{}", *command.split()], check=True,
                       input="\n".join(map(str, range(PART_COUNT))), text=True,
                       cwd=self.directory, timeout=PATIENCE_S)
        return [f"part-{part}" for part in range(PART_COUNT)]

    def export(self, archive):
        """Returns all documents of the archive, from a server."""
        _, said = start(self, self.directory / archive, "--listen", "127.0.0.1:0", "--memory", "1GiB")
        return subprocess.run(
            [QUIRE, "--server", said.split()[-1], "export", archive, "--tar", "-"],
            check=True, timeout=PATIENCE_S, capture_output=True).stdout

    # --- Equality ---

    def test_the_dictionary_is_that_of_a_build(self):
        said = self.make_dictionary()
        self.assertRegex(said, r"like: no documents yet, codec rlz:2, blocks of 64 KiB, "
                               r"dictionary of 16 KiB \([0-9.]+ KiB on disk\)")
        self.assertIn("objective balanced", said)
        self.assertNotIn("warning", said)
        self.quired("build", "--quiet", "-o", "one", "--dictionary-size", "16KiB", "in")
        whole = self.inspect("one")
        info = self.inspect("like")
        for key in ("codec", "block_size_bytes", "dictionary_hash", "choice"):
            self.assertEqual(info[key], whole[key], key)
        self.assertEqual((info["document_count"], info["segment_count"]), (0, 0))
        self.assertEqual(sorted(name.split("-")[0] for name in files_of(self.directory / "like")),
                         ["dictionary", "symbols"])
        self.assertIn("whole", self.quired("verify", "like"))
        self.quired("dictionary", "--quiet", "--force", "-o", "like", "--objective", "archive",
                    "--partition-size", "8KiB", "--codec", "auto", "in")
        info = self.inspect("like")
        self.assertEqual((info["codec"], info["partition_size_bytes"]), ("auto:3", 8192))
        (self.directory / "empty").mkdir()
        self.assertIn("warning: the inputs hold no documents",
                      self.quired("dictionary", "-o", "none", "--codec", "zstd", "empty"))

    def check_parts(self, *text_options, dictionary_options=()):
        self.make_dictionary(*dictionary_options)
        parts = self.build_parts(*text_options)
        said = self.quired("join", "-o", "all", *parts)
        self.assertRegex(said, r"all: 8 parts joined; the archive has 55 documents, ")
        shutil.copytree(self.directory / "like", self.directory / "series")
        for part in range(PART_COUNT):
            # In the numbers of the parts: ten for each.
            self.quired("build", "--quiet", "--force", "--like", "series", "--first-segment",
                        10 * part, *text_options, "-o", "next", f"in/{part}")
            self.quired("join", "--quiet", "--force", "-o", "series", "series", "next")
        self.assertEqual(files_of(self.directory / "all"), files_of(self.directory / "series"))
        whole, series = self.inspect("all"), self.inspect("series")
        self.assertEqual(len(series["history"]), PART_COUNT)
        self.assertEqual(whole["history"], series["history"][:2])
        for info in whole, series:
            del info["archive"], info["history"], info["stored_size_bytes"]
        self.assertEqual(whole, series)
        self.assertIn("whole", self.quired("verify", "all"))
        self.assertIn(f"uuid {whole['uuid']}", said)
        return parts

    def test_parts_equal_one_series(self):
        self.check_parts()
        info = self.inspect("all")
        self.assertIn("compressed_members", info)
        self.quired("build", "--quiet", "-o", "one", *(f"in/{part}" for part in range(PART_COUNT)))
        self.assertEqual(self.export("all"), self.export("one"))

    def test_parts_equal_appends(self):
        """Numbers without gaps are those of appends."""
        self.make_dictionary("--codec", "auto")
        options = ["--reorder", "dedup", "--inflate", "auto"]
        shutil.copytree(self.directory / "like", self.directory / "series")
        parts = []
        for part in range(PART_COUNT):
            self.quired("append", "--quiet", "--merge", "off", *options, "series", f"in/{part}")
            parts.append(f"part-{part}")
            self.quired("build", "--quiet", "--like", "like", "--first-segment", part, *options,
                        "-o", parts[-1], f"in/{part}")
        self.quired("join", "-o", "all", *parts)
        self.assertEqual(files_of(self.directory / "all"), files_of(self.directory / "series"))
        self.assertEqual(self.inspect("all")["uuid"], self.inspect("series")["uuid"])
        self.assertEqual(self.inspect("all")["members"], self.inspect("series")["members"])
        self.assertEqual(self.export("all"), self.export("series"))

    def test_other_codecs_and_several_segments(self):
        self.check_parts("--segment-size", "20KiB", "--reorder", "off",
                         dictionary_options=["--codec", "rlz:max", "--block-size", "4KiB"])
        self.assertGreater(self.inspect("all")["segment_count"], PART_COUNT)

    # --- Kills and failures ---

    def test_a_killed_part_is_built_again(self):
        self.make_dictionary()
        parts = self.build_parts()
        self.quired("join", "-o", "all", *parts)
        uuid = self.inspect("all")["uuid"]
        generator = random.Random(3)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        killed_count = 0
        for seconds in (None, None, None, *(generator.random() / 20 for _ in range(5))):
            shutil.rmtree(self.directory / "part-3")
            killed_count += kill_after(self.part_command(3), seconds,
                                       self.directory / "part-3.partial")
            if not (self.directory / "part-3").exists():
                self.assertIn("part-3: cannot open",
                              self.quired("join", "--force", "-o", "all", *parts, code=1))
                self.assertEqual(self.inspect("all")["uuid"], uuid)
            self.assertIn("whole", self.quired("verify", "like"))
            subprocess.run([*self.part_command(3), "--force"], check=True)
            self.assertFalse((self.directory / "part-3.partial").exists())
            self.quired("join", "--force", "-o", "all", *parts)
            self.assertEqual(self.inspect("all")["uuid"], uuid)
        self.assertGreater(killed_count, 0)
        self.assertIn("whole", self.quired("verify", "all"))

    def test_a_full_disk_leaves_nothing(self):
        self.make_dictionary()
        self.page(0, "noise").write_bytes(random.Random(1).randbytes(300_000))
        before = sorted(os.listdir(self.directory))
        said = self.quired("build", "--like", "like", "-o", "part-0", "in/0", code=1,
                           preexec_fn=lambda: resource.setrlimit(
                               resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY)))
        self.assertIn("File too large", said)
        self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_joins_across_file_systems(self):
        shared = pathlib.Path("/dev/shm")
        if not shared.is_dir() or shared.stat().st_dev == self.directory.stat().st_dev:
            self.skipTest("there is one file system")
        other = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-parts-", dir=shared)))
        self.make_dictionary()
        for part in 0, 1:
            self.quired(*self.part_command(part)[1:])
        said = self.quired("join", "-o", other / "all", "part-0", "part-1", code=1,
                           preexec_fn=lambda: resource.setrlimit(
                               resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY)))
        self.assertIn("File too large", said)
        self.assertEqual(os.listdir(other), [])
        self.quired("join", "-o", other / "all", "part-0", "part-1")
        self.quired("join", "-o", "all", "part-0", "part-1")
        self.assertEqual(files_of(other / "all"), files_of(self.directory / "all"))
        self.assertIn("whole", self.quired("verify", other / "all"))

    def test_an_empty_part_joins(self):
        self.make_dictionary()
        (self.directory / "empty").mkdir()
        said = self.quired("build", "--like", "like", "--first-segment", 7, "-o", "none", "empty")
        self.assertIn("warning: the inputs hold no documents", said)
        self.quired("build", "--like", "like", "-o", "part-0", "in/0")
        self.quired("join", "-o", "all", "none", "part-0")
        self.assertEqual(self.inspect("all")["document_count"], 6)
        self.assertEqual(self.inspect("all")["uuid"], self.inspect("part-0")["uuid"])

    def test_unread_inputs_of_parts_add_up(self):
        (self.directory / "cut.warc").write_bytes(b"WARC/1.0\r\nContent-Le")
        self.quired("dictionary", "--quiet", "--keep-going", "-o", "like", "in", "cut.warc", code=1)
        for part in 0, 1:
            self.quired(*self.part_command(part, "--keep-going")[1:], "cut.warc", code=1)
        self.quired("join", "-o", "all", "part-0", "part-1")
        self.assertEqual(self.inspect("all")["unread_input_count"], 2)
        self.assertEqual(len(self.inspect("all")["unread_inputs"]), 2)

    # --- What is refused ---

    def test_errors_name_the_fault_and_change_nothing(self):
        self.make_dictionary()
        self.quired("build", "--quiet", "-o", "other", "--codec", "zstd", "in/0")
        for part in 0, 1:
            self.quired(*self.part_command(part)[1:])
        self.quired("build", "--quiet", "--like", "like", "-o", "same", "in/1")
        before = sorted(os.listdir(self.directory))
        like = ["build", "--like", "like", "-o", "x", "in/0"]
        join = ["join", "-o", "x"]
        kept = "must not be given: the encoding is that of the archive of --like"
        for code, message, arguments in [
                (2, f"--codec {kept}", [*like, "--codec", "zstd"]),
                (2, f"--objective {kept}", [*like, "--objective", "speed"]),
                (2, f"--block-size {kept}", [*like, "--block-size", "4KiB"]),
                (2, f"--partition-size {kept}", [*like, "--partition-size", "4KiB"]),
                (2, f"--dictionary-size {kept}", [*like, "--dictionary-size", "1MiB"]),
                (2, f"--dictionary-method {kept}", [*like, "--dictionary-method", "uniform"]),
                (2, "--resume must not be given with --like", [*like, "--resume"]),
                (2, "--first-segment", [*like, "--first-segment", "16777216"]),
                (2, "--first-segment is an option of --like",
                 ["build", "-o", "x", "in/0", "--first-segment", "3"]),
                (1, "none: cannot open", ["build", "--like", "none", "-o", "x", "in/0"]),
                (1, "in: is no archive", ["build", "--like", "in", "-o", "x", "in/0"]),
                (1, "part-0 exists; give --force", ["build", "--like", "like", "-o", "part-0", "in"]),
                (2, "unknown option \"--like\"", ["dictionary", "--like", "like", "-o", "x", "in"]),
                (2, "PART", join),
                (2, "--output", ["join", "part-0"]),
                (1, "other: the codec is zstd:9, expected rlz:2 as in part-0",
                 [*join, "part-0", "other"]),
                (1, "same: has segment 0, and so has part-0", [*join, "part-0", "same"]),
                (1, "part-0: has segment 0, and so has part-0", [*join, "part-0/", "part-0"]),
                (1, "part-1 exists; give --force", ["join", "-o", "part-1", "part-0"]),
                (2, "--output must be outside the parts, and part-0/x is inside part-0",
                 ["join", "-o", "part-0/x", "part-0"]),
                (1, "none: cannot open", [*join, "part-0", "none"])]:
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.quired(*arguments, code=code))
                self.assertEqual(sorted(os.listdir(self.directory)), before)

    def test_warns_of_the_order_of_a_shell(self):
        self.make_dictionary()
        for part in 2, 10:
            self.quired("build", "--quiet", "--like", "like", "--first-segment", part, "-o",
                        f"part-{part}", f"in/{part % 8}")
        warning = "the segments of part-2 are numbered below those of a part before it"
        self.assertIn(warning, self.quired("join", "-o", "x", "part-10", "part-2"))
        self.assertNotIn(warning, self.quired("join", "-o", "y", "part-2", "part-10"))

    def test_an_archive_that_grows_takes_parts(self):
        """Without first numbers: they follow those of the archive."""
        self.quired("build", "--quiet", "-o", "web", "--dictionary-size", "16KiB", "in/0", "in/1")
        before = self.inspect("web")
        self.quired("build", "--quiet", "--like", "web", "-o", "night", "in/2")
        self.assertEqual(self.inspect("night")["document_count"], 7)
        self.quired("join", "--quiet", "--force", "-o", "web", "web", "night")
        after = self.inspect("web")
        self.assertEqual(after["document_count"], 20)
        self.assertEqual(after["history"][-1]["uuid"], before["uuid"])
        self.quired("compact", "--all", "--quiet", "web")
        self.assertIn("whole", self.quired("verify", "web"))

    def test_redacted_parts(self):
        """What is gone stays gone, unless the dictionary had it: then the parts differ."""
        secret = random.Random(5).randbytes(600).hex()
        self.page(1, "secret").write_text(secret)
        shutil.move(self.page(1, "secret"), self.directory / "secret")
        self.make_dictionary(size="1MiB")
        shutil.move(self.directory / "secret", self.page(1, "secret"))
        for part in 0, 1:
            self.quired(*self.part_command(part)[1:])
        self.quired("redact", "part-1", "-", "--prove", input="page-1-secret\n")
        self.quired("join", "-o", "all", "part-0", "part-1")
        self.assertIn("whole", self.quired("verify", "all"))
        self.assertNotIn(secret.encode(), self.export("all"))
        self.assertEqual(self.inspect("all")["document_count"], 14)
        self.quired("redact", "part-0", "-", input="".join(f"page-0-{i}\n" for i in range(6)))
        self.assertIn("join first, then redact",
                      self.quired("join", "-o", "x", "part-0", "part-1", code=1))


if __name__ == "__main__":
    unittest.main()
