#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests the notifications of `quired serve` to systemd, at the other end of the socket."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import time
import unittest

QUIRED = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"
# Generous: only a hang takes this long.
PATIENCE_S = 120


class ServiceManagerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-notify-")))
        (cls.directory / "document").write_text("one document\n" * 1000)
        cls.archive = cls.directory / "docs.quire"
        subprocess.run([QUIRED, "build", "--quiet", "-o", cls.archive,
                        cls.directory / "document"], check=True)

    def setUp(self):
        self.path = self.directory / f"{self.id().rpartition('.')[2]}.socket"
        self.socket = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.bind(str(self.path))
        self.socket.settimeout(PATIENCE_S)

    def start(self, *flags, listen="127.0.0.1:0", stderr=subprocess.DEVNULL, **environment):
        server = subprocess.Popen(
            [QUIRED, "serve", self.archive, "--listen", listen, *flags],
            stdin=subprocess.DEVNULL, stderr=stderr, text=True,
            env={**os.environ, "NOTIFY_SOCKET": str(self.path), **environment})
        self.addCleanup(server.wait, PATIENCE_S)
        self.addCleanup(server.kill)
        return server

    def next_message(self):
        """Returns the fields of the next message, as {name: value}."""
        text = self.socket.recv(65536).decode()
        return dict(line.split("=", 1) for line in text.splitlines())

    def await_message(self, field):
        """Returns the next message with the field, and those before it."""
        before = []
        while field not in (message := self.next_message()):
            before.append(message)
        return message, before

    def test_tells_of_start_reload_and_stop(self):
        server = self.start("--drain-delay", "2h", "--drain-timeout", "1h")
        ready, before = self.await_message("READY")
        self.assertEqual(ready["READY"], "1")
        self.assertRegex(ready["STATUS"], r"^serving 1 archive on 127\.0\.0\.1:\d+$")
        for message in before:
            self.assertIn("EXTEND_TIMEOUT_USEC", message)
        for _ in range(2):
            earliest = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
            server.send_signal(signal.SIGHUP)
            reloading = self.next_message()
            self.assertEqual(reloading["RELOADING"], "1")
            # Distinguishes this reload from an earlier one.
            self.assertGreaterEqual(int(reloading["MONOTONIC_USEC"]), earliest)
            self.assertEqual(self.next_message()["READY"], "1")
        server.send_signal(signal.SIGTERM)
        stopping = self.next_message()
        self.assertEqual(stopping["STOPPING"], "1")
        # systemd would otherwise kill it before its own time limits end.
        self.assertGreaterEqual(int(stopping["EXTEND_TIMEOUT_USEC"]), 3 * 3600 * 10**6)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_says_that_it_is_alive_as_long_as_it_answers(self):
        server = self.start(WATCHDOG_USEC="300000")
        self.await_message("READY")
        for _ in range(5):
            self.assertEqual(self.next_message(), {"WATCHDOG": "1"})
        server.send_signal(signal.SIGSTOP)
        self.addCleanup(server.send_signal, signal.SIGCONT)
        # Messages sent before; then none.
        self.socket.settimeout(1)
        with self.assertRaises(TimeoutError):
            for _ in range(1000):
                self.socket.recv(65536)
        self.socket.settimeout(PATIENCE_S)
        server.send_signal(signal.SIGCONT)
        self.assertEqual(self.next_message(), {"WATCHDOG": "1"})

    def test_the_watchdog_of_another_process_is_not_fed(self):
        server = self.start(WATCHDOG_USEC="10000", WATCHDOG_PID=str(os.getpid()))
        self.await_message("READY")
        server.send_signal(signal.SIGHUP)
        self.assertIn("RELOADING", self.next_message())
        self.assertIn("READY", self.next_message())

    def test_names_in_the_status_cannot_make_fields(self):
        directory = self.directory / "a\nMAINPID=1"
        directory.mkdir()
        self.start(listen=f"unix:{directory}/s")
        ready, _ = self.await_message("READY")
        self.assertNotIn("MAINPID", ready)
        self.assertIn("serving 1 archive on unix:", ready["STATUS"])

    def test_serves_when_the_manager_is_gone(self):
        self.socket.close()
        self.path.unlink()
        server = self.start(WATCHDOG_USEC="20000", stderr=subprocess.PIPE)
        self.addCleanup(server.stderr.close)
        self.assertTrue(any("listening on" in line for line in server.stderr))
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)


if __name__ == "__main__":
    unittest.main()
