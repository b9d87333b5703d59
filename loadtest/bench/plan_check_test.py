#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""plan_check.py computes shares and judges recommendations; with a build directory, it
runs instead: of a small text it checks some cells, whose speeds mean nothing.

usage: plan_check_test.py [BUILD_DIRECTORY]
"""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
import plan_check
from live_server import make_documents, write_corpus


def row(figure, ratio, mark=""):
    return {"figure": figure, "ratio": ratio, "mark": mark}


class SharesTest(unittest.TestCase):
    def test_within(self):
        rows = [row("size", 1.1), row("size", 0.8), row("size", 1.31), row("random", 0.5),
                row("random", 1.0), row("random", 9.0, "g"), row("random", 9.0, "d")]
        by_figure = {share["figure"]: share for share in plan_check.shares(rows)}
        self.assertEqual(by_figure["size"], {
            "figure": "size", "cells": 3, "within": [1 / 3, 2 / 3], "median": 1.1, "worst": 1.31})
        # Half as much is as bad as twice as much, and what is marked does not count.
        self.assertEqual(by_figure["random"], {
            "figure": "random", "cells": 2, "within": [0.5, 0.5], "median": 0.75, "worst": 0.5})
        # Sizes have a bound of their own.
        self.assertEqual(by_figure["build and rates"]["cells"], 2)
        self.assertNotIn("full", by_figure)

    def test_marks(self):
        self.assertEqual(plan_check.mark_of(0.95, 0.95, 0.05), "")
        self.assertEqual(plan_check.mark_of(0.3, 0.3, 0.05), "")
        self.assertEqual(plan_check.mark_of(0.7, 0.95, 0.05), "g")
        self.assertEqual(plan_check.mark_of(0.7, 0.95, 0.2), "d")

    def test_busy_seconds(self):
        tick = os.sysconf("SC_CLK_TCK")
        stat = ("cpu  9 9 9 9 9 9 9 9 9 9\n"
                f"cpu0 {tick} {2 * tick} {3 * tick} 999 999 {4 * tick} {5 * tick} {6 * tick} 99 99\n"
                f"cpu1 {tick} 0 0 999 999 0 0 0 99 99\ncpu10 77 0 0 0 0 0 0 0 0 0\nintr 5 6\n")
        self.assertEqual(plan_check.busy_seconds([0], stat), 21)
        self.assertEqual(plan_check.busy_seconds([0, 1], stat), 22)

    def test_split_cores(self):
        self.assertEqual(plan_check.split_cores([0, 1, 2, 3, 4]), ([0, 1], [2, 3, 4]))
        self.assertEqual(plan_check.split_cores([7]), ([7], [7]))


class JudgeTest(unittest.TestCase):
    # {key: (size, rate)}
    PREDICTED = {"small": (10, 500), "middle": (12, 700), "large": (20, 950), "fast": (30, 1000)}

    def test_choose(self):
        for objective, key in (("archive", "small"), ("balanced", "middle"), ("speed", "large")):
            self.assertEqual(plan_check.choose(self.PREDICTED, objective), key)

    def judge(self, objective, **measured):
        return plan_check.judge(objective, self.PREDICTED, {**self.PREDICTED, **measured})

    def test_as_predicted(self):
        for objective in plan_check.ENOUGH:
            result = self.judge(objective)
            self.assertEqual((result["times"], result["is_within"]), (1.0, True))

    def test_archive_counts_size(self):
        result = self.judge("archive", small=(15, 500))
        self.assertEqual((result["best"], result["times"], result["is_within"]),
                         ("middle", 1.25, False))
        self.assertTrue(self.judge("archive", small=(12.5, 1))["is_within"])

    def test_balanced_counts_both(self):
        # Too slow: 667 are needed.
        self.assertAlmostEqual(self.judge("balanced", middle=(12, 333))["times"], 2, 2)
        self.assertTrue(self.judge("balanced", middle=(12, 650))["is_within"])
        # Another one, smaller than it, turns out to be fast enough.
        self.assertAlmostEqual(self.judge("balanced", small=(10, 700))["times"], 1.2)

    def test_speed_counts_rate(self):
        result = self.judge("speed", large=(20, 600))
        self.assertEqual(result["best"], "fast")
        self.assertAlmostEqual(result["times"], 1000 / 600)
        self.assertFalse(result["is_within"])


class PartTest(unittest.TestCase):
    def test_every_third_mebibyte(self):
        with tempfile.TemporaryDirectory() as scratch:
            corpus, part = pathlib.Path(scratch, "corpus"), pathlib.Path(scratch, "part")
            mebibytes = [bytes([number]) * plan_check.PART_BYTES for number in range(7)]
            corpus.write_bytes(b"".join(mebibytes) + b"end")
            self.assertEqual(plan_check.write_part(corpus, 3, part), 7 * (1 << 20) + 3)
            self.assertEqual(part.read_bytes(), mebibytes[0] + mebibytes[3] + mebibytes[6])


class CommandLineTest(unittest.TestCase):
    def test_unknown_device(self):
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit):
            plan_check.parse_arguments(["--devices", "tape"])
        self.assertIn("devices are disk, hdd, ssd", errors.getvalue())


class SmokeTest(unittest.TestCase):
    BUILD = None

    def run_check(self, corpus, *options):
        return subprocess.run(
            [sys.executable, plan_check.__file__, "--build", self.BUILD, "--corpus", corpus,
             "--seconds", "0.2", "--json", "-", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)

    def test_small_text(self):
        with tempfile.TemporaryDirectory() as scratch:
            write_corpus(make_documents(40, seed=3), f"{scratch}/text")
            corpus = f"{scratch}/text.raw"
            result = self.run_check(corpus, "--devices", "disk,ssd", "--codecs", "lz4,rlz",
                                    "--block-sizes", "64KiB", "--work", scratch)
            self.assertEqual(result.returncode, 0, result.stderr)
            figures = json.loads(result.stdout)
            # Two cells: size and build once each, three rates on each of two devices.
            self.assertEqual(len(figures["rows"]), 2 * (2 + 2 * 3), figures)
            for each in figures["rows"]:
                self.assertGreater(min(each["predicted"], each["measured"]), 0, each)
                if each["figure"] == "size":
                    self.assertAlmostEqual(each["ratio"], 1, delta=0.5, msg=each)
            self.assertEqual(len(figures["judgements"]), 2 * 3)
            self.assertEqual(figures["cells_left_out"], 0)
            # Nothing is left behind.
            self.assertEqual(len(list(pathlib.Path(scratch).iterdir())), 3)
            result = self.run_check(corpus, "--codecs", "rlz:17", "--devices", "ssd")
            self.assertEqual(result.returncode, 1)
            self.assertIn("the plan has no such cell", result.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SmokeTest.BUILD = sys.argv.pop()
        unittest.main(defaultTest="SmokeTest")
    del SmokeTest
    unittest.main()
