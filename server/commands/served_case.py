# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive and the server that tests of `quired serve` from the command line share."""
import os
import pathlib
import subprocess
import tempfile
import unittest

PROGRAMS = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
# Generous: only a hang takes this long.
PATIENCE_S = 120


def run(program, *arguments, **environment):
    return subprocess.run([PROGRAMS / program, *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, **environment})


def launch(test, *arguments, **options):
    """Returns a `quired serve` with these arguments, which ends with the test."""
    server = subprocess.Popen([PROGRAMS / "quired", "serve", *map(str, arguments)],
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              **options)
    test.addCleanup(server.stderr.close)
    test.addCleanup(server.wait, PATIENCE_S)
    test.addCleanup(server.kill)
    return server


def await_text(test, server, text):
    """Returns the next messages of the server, up to the line with `text`."""
    said = ""
    for line in server.stderr:
        said += line
        if text in line:
            return said
    return test.fail(f"it did not say '{text}': {said}")


def start(test, *arguments, **options):
    """Returns a server that listens, and its messages; the address is their last word."""
    server = launch(test, *arguments, **options)
    return server, await_text(test, server, "listening on")


def metrics_url(said):
    return next(word for word in said.split() if word.endswith("/metrics"))


class ServedCase(unittest.TestCase):
    """`directory` has `documents` and `archive`, docs.quire, which is built of them."""
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-serve-")))
        cls.documents = cls.directory / "documents"
        cls.documents.mkdir()
        for i in range(20):
            (cls.documents / f"page{i:02}").write_text(f"<p>page {i}</p>\n" * 500)
        cls.archive = cls.directory / "docs.quire"
        built = run("quired", "build", "--quiet", "-o", cls.archive, cls.documents)
        assert built.returncode == 0, built.stderr
