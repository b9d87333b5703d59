#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What bench_setup.py refuses before anything is measured."""
import contextlib
import io
import pathlib
import tempfile
import types
import unittest

import bench_setup

KINDS = ("empty", "quire")


def message_of(function, *arguments):
    """What a script that calls it says last."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            function(*arguments)
        except SystemExit as end:
            return str(end.code)
    return None


class Programs(unittest.TestCase):
    def test_missing_one_is_named_with_the_command_that_makes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder)
            (build / "bin").mkdir()
            (build / "bin" / "quired").touch()
            self.assertEqual(bench_setup.find_programs(build, "quired"),
                             [build.resolve() / "bin" / "quired"])
            message = message_of(bench_setup.find_programs, build, "quired", "api_limit")
        self.assertIn("bin/api_limit;", message)
        self.assertIn(f"cmake --build {folder} --target api_limit", message)


class Rounds(unittest.TestCase):
    def settle(self, **asked):
        arguments = types.SimpleNamespace(**asked)
        message = message_of(bench_setup.settle_rounds, arguments, KINDS, 500, 60)
        return arguments, message

    def test_what_takes_too_long_is_refused_with_how_long_it_would_take(self):
        _, message = self.settle(smoke=False, rounds=20, milliseconds=1500)
        self.assertIn("take 80 s, and 60 s are the most", message)

    def test_what_is_short_enough_stays(self):
        arguments, message = self.settle(smoke=False, rounds=15, milliseconds=1500)
        self.assertIsNone(message)
        self.assertEqual((arguments.rounds, arguments.milliseconds), (15, 1500))

    def test_smoke_is_one_short_round(self):
        arguments, message = self.settle(smoke=True, rounds=1000, milliseconds=1500)
        self.assertIsNone(message)
        self.assertEqual((arguments.rounds, arguments.milliseconds), (1, 20))


if __name__ == "__main__":
    unittest.main()
