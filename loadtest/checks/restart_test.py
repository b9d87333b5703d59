#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that scans, batches and ranges resume when the server is killed during them and
restarted; and that they end with advice when it does not come back.

usage: restart_test.py QUIRED QUIRE
"""
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# Only a hang takes this long.
PATIENCE_S = 120
TEXT_SIZE = 24 << 20
# Less than a client and a server have in flight, so that a stopped reader stops the server.
FIRST_SIZE = 1 << 20
AWAY_S = 2


class RestartTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-restart-")))
        documents = cls.directory / "documents"
        documents.mkdir()
        draw = random.Random(7)
        cls.texts = {f"{i:02}": draw.randbytes(TEXT_SIZE // 24) for i in range(24)}
        for name, text in cls.texts.items():
            (documents / name).write_bytes(text)
        cls.archive = cls.directory / "docs.quire"
        subprocess.run([QUIRED, "build", "--quiet", "--codec", "copy", "-o", cls.archive, documents],
                       check=True)
        cls.all = b"".join(cls.texts[name] for name in sorted(cls.texts))

    def setUp(self):
        self.address = f"unix:{self.directory}/{self.id().rpartition('.')[2]}"
        self.start_server()
        self.addCleanup(self.stop_server)

    def start_server(self):
        """Uses the same address each time."""
        self.server = subprocess.Popen(
            [QUIRED, "serve", self.archive, "--listen", self.address], stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        for line in self.server.stderr:
            if "listening on" in line:
                break
        # Otherwise a full pipe would stop it.
        threading.Thread(target=self.drain, args=(self.server.stderr,), daemon=True).start()

    @staticmethod
    def drain(stream):
        with stream:
            stream.read()

    def stop_server(self):
        self.server.send_signal(signal.SIGKILL)
        self.server.wait(PATIENCE_S)

    def restart(self):
        self.stop_server()
        time.sleep(AWAY_S)
        self.start_server()

    def quire(self, *arguments, **streams):
        client = subprocess.Popen([QUIRE, "--server", self.address, *arguments],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, **streams)
        self.addCleanup(client.wait, PATIENCE_S)
        self.addCleanup(client.kill)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.stderr.close)
        return client

    def test_a_scan_goes_on(self):
        client = self.quire("scan", "docs")
        text = client.stdout.read(FIRST_SIZE)
        self.restart()
        text += client.stdout.read()
        said = client.stderr.read()
        self.assertEqual(client.wait(PATIENCE_S), 0, said)
        self.assertTrue(text == self.all)

    def test_a_batch_goes_on(self):
        out = self.directory / "out"
        client = self.quire("batch", "docs", "--output-dir", out, stdin=subprocess.PIPE)
        with client.stdin as items:
            for name in sorted(self.texts)[:12]:
                items.write(name.encode() + b"\n")
            items.flush()
            self.wait_for(lambda: out.exists() and any(out.iterdir()))
            self.restart()
            for name in sorted(self.texts)[12:]:
                items.write(name.encode() + b"\n")
        said = client.stderr.read()
        self.assertEqual(client.wait(PATIENCE_S), 0, said)
        found = {path.read_bytes() for path in out.iterdir()}
        self.assertTrue(found == set(self.texts.values()))

    def test_a_scan_that_ends_early_says_how_to_go_on(self):
        client = self.quire("--timeout", "1s", "scan", "docs", "--length", "20MiB")
        text = client.stdout.read(FIRST_SIZE)
        self.server.send_signal(signal.SIGSTOP)
        text += client.stdout.read()
        said = client.stderr.read().decode()
        self.server.send_signal(signal.SIGCONT)
        self.assertNotEqual(client.wait(PATIENCE_S), 0)
        command = re.search(r"the rest: quire (.*)", said)
        self.assertIsNotNone(command, said)
        rest = self.quire(*command[1].split())
        text += rest.stdout.read()
        self.assertEqual(rest.wait(PATIENCE_S), 0)
        self.assertTrue(text == self.all[:20 << 20])

    @staticmethod
    def wait_for(condition):
        end = time.monotonic() + PATIENCE_S
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
