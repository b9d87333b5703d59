#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that a soak finds wrong bytes, and failures without a reason."""
import contextlib
import io
import pathlib
import sys
import threading
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
import soak
from soak_readers import Faults, ProgramFailed, Reader


class CallFailed(grpc.RpcError):
    def __init__(self, code):
        super().__init__()
        self._code = code

    def code(self):
        return self._code

    def details(self):
        return "of a test"


class ReaderTest(unittest.TestCase):
    def read(self, outcome, *fault_names):
        """Returns (findings, right, excused) after one call that returns or raises
        `outcome`, while faults are on."""
        faults, findings, called = Faults(), [], threading.Event()
        for name in fault_names:
            faults.begin(name)

        def read_once(_draw):
            if called.is_set():
                reader_stop.wait()
                return b"", [b""]
            called.set()
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        reader_stop = threading.Event()
        reader = Reader("test", faults, findings, read_once)
        called.wait()
        reader._stop.set()  # pylint: disable=protected-access
        reader_stop.set()
        reader.stop()
        return findings, reader.right_count, reader.excused_count

    def test_right_bytes_of_any_version(self):
        findings, right, _ = self.read((b"new", [b"old", b"new"]))
        self.assertEqual(findings, [])
        self.assertGreaterEqual(right, 1)

    def test_wrong_bytes_are_found_whatever_goes_on(self):
        for outcome in (b"other", [b"old", b"new"]), (b"", [b"x"]), ([b"a", None], [[b"a", b"b"]]):
            findings, _, _ = self.read(outcome, "kill", "device errors")
            self.assertEqual(len(findings), 1, findings)
            self.assertIn("wrong bytes", findings[0])

    def test_a_failure_needs_its_own_fault(self):
        away = CallFailed(grpc.StatusCode.UNAVAILABLE)
        damaged = CallFailed(grpc.StatusCode.DATA_LOSS)
        for outcome, faults, is_found in (
                (away, (), True), (away, ("kill",), False), (away, ("device errors",), False),
                (damaged, ("kill", "device errors"), True), (ProgramFailed("no"), (), True),
                (ProgramFailed("no"), ("kill",), False), (ValueError("no"), ("kill",), True)):
            findings, _, excused = self.read(outcome, *faults)
            self.assertEqual((len(findings), excused), (1, 0) if is_found else (0, 1), outcome)

    def test_a_busy_server_may_refuse(self):
        for outcome in (CallFailed(grpc.StatusCode.RESOURCE_EXHAUSTED),
                        ProgramFailed("too many bytes in flight; read them or retry later")):
            self.assertEqual(self.read(outcome), ([], 0, 0))

    def test_a_fault_excuses_only_what_was_under_way(self):
        faults = Faults()
        faults.begin("kill")
        faults.end("kill")
        self.assertEqual(faults.during(0), {"kill"})
        self.assertEqual(faults.during(float("inf")), set())
        faults.begin("kill")
        self.assertEqual(faults.during(float("inf")), {"kill"})


class GrowthTest(unittest.TestCase):
    def findings(self, samples, files_after):
        run = soak.Soak.__new__(soak.Soak)
        run.findings, run.memory_samples = [], samples
        run.open_files = lambda: files_after
        with contextlib.redirect_stdout(io.StringIO()):
            run.check_growth(10)
        return run.findings

    def test_what_grows_is_found(self):
        flat, grown = [200 << 20] * 60, [(100 + 3 * i) << 20 for i in range(60)]
        self.assertEqual(self.findings(flat, 12), [])
        self.assertIn("memory grew", self.findings(grown, 12)[0])
        self.assertIn("open files grew", self.findings(flat, 100)[0])


if __name__ == "__main__":
    unittest.main()
