#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Rotates the access logs of quired and quire-http by the packages' configuration of logrotate,
when they exceed its size, and finds a line for each call afterwards."""
import gzip
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request

BIN = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
ROOT = pathlib.Path(__file__).resolve().parents[2]
# Only a hang takes this long.
PATIENCE_S = 120


class LogRotationTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-rotation-")))
        # logrotate refuses directories that a group may write to.
        self.directory.chmod(0o755)
        self.logs = self.directory / "private" / "docs"
        self.logs.mkdir(parents=True)
        # As systemd does for the logs of users that it makes up.
        (self.directory / "log").symlink_to("private")
        document = self.directory / "document"
        document.write_text("one document\n")
        self.archive = self.directory / "docs.quire"
        subprocess.run([BIN / "quired", "build", "-q", "-o", self.archive, document], check=True,
                       timeout=PATIENCE_S)

    def start(self, program, *arguments):
        process = subprocess.Popen([BIN / program, *map(str, arguments)],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)
        for line in process.stderr:
            if "listening on" in line:
                return process, line.split()[-1]
        return self.fail(f"{program} does not listen")

    def configure(self, package, pattern, process):
        """The package's configuration for the logs of this test, of some calls each."""
        text = (ROOT / "debian" / f"{package}.logrotate").read_text()
        for before, after in ((pattern, f"{self.directory}/log/docs/{package}*.log"),
                              ("maxsize 100M", "maxsize 600"),
                              ("/run/systemd/system", str(self.directory))):
            self.assertIn(before, text)
            text = text.replace(before, after)
        owner = f"{pathlib.Path(self.directory).owner()} {pathlib.Path(self.directory).group()}"
        text = text.replace("quire quire", owner)
        tools = self.directory / "tools"
        tools.mkdir(exist_ok=True)
        systemctl = tools / "systemctl"
        systemctl.write_text(f'#!/bin/sh\n[ "$1" = reload ] && kill -HUP {process.pid}\n')
        systemctl.chmod(0o755)
        configuration = self.directory / f"{package}.conf"
        configuration.write_text(text)
        configuration.chmod(0o644)
        return configuration

    def rotate(self, configuration):
        program = shutil.which("logrotate") or shutil.which("logrotate", path="/usr/sbin")
        self.assertTrue(program, "logrotate: deploy/bootstrap.sh installs it")
        path = f"{self.directory}/tools:/usr/bin:/bin"
        done = subprocess.run([program, "-s", self.directory / "state", configuration],
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                              env={**os.environ, "PATH": path})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def await_lines(self, path, count):
        """Lines are written after the answer."""
        end = time.monotonic() + PATIENCE_S
        while not path.exists() or path.read_text().count("\n") != count:
            self.assertLess(time.monotonic(), end, f"{path} never had {count} lines")
            time.sleep(0.02)

    def check(self, package, pattern, process, call):
        """Rotates twice; each call has a line in some file."""
        configuration = self.configure(package, pattern, process)
        log = self.logs / f"{package}.log"
        count = 0
        for rotation in range(3):
            # A log below the size stays.
            call()
            line_count = 1
            self.await_lines(log, line_count)
            before = log.stat().st_ino
            self.rotate(configuration)
            self.assertEqual(log.stat().st_ino, before)
            while log.stat().st_size <= 600:
                call()
                line_count += 1
                self.await_lines(log, line_count)
            count += line_count
            if rotation == 2:
                break
            self.rotate(configuration)
            self.assertNotEqual(log.stat().st_ino, before)
            # Rotation and reload are asynchronous: a call that comes first is in the old file.
            self.await_reopened(log, process)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE_S), 0)
        lines = [log.read_text(), (self.logs / f"{package}.log.1").read_text(),
                 gzip.decompress((self.logs / f"{package}.log.2.gz").read_bytes()).decode()]
        self.assertEqual(sum(text.count("\n") for text in lines), count)

    def await_reopened(self, log, process):
        inode = log.stat().st_ino
        end = time.monotonic() + PATIENCE_S
        while not any(self.inode_of(fd) == inode
                      for fd in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()):
            self.assertLess(time.monotonic(), end, "the log was not opened again")
            time.sleep(0.02)

    @staticmethod
    def inode_of(fd):
        try:
            return fd.stat().st_ino
        except OSError:
            return None

    def test_quired(self):
        process, address = self.start("quired", "serve", self.archive, "--listen", "127.0.0.1:0",
                                      "--access-log", self.logs / "quired.log")

        def call():
            subprocess.run([BIN / "quire", "--server", address, "archives"], check=True,
                           stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
        self.check("quired", "/var/log/quire/*/*.log", process, call)

    def test_quire_http(self):
        _, server = self.start("quired", "serve", self.archive, "--listen", "127.0.0.1:0")
        process, address = self.start("quire-http", "--server", server, "--listen", "127.0.0.1:0",
                                      "--access-log", self.logs / "quire-http.log")

        def call():
            with urllib.request.urlopen(f"http://{address}/v1/docs", timeout=PATIENCE_S) as reply:
                reply.read()
        self.check("quire-http", "/var/log/quire-http/*.log", process, call)

    def test_both_have_the_same_rules(self):
        rules = [re.findall(r"^\t(?!create|\t)\w.*", (ROOT / "debian" / f"{name}.logrotate")
                            .read_text(), re.MULTILINE) for name in ("quired", "quire-http")]
        self.assertEqual(*rules)


if __name__ == "__main__":
    unittest.main()
