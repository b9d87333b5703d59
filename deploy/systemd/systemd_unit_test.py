#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the systemd units: systemd's own checks of them, the documented example of a
configuration, and the programs under their filters of system calls."""
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.request

BIN = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
HERE = pathlib.Path(__file__).resolve().parent
UNIT = HERE / "quired@.service"
HTTP_UNIT = HERE / "quire-http.service"
# Only a hang takes this long.
PATIENCE_S = 120

# Starts a program with only the system calls of its first argument.
FILTERED = """
import os, sys, seccomp
filter = seccomp.SyscallFilter(seccomp.ERRNO(1))
for name in sys.argv[1].split(","):
    try:
        filter.add_rule(seccomp.ALLOW, name)
    except RuntimeError:
        pass  # Of another architecture.
filter.load()
os.execv(sys.argv[2], sys.argv[2:])
"""


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def settings(name, unit=UNIT):
    """Returns the values of a setting in the unit, in order."""
    return re.findall(rf"^{name}=(.*)$", unit.read_text(), re.MULTILINE)


@functools.cache
def system_calls(name):
    """Returns the system calls of a group such as @aio, including nested groups."""
    if not name.startswith("@"):
        return {name}
    listed = run("systemd-analyze", "syscall-filter", name).stdout.splitlines()
    assert listed and listed[0] == name, listed
    words = [line.strip() for line in listed[1:] if not line.strip().startswith("#")]
    return set().union(*(system_calls(word) for word in words if word))


def allowed_calls(unit=UNIT):
    allowed = set()
    for value in settings("SystemCallFilter", unit):
        calls = set().union(*(system_calls(word) for word in value.lstrip("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


class UnitCase(unittest.TestCase):
    """Checks that every unit passes; a test class names its unit and program."""

    unit_path = None
    program = None
    # The exposure level of systemd-analyze, from 0 (best) to 10, times 10. The rest is the
    # network, unix sockets, and options that depend on them.
    exposure_max = None

    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-unit-")))

    def unit(self, *changes):
        """Returns a copy that starts the program of this build; `changes` are (from, to)."""
        text = self.unit_path.read_text()
        for before, after in ((f"/usr/bin/{self.program}", str(BIN / self.program)), *changes):
            self.assertIn(before, text)
            text = text.replace(before, after)
        path = self.directory / self.unit_path.name
        path.write_text(text)
        return path

    def verify(self, path):
        return run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no",
                   str(path).replace("@.", "@docs."))

    def exposure(self, path):
        return run("systemd-analyze", "security", "--offline=true", "--no-pager",
                   f"--threshold={self.exposure_max}", path)

    def start(self, *command):
        server = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait, PATIENCE_S)
        self.addCleanup(server.kill)
        said = []
        for line in server.stderr:
            said.append(line)
            if "listening on" in line:
                text = "".join(said)
                return server, line.split()[-1], re.search(r"http://\S+", text)[0]
        return self.fail("it does not listen: " + "".join(said))


class UnitChecks:
    """Tests of every unit."""

    def test_systemd_takes_it(self):
        verified = self.verify(self.unit())
        self.assertEqual((verified.returncode, verified.stderr), (0, ""))

    def test_systemd_would_say_what_is_wrong(self):
        wrong = self.verify(self.unit(("ProtectSystem=", "ProtectSistem=")))
        self.assertIn("ProtectSistem", wrong.stderr)
        missing = self.unit((f"{BIN / self.program} ", f"{BIN / self.program}-no-such-file "))
        self.assertNotEqual(self.verify(missing).returncode, 0)

    def test_it_is_hardened(self):
        rated = self.exposure(self.unit())
        self.assertEqual(rated.returncode, 0, rated.stdout + rated.stderr)
        weaker = self.exposure(self.unit(("RestrictNamespaces=yes", "RestrictNamespaces=no")))
        self.assertNotEqual(weaker.returncode, 0)


class HttpUnitTest(UnitChecks, UnitCase):
    unit_path = HTTP_UNIT
    program = "quire-http"
    exposure_max = 12

    def test_the_gateway_needs_no_more_system_calls(self):
        allowed = allowed_calls(HTTP_UNIT)
        for name in "mount", "ptrace", "chown", "setuid", "bpf", "reboot", "init_module":
            self.assertNotIn(name, allowed)
        text = b"the only document\n" * 100_000
        (self.directory / "document").write_bytes(text)
        archive = self.directory / "docs.quire"
        self.assertEqual(run(BIN / "quired", "build", "-q", "-o", archive,
                             self.directory / "document").returncode, 0)
        _, server, _ = self.start(BIN / "quired", "serve", archive, "--listen", "127.0.0.1:0",
                                  "--admin", "127.0.0.1:0")
        gateway, address, _ = self.start(
            sys.executable, "-c", FILTERED, ",".join(sorted(allowed)), BIN / "quire-http",
            "--server", server, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
            "--files", self.directory, "--access-log", self.directory / "log")
        for path in "v1/docs/doc/document", "v1/docs/page/document", "files/document":
            with urllib.request.urlopen(f"http://{address}/{path}", timeout=PATIENCE_S) as reply:
                self.assertTrue(reply.read() == text, path)
        gateway.send_signal(signal.SIGHUP)
        gateway.send_signal(signal.SIGTERM)
        self.assertEqual(gateway.wait(PATIENCE_S), 0)


class UnitTest(UnitChecks, UnitCase):
    unit_path = UNIT
    program = "quired"
    exposure_max = 13

    def engine(self, url):
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            return re.search(r'quire_build_info\{.*engine="(\w+)"', page.read().decode())[1]

    def test_the_server_needs_no_more_system_calls(self):
        allowed = allowed_calls()
        for name in "io_uring_setup", "io_uring_enter", "io_uring_register":
            self.assertIn(name, allowed)
        for name in "mount", "ptrace", "chown", "setuid", "bpf", "reboot", "init_module":
            self.assertNotIn(name, allowed)
        text = b"the only document\n" * 10000
        (self.directory / "document").write_bytes(text)
        archive = self.directory / "docs.quire"
        self.assertEqual(run(BIN / "quired", "build", "-q", "-o", archive,
                             self.directory / "document").returncode, 0)
        command = [BIN / "quired", "serve", archive, "--listen", "127.0.0.1:0", "--admin",
                   "127.0.0.1:0"]
        server, _, url = self.start(*command)
        engine = self.engine(url)
        server.kill()
        server, address, url = self.start(sys.executable, "-c", FILTERED,
                                          ",".join(sorted(allowed)), *command)
        # With fewer system calls it would use pread instead.
        self.assertEqual(self.engine(url), engine)
        got = subprocess.run([BIN / "quire", "--server", address, "get", "docs", "document"],
                             capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertTrue(got.stdout == text, got.stderr)
        server.send_signal(signal.SIGHUP)
        self.assertTrue(any("unchanged" in line for line in server.stderr))
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_the_example_is_a_configuration(self):
        example = (HERE / "docs.toml").read_text()
        (self.directory / "document").write_text("one document\n")
        archive = self.directory / "docs.quire"
        self.assertEqual(run(BIN / "quired", "build", "-q", "-o", archive,
                             self.directory / "document").returncode, 0)
        for path, here in (("/srv/quire/docs.quire", archive), ("0.0.0.0:7420", "127.0.0.1:0"),
                           ("127.0.0.1:7421", "127.0.0.1:0"),
                           ("/var/log/quire/docs/access.log", self.directory / "access.log")):
            self.assertIn(path, example)
            example = example.replace(path, str(here))
        config = self.directory / "docs.toml"
        config.write_text(example)
        self.start(BIN / "quired", "serve", "--config", config)
        self.assertTrue((self.directory / "access.log").exists())
        # The directory that the unit lets it write to.
        self.assertEqual(settings("LogsDirectory"), ["quire/%i"])

    def upgrade(self, failing=""):
        """Returns the restarts of postinst, in order, and its output."""
        script = (HERE.parents[1] / "debian/quired.postinst").read_text()
        for before, after in (("/run/systemd/system", str(self.directory)), ("#DEBHELPER#", "")):
            self.assertIn(before, script)
            script = script.replace(before, after)
        (self.directory / "systemctl").write_text(
            "#!/bin/sh\nfor name in a b c; do echo \"quired@$name.service loaded active running\"; done\n")
        restarts = self.directory / "restarts"
        (self.directory / "deb-systemd-invoke").write_text(
            f'#!/bin/sh\necho "$@" >>{restarts}\n[ "$2" != "{failing}" ]\n')
        for name in "systemctl", "deb-systemd-invoke":
            (self.directory / name).chmod(0o755)
        restarts.write_text("")
        done = subprocess.run(
            ["sh", "-c", script, "postinst", "configure", "0.1.0"], capture_output=True, text=True,
            env={"PATH": f"{self.directory}:{os.environ['PATH']}"}, check=True)
        return restarts.read_text().splitlines(), done.stderr

    def test_an_upgrade_restarts_one_instance_after_the_other(self):
        restarts = [f"try-restart quired@{name}.service" for name in "abc"]
        self.assertEqual(self.upgrade(), (restarts, ""))
        done, said = self.upgrade(failing="quired@b.service")
        self.assertEqual(done, restarts[:2])
        self.assertIn("quired@b.service did not restart", said)


if __name__ == "__main__":
    assert shutil.which("systemd-analyze"), "deploy/bootstrap.sh installs systemd"
    unittest.main()
