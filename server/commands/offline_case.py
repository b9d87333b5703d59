# SPDX-License-Identifier: GPL-3.0-or-later
"""What tests of quired build, inspect and verify share: fifty files, and commands on them.

QUIRE_BINARY_DIR names the build directory.
"""
import io
import json
import os
import random
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

QUIRED = Path(os.environ["QUIRE_BINARY_DIR"]) / "bin" / "quired"


def text_of_size(size, seed):
    words = random.Random(seed)
    text = " ".join(f"word{words.randrange(500)}" for _ in range(size // 6 + 1))
    return text[:size].encode()


def make_tar(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    return out.getvalue()


class OfflineCase(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-subcommands-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        self.files = {f"d/{i:03}.txt": text_of_size(3000 + i, i)
                      for i in range(50)}
        for name, contents in self.files.items():
            path = self.directory / "in" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)

    def run_quired(self, *arguments, stdin=b""):
        return subprocess.run(
            [QUIRED, *map(str, arguments)], input=stdin, cwd=self.directory,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def build(self, *arguments, stdin=b""):
        result = self.run_quired("build", *arguments, stdin=stdin)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, b"")
        return result

    def inspect(self, archive):
        result = self.run_quired("inspect", "--json", archive)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def names(self):
        return sorted(os.listdir(self.directory))
