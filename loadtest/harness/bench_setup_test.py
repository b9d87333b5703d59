#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the errors of bench_setup.py before any measurement."""
import contextlib
import io
import pathlib
import tempfile
import unittest

import bench_setup


def message_of(function, *arguments):
    """Returns the last message of a script that calls it."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            function(*arguments)
        except SystemExit as end:
            return str(end.code)
    return None


class Programs(unittest.TestCase):
    def test_missing_one_is_named_with_the_command_that_makes_it(self):
        with tempfile.TemporaryDirectory() as directory:
            build = pathlib.Path(directory)
            (build / "bin").mkdir()
            (build / "bin" / "quired").touch()
            self.assertEqual(bench_setup.find_programs(build, "quired"),
                             [build.resolve() / "bin" / "quired"])
            message = message_of(bench_setup.find_programs, build, "quired", "codec_figures")
        self.assertIn("bin/codec_figures;", message)
        self.assertIn(f"cmake --build {directory} --target codec_figures", message)


if __name__ == "__main__":
    unittest.main()
