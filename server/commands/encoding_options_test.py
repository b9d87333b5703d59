#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests the options of quired build that choose the encoding, and plan and recompress, from the
command line."""
import gzip
import json
import os
import random
import subprocess
import unittest

from offline_case import OfflineCase, QUIRED, text_of_size


class EncodingOptionsTest(OfflineCase):
    def build_planned(self, plan, *options):
        """Runs the plan's first command, and compares the size."""
        command = plan["commands"][0].split()
        self.assertEqual(command[:4], ["quired", "build", "-o", "archive.quire"])
        self.build(*options, *command[2:])
        self.assertEqual(
            sum(path.stat().st_size for path in (self.directory / "archive.quire").iterdir()),
            plan["cells"][plan["recommended"]]["size_bytes"])

    def test_the_objective_chooses_what_is_not_given(self):
        for objective, codec in (("speed", "rlz:1"), ("balanced", "rlz:2"),
                                 ("archive", "rlz:3")):
            result = self.build("-o", "x.quire", "--force", "--objective", objective, "in")
            info = self.inspect("x.quire")
            self.assertEqual(info["codec"], codec)
            self.assertTrue(info["choice"].startswith(f"objective {objective}: {codec}, "), info)
            # One line, on standard error and in inspect's output.
            self.assertIn(info["choice"].encode() + b"\n", result.stderr)
            self.assertIn(info["choice"].encode() + b"\n",
                          self.run_quired("inspect", "x.quire").stdout)
        # Explicit options take precedence.
        self.build("-o", "x.quire", "--force", "--objective", "archive", "--codec", "zstd:3",
                   "--block-size", "16KiB", "--reorder", "off", "in")
        info = self.inspect("x.quire")
        self.assertEqual((info["codec"], info["block_size_bytes"], info["run_count"]),
                         ("zstd:3", 16384, 1))
        self.build("-o", "x.quire", "--force", "--objective", "archive", "--codec", "zlib", "in")
        self.assertEqual(self.inspect("x.quire")["codec"], "zlib:9")

    def test_recompress(self):
        """Yields the same as a build, in place too; reports what it copied."""
        self.build("-o", "x.quire", "in")
        self.build("-o", "lz4.quire", "--codec", "lz4", "in")
        result = self.run_quired("recompress", "x.quire", "-o", "y.quire/", "--codec", "lz4")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, b"")
        self.assertIn(b"y.quire: 50 documents", result.stderr)
        self.assertEqual(self.inspect("y.quire")["uuid"], self.inspect("lz4.quire")["uuid"])
        result = self.run_quired("recompress", "y.quire", "-o", "y.quire", "--codec", "lz4",
                                 "--replace")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, b"blocks? (was|were) copied unchanged")
        self.assertEqual(self.inspect("y.quire")["uuid"], self.inspect("lz4.quire")["uuid"])
        result = self.run_quired("recompress", "y.quire", "-o", "z.quire", "--codec", "zstd",
                                 "--quiet")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(self.names(),
                         sorted(["in", "lz4.quire", "x.quire", "y.quire", "z.quire"]))

    def test_partitions(self):
        self.build("-o", "x.quire", "--codec", "zlib", "--block-size", "256KiB",
                   "--partition-size", "8KiB", "in")
        info = self.inspect("x.quire")
        self.assertEqual(info["codec"], "zlib:6")
        self.assertEqual(info["partition_size_bytes"], 8192)
        self.assertIn(b"partition size        8 KiB",
                      self.run_quired("inspect", "x.quire").stdout)
        # Blocks no larger than a partition are not divided.
        self.build("-o", "y.quire", "--codec", "zstd", "--block-size", "4KiB",
                   "--partition-size", "4KiB", "in")
        self.assertNotIn("partition_size_bytes", self.inspect("y.quire"))
        for archive in ("x.quire", "y.quire"):
            self.assertEqual(self.run_quired("verify", archive).returncode, 0)

    def test_codec_auto_chooses_by_block(self):
        (self.directory / "in" / "noise").write_bytes(random.Random(1).randbytes(600_000))
        stored = {}
        for objective in ("speed", "balanced", "archive"):
            self.build("-o", "x.quire", "--force", "--codec", "auto",
                       "--objective", objective, "--dictionary-size", "16KiB", "in")
            info = self.inspect("x.quire")
            self.assertEqual(info["codec"], "auto:" + str(1 + len(stored)))
            members = info["members"]
            self.assertGreater(members["copy"]["block_count"], 6)
            self.assertGreater(len(members), 1)
            self.assertEqual(sum(m["block_count"] for m in members.values()),
                             info["block_count"])
            self.assertIn(b"\n  in copy  ", self.run_quired("inspect", "x.quire").stdout)
            self.assertEqual(self.run_quired("verify", "x.quire").returncode, 0)
            stored[objective] = info["stored_size_bytes"]
        self.assertLessEqual(stored["archive"], stored["balanced"])
        self.build("-o", "y.quire", "--codec", "auto:max", "--threads", "3",
                   "--objective", "archive", "--dictionary-size", "16KiB", "in")
        self.assertEqual(self.inspect("y.quire")["uuid"], info["uuid"])
        self.assertEqual((self.directory / "y.quire" / "MANIFEST").read_bytes(),
                         (self.directory / "x.quire" / "MANIFEST").read_bytes())

    def test_dictionary_methods(self):
        hashes = set()
        for method in [[], ["--dictionary-method", "coverage"],
                       ["--dictionary-method=uniform"]]:
            self.build("--force", "-o", "x.quire", "--dictionary-size", "8KiB",
                       "--reorder", "off", *method, "in", "in")
            info = self.inspect("x.quire")
            self.assertLessEqual(info["dictionary_size_bytes"], 8192)
            self.assertGreater(info["dictionary_size_bytes"], 0)
            hashes.add(info["dictionary_hash"])
        # The first two are the same.
        self.assertEqual(len(hashes), 2)

    def test_reorder(self):
        # Its own second copy, of 22 KiB, next to other text.
        (self.directory / "in" / "a").write_bytes(text_of_size(22000, 99))
        (self.directory / "in" / "z").write_bytes(b"before it" + text_of_size(22000, 99))
        (self.directory / "in" / "y").write_bytes(self.files["d/001.txt"])
        sizes = {}
        for mode in ("off", "auto", "dedup", "full"):
            self.build("-o", mode, "--codec", "zstd", "--reorder", mode, "in")
            info = self.inspect(mode)
            self.assertEqual(info["document_count"], 53)
            self.assertEqual(info["format_version"], 4)
            self.assertEqual(info["run_count"] > 1, mode != "off", mode)
            sizes[mode] = info["stored_text_size_bytes"]
            self.assertEqual(self.run_quired("verify", mode).returncode, 0)
        size_bytes = info["size_bytes"]
        self.assertEqual(sizes["off"], size_bytes)
        # auto omits only the long one, dedup the short one, too.
        self.assertLess(sizes["auto"], size_bytes - 16000)
        self.assertLess(sizes["dedup"], sizes["auto"] - 2000)
        self.assertIn(b"stored text", self.run_quired("inspect", "dedup").stdout)
        self.assertEqual(sizes["full"], sizes["dedup"])
        self.assertEqual(self.names(), ["auto", "dedup", "full", "in", "off"])

    def test_plan(self):
        page = self.directory / "plan.html"
        result = self.run_quired("plan", "in", "--json", "-", "--html", page,
                                 "--price-per-tb", "18", "--disk", "hdd")
        self.assertEqual(result.returncode, 0, result.stderr)
        plan = json.loads(result.stdout)
        self.assertEqual(plan["version"], 1)
        self.assertIn("<svg", page.read_text())
        # The archive can be built as described, and then has that size.
        self.assertEqual([cell["arguments"] for cell in plan["cells"]], [""])
        self.build_planned(plan)
        result = self.run_quired("plan", "in", "--compare", "--objective", "archive", "--json", "-")
        plan = json.loads(result.stdout)
        self.assertEqual({cell["arguments"] for cell in plan["cells"]},
                         {"--codec lz4", "--codec zstd", "--objective speed", "",
                          "--objective archive"})
        self.assertEqual(plan["recommended"], 0)
        self.build_planned(plan, "--force")
        result = self.run_quired("plan", "in", "--objective", "speed")
        self.assertIn(b"quired build -o archive.quire --objective speed in", result.stdout)
        self.assertNotIn(b"beaten", result.stdout)
        result = self.run_quired("plan", "in", "--expand", "--split", "lines",
                                 "--input-size-max", "1GiB", "--window-max", "2GiB")
        self.assertIn(b"archive.quire --expand --split lines --input-size-max 1GiB "
                      b"--window-max 2GiB in",
                      result.stdout)
        result = self.run_quired("plan", "in", "--memory", "1MiB")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"or give --compare", result.stdout)
        # Names that anybody could foresee are not written through, and only files are
        # replaced.
        os.symlink("victim", self.directory / "report.partial")
        (self.directory / "victim").write_bytes(b"precious")
        result = self.run_quired("plan", "in", "--json", "report")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads((self.directory / "report").read_text())["version"], 1)
        self.assertEqual((self.directory / "victim").read_bytes(), b"precious")
        os.mkfifo(self.directory / "pipe")
        result = self.run_quired("plan", "in", "--html", "pipe")
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"pipe: is not a file, and would be replaced", result.stderr)
        # Any file shows its disk; this one is not waited for.
        os.mkfifo(self.directory / "fifo")
        self.assertEqual(self.run_quired("plan", "in", "--disk", "fifo").returncode, 0)
        for arguments, message in (
                (("in", "--network", "0Gbit"), b"--network must be more than 0"),
                (("in", "--disk", "tape"), b"--disk must be hdd, ssd, an existing path"),
                (("in", "--text-size", "1B"), b"must be at least the size of the inputs"),
                (("in", "--objective", "best"), b"must be speed, balanced or archive, got \"best\""),
                (("in", "--budget", "5"), b"--budget needs --price-per-tb"),
                (("in", "--price-per-tb", "0"), b"--price-per-tb"),
                (("in", "--html", "-"), b"--html must name a file"),
                (("in", "--html", "in"), b"in: is a directory; give the path of a file"),
                (("empty",), b"hold no text to plan with")):
            (self.directory / "empty").mkdir(exist_ok=True)
            result = self.run_quired("plan", *arguments)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertIn(message, result.stderr)
        result = subprocess.run([QUIRED, "plan", "in"], cwd=self.directory, check=False,
                                env={**os.environ, "TMPDIR": "/no/such"},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"TMPDIR must name a directory", result.stderr)

    def test_inflate(self):
        # Two releases of a text, each compressed: no bytes in common.
        for i, name in enumerate(("p.gz", "q.gz")):
            text = text_of_size(40000, 7) + b"release %d" % i
            (self.directory / "in" / name).write_bytes(gzip.compress(text, 6, mtime=0))
        sizes = {}
        for mode in ("off", "auto"):
            self.build("-o", mode, "--inflate", mode, "in")
            info = self.inspect(mode)
            sizes[mode] = info["stored_size_bytes"]
            self.assertEqual(info["document_count"], 52)
            self.assertEqual(info["codec"], "rlz:2")
            self.assertEqual(self.run_quired("verify", mode).returncode, 0)
        self.assertLess(sizes["auto"], sizes["off"] - 1000)
        self.assertEqual(self.names(), ["auto", "in", "off"])
        # Members are inflated for every codec.
        for codec in ("zstd", "lz4", "auto"):
            for mode in ("off", "auto"):
                self.build("-o", mode, "--force", "--codec", codec, "--reorder", "off",
                           "--inflate", mode, "in")
                sizes[mode] = self.inspect(mode)["stored_size_bytes"]
                self.assertEqual(self.run_quired("verify", mode).returncode, 0)
            # lz4 makes the text no smaller than gzip did.
            if codec != "lz4":
                self.assertLess(sizes["auto"], sizes["off"], codec)

    def test_inflate_cuts_blocks_around_members(self):
        member = gzip.compress(text_of_size(400000, 7), 6, mtime=0)
        (self.directory / "in" / "large.gz").write_bytes(member)
        self.build("-o", "x.quire", "--inflate", "auto", "in")
        self.assertGreaterEqual(self.inspect("x.quire")["block_size_bytes_max"], len(member) - 10)
        result = self.run_quired("inspect", "x.quire")
        self.assertIn(b"64 KiB, cut around compressed members: up to", result.stdout)
        self.assertRegex(result.stdout, rb"gzip members +1 of .* stored as .* of text")
        self.assertEqual(
            self.inspect("x.quire")["compressed_members"]["gzip"]["text_size_bytes"], 400000)
        self.assertEqual(self.run_quired("verify", "x.quire").returncode, 0)
        # Unless members of that length are excluded.
        options = ("--force", "--inflate", "auto", "--inflate-member-size", "300000")
        result = self.build("-o", "x.quire", *options, "in")
        self.assertEqual(self.inspect("x.quire")["block_size_bytes_max"], 65536)
        self.assertRegex(result.stderr, b"1 compressed member is stored unchanged.* takes up to 6MiB")


if __name__ == "__main__":
    unittest.main()
