# SPDX-License-Identifier: Apache-2.0
"""quire-pack without pyarrow and libzim: its outputs are input of `quired build`.

pack_test.py reads files that these wrote.
"""
import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

import quire_archive as quire
from quire_archive import pack
from package_harness import LiveServer, QUIRED

ENTRIES = [pack.Entry("row 0", b"dir/a", b"one"), pack.Entry("row 1", b"b", b"two\0\xff"),
           pack.Entry("row 2", "\u00e9".encode() * 200, b""),
           pack.Entry("row 3", b"", b"x"), pack.Entry("row 4", b"slash/", b"x"),
           pack.Entry("row 5", None, None, "its id is null"),
           pack.Entry("row 6", None, None, "it is a redirect")]


class PackOutputTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def packed(self, make_output):
        """(counts, output, messages)."""
        file, messages = io.BytesIO(), io.StringIO()
        with contextlib.redirect_stderr(messages):
            counts = pack.pack(ENTRIES, make_output(file))
        return counts, file.getvalue(), messages.getvalue()

    def documents(self, data, *options):
        archive = self.directory / "a.quire"
        subprocess.run([QUIRED, "build", "--quiet", "-o", archive, *options, "-"], check=True,
                       input=data)
        with LiveServer(QUIRED, [archive]) as server, quire.connect(server.address) as client:
            return {document.id: data for document, data in client["a"].scan()}

    def test_tar(self):
        # pylint: disable=protected-access
        counts, data, messages = self.packed(lambda file: pack._TarOutput(file, 1_600_000_000))
        self.assertEqual(counts, pack.Packed(3, 3, 1))
        self.assertEqual(self.documents(data),
                         {entry.id: entry.text for entry in ENTRIES[:3]})
        for words in ("row 3", "its id is empty", "ends with a slash", "its id is null"):
            self.assertIn(words, messages)
        self.assertNotIn("row 6", messages)

    def test_lines(self):
        # pylint: disable=protected-access
        counts, data, messages = self.packed(pack._LinesOutput)
        self.assertEqual(counts, pack.Packed(3, 3, 1))
        self.assertIn("its text is not UTF-8", messages)
        self.assertEqual(self.documents(data, "--split", "lines", "--id-field", "id",
                                        "--text-field", "text"),
                         {entry.id: entry.text for entry in ENTRIES
                          if entry.origin in ("row 0", "row 2", "row 4")})

    def test_a_missing_module_is_named(self):
        if importlib.util.find_spec("pyarrow"):
            self.skipTest("pyarrow is installed")
        done = subprocess.run(
            [sys.executable, "-m", "quire_archive.pack", "parquet", __file__, "--id", "a",
             "--text", "b"], check=False, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("pyarrow", done.stderr)
        self.assertIn("[pack]", done.stderr)


if __name__ == "__main__":
    unittest.main()
