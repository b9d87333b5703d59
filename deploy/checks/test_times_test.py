#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the sums of test_times.py on JUnit files as ctest writes them."""
import contextlib
import io
import pathlib
import tempfile
import unittest

from test_times import print_sums, read_ninja_log

JUNIT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="(empty)" tests="{count}">
{cases}
</testsuite>
"""
PASSED = '<testcase name="a" classname="a" time="1.5" status="run"><system-out/></testcase>'
FAILED = ('<testcase name="b" classname="b" time="2" status="fail"><failure message=""/>'
          '</testcase>')
SKIPPED = ('<testcase name="c" classname="c" time="0" status="notrun">'
           '<skipped message="SKIP_RETURN_CODE=77"/></testcase>')
MISSING = ('<testcase name="d" classname="d" time="0" status="notrun">'
           '<skipped message="Unable to find executable"/></testcase>')


class TestTimesTest(unittest.TestCase):
    def setUp(self):
        self.records = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, stage, *cases):
        (self.records / f"{stage}.xml").write_text(
            JUNIT.format(count=len(cases), cases="\n".join(cases)))

    def sums(self):
        """Returns the exit code and the printed lines."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            code = print_sums(self.records)
        return code, output.getvalue().splitlines()

    def test_sums_all_stages(self):
        self.write("programs", PASSED, PASSED)
        self.write("checked", PASSED)
        self.assertEqual(self.sums(), (0, ["3 passed, 0 failed"]))

    def test_counts_skipped_tests_apart(self):
        self.write("programs", PASSED, SKIPPED)
        self.assertEqual(self.sums(), (0, ["1 passed, 0 failed, 1 skipped"]))

    def test_a_test_that_could_not_run_has_failed(self):
        self.write("programs", PASSED, MISSING)
        self.assertEqual(self.sums(), (1, ["FAILED programs: d", "1 passed, 1 failed"]))

    def test_a_failed_test_is_not_counted_again_as_its_stage(self):
        self.write("programs", PASSED, FAILED)
        (self.records / "programs.failed").touch()
        self.assertEqual(self.sums(), (1, ["FAILED programs: b", "1 passed, 1 failed"]))

    def test_a_build_that_failed_counts_as_failed(self):
        self.write("programs", PASSED)
        (self.records / "checked.failed").touch()
        self.assertEqual(self.sums(), (1, ["FAILED stage checked", "1 passed, 1 failed"]))

    def test_a_stage_without_ctest_counts_as_one(self):
        self.write("programs", PASSED, PASSED)
        for stage in ("tree", "programs"):
            (self.records / f"{stage}.passed").touch()
        self.assertEqual(self.sums(), (0, ["3 passed, 0 failed"]))

    def test_nothing_at_all_is_not_a_success(self):
        self.assertEqual(self.sums(), (1, ["0 passed, 0 failed"]))

    def test_reads_the_last_run_of_each_step(self):
        (self.records / ".ninja_log").write_text(
            "# ninja log v5\n"
            "0\t2000\t1\tserver/CMakeFiles/x.dir/a.cc.o\tabc\n"
            "0\t500\t1\tserver/CMakeFiles/x.dir/a.cc.o\tabc\n"
            "500\t600\t1\tbin/quired\tdef\n")
        self.assertEqual(read_ninja_log(self.records),
                         [("compile", "server", "server/CMakeFiles/x.dir/a.cc.o", 0.5),
                          ("link", "bin", "bin/quired", 0.1)])


if __name__ == "__main__":
    unittest.main()
