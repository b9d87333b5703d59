#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests quire-loadtest against a server that describes its archive and is silent
afterwards: each mode ends, reports it, and fails.

usage: silent_server_test.py QUIRE_LOADTEST
"""
import concurrent.futures
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import make_stubs

READ_SIZE_MAX = 100_000
# A run that lasts longer would never end.
SECONDS_MAX = 120


@contextlib.contextmanager
def silent_server(stubs):
    """Returns the address of a server whose calls for text do nothing until the end."""
    over = threading.Event()

    class Archive(stubs.rpc.ArchiveServicer):
        def GetArchive(self, request, context):
            response = stubs.pb.GetArchiveResponse()
            response.archive.name = request.archive
            response.archive.size_bytes = 10 * READ_SIZE_MAX
            response.archive.document_count = 1
            response.limits.read_size_bytes_max = READ_SIZE_MAX
            response.limits.batch_message_items_max = 1000
            return response

        def Read(self, request, context):
            over.wait()

        def stall(self, request, context):
            over.wait()
            yield from ()

        ReadStream = BatchRead = Scan = stall

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
    stubs.rpc.add_ArchiveServicer_to_server(Archive(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        over.set()
        server.stop(None).wait()


class SilentServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.stubs = make_stubs(directory)

    def test_each_mode_ends_and_fails(self):
        for options in ([], ["--in-flight", "1", "--warmup", "1h"],
                        ["--range-size", "200KiB"], ["--mode", "batch"],
                        ["--mode", "batch", "--warmup", "1h"], ["--mode", "full"],
                        ["--rate", "100"]):
            with self.subTest(options=options), silent_server(self.stubs) as address:
                run = subprocess.run(
                    [QUIRE_LOADTEST, "a", "--json", "--server", address, "--deadline", "300ms",
                     *options],
                    capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
                self.assertEqual(run.returncode, 1, run.stderr)
                report = json.loads(run.stdout)
                self.assertEqual(report["ended_by"], "silence")
                self.assertEqual(report["right"], 0)
                self.assertEqual(report["requests"], report["errors"])
                if "--warmup" in options:
                    self.assertIn("no request was answered", run.stderr)
                else:
                    self.assertGreater(report["latency_ms"]["lower_bounds"], 0)
                    self.assertGreaterEqual(report["latency_ms"]["max"], 250)


if __name__ == "__main__":
    QUIRE_LOADTEST = sys.argv.pop(1)
    unittest.main()
