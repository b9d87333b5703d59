#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests delayed_store, on which figures depend: the bytes of its answers, and that none is early.

usage: delayed_store_test.py DELAYED_STORE
"""
import http.client
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unittest

DELAY_S = 0.05
PATIENCE_S = 60


class DelayedStoreTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.text = random.Random(1).randbytes(300_000)
        (directory / "object").write_bytes(cls.text)
        store = cls.enterClassContext(subprocess.Popen(
            [STORE, directory, "--delay-ms", str(1000 * DELAY_S)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True))
        cls.address = store.stdout.readline().strip().removeprefix("http://")

    def setUp(self):
        self.connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        self.addCleanup(self.connection.close)

    def get(self, path="/object", **fields):
        """Returns status, body, ETag and seconds."""
        start = time.monotonic()
        self.connection.request("GET", path, headers={
            name.replace("_", "-"): value for name, value in fields.items()})
        answer = self.connection.getresponse()
        body = answer.read()
        return answer.status, body, answer.getheader("ETag"), time.monotonic() - start

    def test_answers_ranges_of_objects(self):
        draw = random.Random(2)
        for _ in range(20):
            first = draw.randrange(len(self.text))
            last = draw.randrange(first, len(self.text))
            status, body, _, _ = self.get(Range=f"bytes={first}-{last}")
            self.assertEqual((status, body == self.text[first:last + 1]), (206, True))
        self.assertEqual(self.get()[:2], (200, self.text))
        for bad in "bytes=2-1", f"bytes=0-{len(self.text)}", "bytes=x-y":
            self.assertEqual(self.get(Range=bad)[:2], (416, b""), bad)
        self.assertEqual(self.get("/absent")[0], 404)

    def test_compares_versions(self):
        etag = self.get()[2]
        self.assertEqual(self.get(If_Match=etag)[0], 200)
        self.assertEqual(self.get(If_Match='"other"')[0], 412)
        self.assertEqual(self.get(If_None_Match=etag)[:2], (304, b""))

    def test_answers_after_the_delay_and_a_new_connection_after_two(self):
        self.assertGreaterEqual(self.get()[3], 2 * DELAY_S)
        for _ in range(3):
            self.assertGreaterEqual(self.get()[3], DELAY_S)


if __name__ == "__main__":
    STORE = sys.argv.pop(1)
    unittest.main()
