#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired append` from the command line, and what servers and clients make of
archives that grow: tokens, exports, batches, the cache and the memory of a server.

QUIRE_BINARY_DIR names the build directory.
"""
import fcntl
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest
import urllib.request

from served_case import PATIENCE_S, PROGRAMS, metrics_url, start

QUIRED = PROGRAMS / "quired"
QUIRE = PROGRAMS / "quire"


def text_of(number, size=4000):
    words = random.Random(number)
    return " ".join(f"word{words.randrange(300)}" for _ in range(size // 6)).encode()


def contents_of(directory):
    """Returns the bytes of all files, by path."""
    return {path.relative_to(directory): path.read_bytes()
            for path in directory.rglob("*") if path.is_file()}


class AppendTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-append-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.output = self.directory / "out"
        self.output.mkdir()
        self.archive = self.output / "x.quire"
        self.server_lines = []
        self.write("first", range(10))
        self.quired("build", "-o", self.archive, self.directory / "first")

    def write(self, name, numbers):
        target = self.directory / name
        target.mkdir(exist_ok=True)
        for number in numbers:
            (target / f"page-{number:03}").write_bytes(text_of(number))
        return target

    def quired(self, *arguments, code=0, **options):
        result = subprocess.run([QUIRED, *map(str, arguments)], capture_output=True,
                                text=True, timeout=PATIENCE_S, check=False,
                                cwd=self.directory, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout + result.stderr

    def inspect(self):
        return json.loads(self.quired("inspect", "--json", self.archive))

    def write_pieces(self, name, seed):
        """3 MiB of documents whose pieces repeat, but seldom within a block."""
        draw = random.Random(seed)
        pieces = [draw.randbytes(4096) for _ in range(96)]
        target = self.directory / name
        target.mkdir()
        for number in range(48):
            (target / f"{name}-{number:03}").write_bytes(b"".join(draw.choices(pieces, k=16)))
        return target

    # --- The command ---

    def test_names_a_rebuild_that_saves(self):
        archive = self.output / "pieces.quire"
        self.quired("build", "--quiet", "-o", archive, "--codec", "rlz", "--dictionary-size",
                    "1MiB", self.write_pieces("old", 1))
        # The dictionary suits other documents of the same pieces.
        said = self.quired("append", archive, self.directory / "old")
        self.assertIn("the first segment has", said)
        self.assertNotIn("build -o NEW", said)
        self.write_pieces("new", 2)
        before = contents_of(self.output)
        said = self.quired("append", "--merge", "off", archive, "new",
                           env={**os.environ, "TMPDIR": str(self.directory / "absent")})
        self.assertRegex(said, r"or more; a rebuild is not estimated: TMPDIR [^\n]*; quired plan ")
        for path, data in before.items():
            (self.output / path).write_bytes(data)
        said = self.quired("append", "--merge", "off", archive, "new")
        found = re.search(r"quired build -o NEW \S+pieces.quire would take about ([0-9.]+) ([KM])iB "
                          r"of ([0-9.]+) ([KM])iB, ([0-9.]+)% less, by a trial with all text\n",
                          said)
        self.assertIsNotNone(found, said)
        forecast, size = (float(found[at]) * {"K": 1, "M": 1024}[found[at + 1]] for at in (1, 3))
        saved = float(found[5])
        rebuilt = self.directory / "rebuilt.quire"
        self.quired("build", "--quiet", "-o", rebuilt, archive)

        def size_of(path):
            return sum(file.stat().st_size for file in path.iterdir()) / 1024
        self.assertAlmostEqual(size, size_of(archive), delta=0.02 * size)
        self.assertAlmostEqual(forecast, size_of(rebuilt), delta=0.05 * forecast)
        self.assertAlmostEqual(saved, 100 * (1 - forecast / size), delta=2)
        self.assertGreater(saved, 10)

    def test_names_no_rebuild_that_saves_little(self):
        archive = self.output / "pieces.quire"
        self.quired("build", "--quiet", "-o", archive, self.write_pieces("old", 1))
        (self.directory / "noise").write_bytes(random.Random(2).randbytes(6 << 20))
        said = self.quired("append", archive, "noise")
        shares = re.search(r", ([0-9.]+)% of the text; the first segment has ([0-9.]+)%", said)
        self.assertGreater(float(shares[1]), 2 * float(shares[2]), said)
        self.assertNotIn("build -o NEW", said)

    def test_appends(self):
        before = self.inspect()
        said = self.quired("append", self.archive, self.write("second", range(10, 14)))
        self.assertRegex(said, r"added 4 documents, [0-9.]+ KiB in 1 segment; the archive has "
                               r"14 documents")
        self.assertRegex(said, r"on disk [0-9.]+ KiB, [0-9.]+% of the text; the first segment "
                               r"has [0-9.]+%")
        after = self.inspect()
        self.assertIn(f"uuid {after['uuid']}", said)
        self.assertEqual(after["history"], [
            {"uuid": before["uuid"], "size_bytes": before["size_bytes"], "document_count": 10}])
        self.assertEqual((after["document_count"], after["segment_count"]), (14, 2))
        self.assertEqual(after["segment_size_bytes"], [
            before["size_bytes"], after["size_bytes"] - before["size_bytes"]])
        self.assertIn("1 earlier state, the last " + before["uuid"],
                      self.quired("inspect", self.archive))
        self.assertIn("whole", self.quired("verify", self.archive))
        self.assertEqual(os.listdir(self.output), ["x.quire"])
        self.assertEqual(self.quired("append", "--quiet", self.archive, "second"), "")
        self.assertNotIn("repeat", said)
        said = self.quired("append", self.archive, "first")
        self.assertRegex(said, r"10 documents repeat earlier ones of the same id, [0-9.]+ KiB; "
                               r"quired compact \S+ --all --reorder dedup")

    def test_skips_what_is_there(self):
        before = contents_of(self.output)
        said = self.quired("append", "--existing", "skip", self.archive, "first")
        self.assertIn("no new documents; unchanged", said)
        self.assertIn("10 documents are there already", said)
        self.assertEqual(contents_of(self.output), before)
        # The time of a file is its capture time: an equal file of another time is another.
        os.utime(self.directory / "first" / "page-003", (1, 1))
        self.write("first", [10])
        said = self.quired("append", "--existing", "skip", self.archive, "first")
        self.assertIn("added 2 documents", said)
        self.assertIn("9 documents are there already", said)

    def test_takes_an_archive(self):
        other = self.directory / "other.quire"
        self.quired("build", "--quiet", "-o", other, "--codec", "lz4",
                    self.write("second", range(20, 25)))
        self.assertIn("added 5 documents", self.quired("append", self.archive, other))
        merged = self.directory / "merged.quire"
        self.quired("build", "--quiet", "-o", merged, "--codec", "zstd", self.archive, other)
        info = json.loads(self.quired("inspect", "--json", merged))
        self.assertEqual((info["document_count"], info["segment_count"]), (20, 1))

    def test_errors_name_the_fault_and_change_nothing(self):
        second = self.write("second", range(10, 14))
        (self.directory / "empty").mkdir()
        (self.directory / "cut.tar").write_bytes(self.tar_of(second)[:3000])
        before = contents_of(self.output)
        for code, message, arguments in [
                (2, "ARCHIVE", []),
                (2, "INPUT", [self.archive]),
                (2, "--codec must not be given: the encoding of ARCHIVE stays",
                 [self.archive, "second", "--codec", "zstd"]),
                (2, "--dictionary-size must not be given",
                 [self.archive, "second", "--dictionary-size", "1MiB"]),
                (2, "--objective must not", [self.archive, "second", "--objective", "speed"]),
                (2, "--block-size must not", [self.archive, "second", "--block-size", "4KiB"]),
                (2, "--reorder must be off, auto, dedup or full, got \"any\"",
                 [self.archive, "second", "--reorder", "any"]),
                (2, "--existing", [self.archive, "second", "--existing", "replace"]),
                (2, "ARCHIVE must be outside all inputs", [self.archive, "out"]),
                (2, "ARCHIVE must be outside all inputs", [self.archive, self.archive]),
                (1, "none.quire: cannot open", ["none.quire", "second"]),
                (1, "empty: is no archive", ["empty", "second"]),
                (1, "missing", [self.archive, "second", "missing"]),
                (1, "cut.tar", [self.archive, "second", "cut.tar"])]:
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.quired("append", *arguments, code=code))
                self.assertEqual(contents_of(self.output), before)

    def tar_of(self, directory):
        path = self.directory / "in.tar"
        with tarfile.open(path, "w") as tar:
            tar.add(directory, arcname="t")
        return path.read_bytes()

    def test_keep_going_counts_what_is_unreadable(self):
        self.write("second", range(10, 14))
        said = self.quired("append", "--keep-going", self.archive, "missing", "second", code=1)
        self.assertIn("1 input, file, member or record could not be read", said)
        self.assertIn("added 4 documents", said)
        self.assertEqual(self.inspect()["unread_input_count"], 1)

    def test_a_full_disk_changes_nothing(self):
        second = self.directory / "second"
        second.mkdir()
        (second / "noise").write_bytes(random.Random(1).randbytes(300_000))
        before = contents_of(self.output)
        for reorder, limit in (("off", 100_000), ("dedup", 0), ("dedup", 100_000), ("off", 300_000)):
            with self.subTest(reorder=reorder, limit=limit):
                said = self.quired(
                    "append", self.archive, second, "--reorder", reorder, code=1,
                    preexec_fn=lambda size=limit: resource.setrlimit(
                        resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY)))
                self.assertIn("File too large", said)
                self.assertEqual(contents_of(self.output), before)
        self.quired("append", self.archive, second)
        self.assertIn("whole", self.quired("verify", self.archive))

    def test_other_writers_and_foreign_directories_are_refused(self):
        self.write("second", range(10, 14))
        partial = self.output / "x.quire.partial"
        partial.mkdir()
        before = contents_of(self.archive)
        with open(partial / "PARTIAL", "w") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            self.assertIn("another writer is at work",
                          self.quired("append", self.archive, "second", code=1))
        (partial / "JOURNAL").write_text("quire journal 2\n")
        self.assertIn("holds an unfinished archive",
                      self.quired("append", self.archive, "second", code=1))
        shutil.rmtree(partial)
        partial.mkdir()
        (partial / "foreign").write_text("not ours")
        self.assertIn("no build left it", self.quired("append", self.archive, "second", code=1))
        self.assertTrue((partial / "foreign").exists())
        self.assertEqual(contents_of(self.archive), before)

    # --- Compacting ---

    def test_compacts(self):
        self.quired("build", "--quiet", "--force", "-o", self.archive, "--codec", "zstd",
                    self.directory / "first")
        for first in (10, 20):
            self.write(f"more-{first}", [])
            for number in range(10):
                (self.directory / f"more-{first}" / f"page-{first + number:03}").write_bytes(
                    text_of(number))
            self.quired("append", "--quiet", "--merge", "off", self.archive, f"more-{first}")
        before = self.inspect()
        said = self.quired("compact", self.archive, "--reorder", "dedup")
        self.assertRegex(said, r"3 segments of [0-9.]+ KiB became 1 segment of [0-9.]+ KiB, "
                               r"[0-9.]+% of the old size")
        self.assertIn("reorder dedup", said)
        self.assertRegex(said, r"[0-9.]+ KiB of the text \([5-7][0-9.]+%\) repeats other text and "
                               r"is not stored; before, it was 0 B")
        after = self.inspect()
        self.assertIn(f"uuid {after['uuid']}", said)
        self.assertEqual(after["history"][-1]["uuid"], before["uuid"])
        self.assertEqual((after["document_count"], after["segment_count"]), (30, 1))
        self.assertLess(after["stored_size_bytes"], before["stored_size_bytes"] * 0.7)
        self.assertIn("whole", self.quired("verify", self.archive))
        self.assertEqual(os.listdir(self.output), ["x.quire"])
        # Now there is one segment.
        contents = contents_of(self.output)
        said = self.quired("compact", self.archive)
        self.assertIn("nothing to compact; unchanged", said)
        self.assertIn("--all encodes all segments again", said)
        self.assertEqual(self.quired("compact", "--quiet", self.archive), "")
        self.assertEqual(contents_of(self.output), contents)
        self.quired("compact", "--all", "--quiet", "--reorder", "off", self.archive)
        self.assertIn("whole", self.quired("verify", self.archive))

    def test_errors_of_compact_name_the_fault_and_change_nothing(self):
        (self.directory / "empty").mkdir()
        (self.directory / "noise").write_bytes(random.Random(1).randbytes(300_000))
        self.quired("append", "--quiet", self.archive, "noise")
        before = contents_of(self.output)
        for code, message, arguments in [
                (2, "ARCHIVE", []),
                (2, "--codec must not be given: the encoding of ARCHIVE stays",
                 [self.archive, "--codec", "zstd"]),
                (2, "--reorder must be off, auto, dedup or full", [self.archive, "--reorder", "x"]),
                (1, "none.quire: cannot open", ["none.quire"]),
                (1, "empty: is no archive", ["empty"])]:
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.quired("compact", *arguments, code=code))
        partial = self.output / "x.quire.partial"
        partial.mkdir()
        with open(partial / "PARTIAL", "w") as mark:
            fcntl.flock(mark, fcntl.LOCK_EX)
            self.assertIn("another writer is at work",
                          self.quired("compact", "--all", self.archive, code=1))
        shutil.rmtree(partial)
        said = self.quired("compact", "--all", "--reorder", "off", self.archive, code=1,
                           preexec_fn=lambda: resource.setrlimit(
                               resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY)))
        self.assertIn("File too large", said)
        self.assertEqual(contents_of(self.output), before)

    # --- Servers and clients ---

    def start(self, *arguments):
        server, said = start(self, self.archive, "--listen", "127.0.0.1:0", "--metrics",
                             "127.0.0.1:0", "--memory", "1GiB", *arguments)
        self.metrics = metrics_url(said)
        self.address = said.split()[-1]
        threading.Thread(target=self.collect, args=(server.stderr,), daemon=True).start()
        return server

    def collect(self, stream):
        try:
            for line in stream:
                self.server_lines.append(line)
        except ValueError:
            pass

    def wait_for(self, text):
        """Waits for a line of the server after the lines so far."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for line in list(self.server_lines):
                if text in line:
                    self.server_lines.clear()
                    return line
            time.sleep(0.01)
        return self.fail(f"the server did not say {text!r}: {self.server_lines}")

    def quire(self, *arguments, code=0, stdin=b""):
        result = subprocess.run([QUIRE, "--server", self.address, *map(str, arguments)],
                                input=stdin, capture_output=True, timeout=PATIENCE_S,
                                check=False)
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stdout if code == 0 else result.stderr.decode()

    def metric(self, name):
        with urllib.request.urlopen(self.metrics, timeout=PATIENCE_S) as answer:
            return sum(float(line.split()[-1]) for line in answer.read().decode().splitlines()
                       if re.match(re.escape(name) + r"[ {]", line))

    def grow(self, server, first, last):
        self.quired("append", "--quiet", self.archive,
                    self.write(f"more-{first}", range(first, last)))
        server.send_signal(signal.SIGHUP)
        self.wait_for("archive x: has grown")

    def test_clients_see_the_state_that_they_name(self):
        server = self.start()
        uuid = json.loads(self.quire("info", "x", "--json"))["uuid"]
        old = {command: self.quire(*command, "--uuid", uuid)
               for command in [("ls", "x"), ("scan", "x"), ("range", "x", "0", "100"),
                               ("export", "x", "--tar", "-"),
                               ("export", "x", "--tar", "-", "--payload")]}
        self.grow(server, 10, 14)
        self.grow(server, 14, 16)
        info = json.loads(self.quire("info", "x", "--json"))
        self.assertEqual([state["document_count"] for state in info["history"]], [10, 14])
        self.assertEqual(info["history"][0]["uuid"], uuid)
        self.assertIn(b"2 earlier states", self.quire("info", "x"))
        for command, answer in old.items():
            self.assertEqual(self.quire(*command, "--uuid", uuid), answer, command)
            self.assertNotEqual(self.quire(*command), b"")
        self.assertEqual(len(self.quire("ls", "x").splitlines()), 16)
        self.assertEqual(self.quire("get", "x", "page-012"), text_of(12))
        self.assertIn("no such document",
                      self.quire("get", "x", "page-012", "--uuid", uuid, code=1))
        self.assertIn("past the end", self.quire("range", "x", info["history"][0]["size_bytes"],
                                                 1, "--uuid", uuid, code=1))
        # Documents that came after a state, in each form.
        self.quire("export", "x", "--since", uuid, "--tar", self.directory / "since.tar")
        with tarfile.open(self.directory / "since.tar") as tar:
            self.assertEqual(tar.getnames(), [f"page-{i:03}" for i in range(10, 16)])
            self.assertEqual(tar.extractfile("page-011").read(), text_of(11))
        middle = info["history"][1]["uuid"]
        self.quire("export", "x", "--since", uuid, "--uuid", middle, "--output-dir",
                   self.directory / "since")
        self.assertEqual(sorted(os.listdir(self.directory / "since")),
                         [f"page-{i:03}" for i in range(10, 14)])
        self.quire("export", "x", "--since", middle, "--payload", "--tar",
                   self.directory / "payload.tar")
        with tarfile.open(self.directory / "payload.tar") as tar:
            self.assertEqual(tar.getnames(), ["page-014", "page-015"])
        self.quire("export", "x", "--since", info["uuid"], "--tar", self.directory / "none.tar")
        with tarfile.open(self.directory / "none.tar") as tar:
            self.assertEqual(tar.getnames(), [])
        self.assertIn("must be an earlier state",
                      self.quire("export", "x", "--since", "0-0", "--tar", "-", code=1))

    def test_the_cache_stays_warm(self):
        server = self.start()
        ids = [f"page-{i:03}" for i in range(10)]
        for name in ids:
            self.quire("get", "x", name)
        self.quire("get", "x", ids[0])
        before = self.metric("quire_cache_misses_total")
        self.grow(server, 10, 14)
        for name in ids:
            self.assertEqual(self.quire("get", "x", name), text_of(int(name[5:])))
        self.assertEqual(self.metric("quire_cache_misses_total"), before)
        self.quire("get", "x", "page-010")
        self.assertGreater(self.metric("quire_cache_misses_total"), before)

    def test_looks_at_the_manifest_by_itself(self):
        self.start("--reload-interval", "100ms")
        self.quired("append", "--quiet", self.archive, self.write("second", range(10, 14)))
        self.assertIn("14 documents", self.wait_for("archive x: has grown"))
        self.assertEqual(self.quire("get", "x", "page-012"), text_of(12))
        # A fault is said once, and an archive that is whole again is taken.
        manifest = (self.archive / "MANIFEST").read_bytes()
        (self.archive / "MANIFEST.tmp").write_bytes(manifest[:50])
        os.rename(self.archive / "MANIFEST.tmp", self.archive / "MANIFEST")
        self.wait_for("archive x stays unchanged")
        time.sleep(0.5)
        self.assertEqual(self.server_lines, [])
        (self.archive / "MANIFEST.tmp").write_bytes(manifest)
        os.rename(self.archive / "MANIFEST.tmp", self.archive / "MANIFEST")
        self.wait_for("archive x: same contents in new files")

    def test_a_replica_by_rsync_order(self):
        """Segments first, then MANIFEST: the copy is whole after each step."""
        replica = self.directory / "replica.quire"
        shutil.copytree(self.archive, replica)
        self.quired("append", "--quiet", self.archive, self.write("second", range(10, 14)))
        for path in sorted(self.archive.iterdir()):
            if path.name != "MANIFEST":
                shutil.copy2(path, replica / path.name)
                self.assertIn("whole", self.quired("verify", replica))
        shutil.copy2(self.archive / "MANIFEST", replica / "MANIFEST.new")
        os.rename(replica / "MANIFEST.new", replica / "MANIFEST")
        self.assertIn("whole", self.quired("verify", replica))
        self.assertEqual(contents_of(replica), contents_of(self.archive))


if __name__ == "__main__":
    unittest.main()
