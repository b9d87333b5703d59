#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that plan_check.py computes shares; with a build directory, runs it instead, on
small collections.

usage: plan_check_test.py [BUILD_DIRECTORY]
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
import plain_build
import plan_check
from live_server import make_documents, write_corpus


class SummaryTest(unittest.TestCase):
    def test_shares(self):
        rows = [{"ratio": ratio, "is_in_range": ratio < 1.1} for ratio in (0.8, 1.0, 1.125, 1.25)]
        self.assertEqual(plan_check.summary(rows), {
            "cells": 4, "median": 1.0625, "within": 0.5, "in_range": 0.5, "worst": 1.25})


class PartTest(unittest.TestCase):
    def test_every_third_mebibyte(self):
        with tempfile.TemporaryDirectory() as scratch:
            corpus, part = pathlib.Path(scratch, "corpus"), pathlib.Path(scratch, "part")
            mebibytes = [bytes([number]) * plan_check.PART_BYTES for number in range(7)]
            corpus.write_bytes(b"".join(mebibytes) + b"end")
            self.assertEqual(plan_check.write_part(corpus, 3, part), 7 * (1 << 20) + 3)
            self.assertEqual(part.read_bytes(), mebibytes[0] + mebibytes[3] + mebibytes[6])


class SmokeTest(unittest.TestCase):
    BUILD = None

    def check(self, write, *options):
        """Returns plan_check.py's rows of the corpora that write(DIRECTORY) makes."""
        with tempfile.TemporaryDirectory() as scratch:
            texts, work = pathlib.Path(scratch, "texts"), pathlib.Path(scratch, "work")
            texts.mkdir()
            work.mkdir()
            result = subprocess.run(
                [sys.executable, plan_check.__file__, "--build", self.BUILD, "--work", work,
                 "--json", "-", *options, "--corpus", *write(texts)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(list(work.iterdir()), [])
            return json.loads(result.stdout)["rows"]

    def test_all_of_a_text_has_the_size_of_its_archive(self):
        rows = self.check(plain_build.make_small)
        self.assertEqual({row["arguments"] for row in rows}, {""})
        self.assertEqual(len(rows), 5)
        for row in rows:
            self.assertEqual(row["ratio"], 1, row)
            self.assertTrue(row["is_in_range"], row)

    def test_samples(self):
        def write(directory):
            write_corpus(make_documents(400, seed=3), directory / "text")
            return [directory / "text.tar"]

        row, = self.check(write, "--plan-options=--sample-size 1MiB")
        # Dictionaries of so small samples hold much of them.
        self.assertAlmostEqual(row["ratio"], 1, delta=2 * plan_check.BOUND, msg=row)
        self.assertNotEqual(row["ratio"], 1)
        self.assertTrue(row["is_in_range"], row)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        SmokeTest.BUILD = sys.argv.pop()
        unittest.main(defaultTest="SmokeTest")
    del SmokeTest
    unittest.main()
