# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of archives in object stores share: an archive, a store, and a quired."""
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "testing" / "storage"))
from object_server import ObjectServer  # noqa: E402

OBJECT_SERVER = HERE.parents[1] / "testing" / "storage" / "object_server.py"
PROGRAMS = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
QUIRED = PROGRAMS / "quired"
QUIRE = PROGRAMS / "quire"
# Generous: only a hang takes this long.
PATIENCE_S = 60
CHUNK = 16 << 10


def run(*arguments, **options):
    return subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE_S, check=False, **options)


class Server:
    """A quired that serves archives of a store."""

    def __init__(self, test, *arguments, cache="cache", size="64MiB", environment=None,
                 archive=None, expect_start=True, wrapper=()):
        """Serves `archive`; () for none, and the one in the store by default. `wrapper` is a
        program that runs the server."""
        self.cache = test.scratch / cache
        if archive is None:
            archive = f"docs={test.store.url}/bucket/docs.quire"
        archives = [archive] if archive else []
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("AWS_")}
        # The machine of a test may have a role.
        variables.update({"HOME": str(test.scratch), "AWS_EC2_METADATA_DISABLED": "true",
                          **(environment or {})})
        self.process = subprocess.Popen(
            [*wrapper, QUIRED, "serve", *archives, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
             "--memory", "256MiB", "--store-cache", f"{self.cache}:{size}", "--store-chunk",
             str(CHUNK), *arguments],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=variables)
        test.addCleanup(self.process.stderr.close)
        test.addCleanup(self.process.wait, PATIENCE_S)
        test.addCleanup(self.process.kill)
        self.said = ""
        self.lines = []
        self.changed = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if expect_start:
            self.wait_for("listening on")
            self.address = re.search(r"listening on (\S+)", self.said)[1]
            self.metrics_url = re.search(r"metrics on (\S+)", self.said)[1]

    def _read(self):
        for line in self.process.stderr:
            with self.changed:
                self.said += line
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, text, count=1):
        end = time.monotonic() + PATIENCE_S
        with self.changed:
            while self.said.count(text) < count:
                assert self.process.poll() is None or self.reader.is_alive(), self.said
                assert time.monotonic() < end, f"no {text!r} in: {self.said}"
                self.changed.wait(0.1)

    def range(self, offset, size):
        return run(QUIRE, "-s", self.address, "range", "docs", str(offset), str(size))

    def scan(self):
        return run(QUIRE, "-s", self.address, "-q", "scan", "docs")

    def batch(self, ranges):
        return subprocess.run(
            [QUIRE, "-s", self.address, "-q", "batch", "docs", "--ranges"],
            input="".join(f"{a} {b}\n" for a, b in ranges).encode(), capture_output=True,
            timeout=PATIENCE_S, check=False)

    def metric(self, name):
        with urllib.request.urlopen(self.metrics_url, timeout=PATIENCE_S) as page:
            text = page.read().decode()
        found = re.findall(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert found, f"no {name} in {text}"
        return float(found[0])

    def resident_bytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10

    def cache_bytes(self):
        """Returns the bytes on disk of all files of the cache."""
        return sum(path.stat().st_blocks * 512 for path in self.cache.rglob("*")
                   if path.is_file())

    def stop(self, sent=signal.SIGTERM):
        self.process.send_signal(sent)
        code = self.process.wait(PATIENCE_S)
        self.reader.join(PATIENCE_S)
        return code


class RemoteCase(unittest.TestCase):
    """An archive in a store."""

    @classmethod
    def setUpClass(cls):
        cls.shared = tempfile.TemporaryDirectory(prefix="quire-remote-")
        cls.directory = pathlib.Path(cls.shared.name)
        draw = random.Random(1)
        documents = cls.directory / "documents"
        documents.mkdir()
        for i in range(120):
            # Half of it cannot be compressed.
            text = b"".join(b"page %d line %d\n" % (i, k) + draw.randbytes(40)
                            for k in range(1200))
            (documents / f"page{i:03}").write_bytes(text)
        cls.archive = cls.directory / "docs.quire"
        built = run(QUIRED, "build", "--quiet", "-o", cls.archive, "--block-size", "16KiB",
                    "--segment-size", "2MiB", "--codec", "zstd", documents)
        assert built.returncode == 0, built.stderr
        cls.text = b"".join(path.read_bytes() for path in sorted(documents.iterdir()))

    @classmethod
    def tearDownClass(cls):
        cls.shared.cleanup()

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-remote-")
        self.addCleanup(scratch.cleanup)
        self.scratch = pathlib.Path(scratch.name)
        self.bucket = self.scratch / "store" / "bucket"
        self.bucket.mkdir(parents=True)
        shutil.copytree(self.archive, self.bucket / "docs.quire")
        self.store = ObjectServer(self.scratch / "store")
        self.addCleanup(self.store.stop)

    def check_range(self, server, offset, size):
        got = server.range(offset, size)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(got.stdout, self.text[offset:offset + size])

    def check_all(self, server):
        got = server.scan()
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(got.stdout, self.text)

    def replace(self):
        """Replaces the archive in the store by another one of the same file names."""
        other = self.directory / "other.quire"
        if not other.exists():
            documents = self.directory / "others"
            documents.mkdir()
            for i in range(60):
                (documents / f"other{i:03}").write_bytes(random.Random(i).randbytes(60_000))
            built = run(QUIRED, "build", "--quiet", "-o", other, "--segment-size", "2MiB",
                        "--block-size", "16KiB", "--codec", "zstd", documents)
            assert built.returncode == 0, built.stderr
        text = b"".join(random.Random(i).randbytes(60_000) for i in range(60))
        for path in sorted(other.iterdir(), key=lambda path: path.name == "MANIFEST"):
            shutil.copy(path, self.bucket / "docs.quire" / (path.name + ".new"))
            os.rename(self.bucket / "docs.quire" / (path.name + ".new"),
                      self.bucket / "docs.quire" / path.name)
        return text
