# SPDX-License-Identifier: Apache-2.0
"""quire-pack: what pyarrow and libzim wrote comes back from an archive."""
import contextlib
import datetime
import decimal
import io
import json
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import pyarrow
import pyarrow.parquet
from libzim.writer import Creator, Hint, Item, StringProvider

import quire_archive as quire
from package_harness import LiveServer, QUIRED, SEED, build, random_documents, write_corpus
from quire_archive import _rows
from quire_archive import pack as pack_module

ROWS = 3000


def pack(*arguments):
    """Runs the program; returns it with its output."""
    return subprocess.run([sys.executable, "-m", "quire_archive.pack", *map(str, arguments)],
                          check=False, capture_output=True)


def build_from(out, packed, *options):
    subprocess.run([QUIRED, "build", "--quiet", "-o", out, *options, "-"], check=True,
                   input=packed)
    return out


def documents_of(archive_path):
    with LiveServer(QUIRED, [archive_path]) as server, \
            quire.connect(server.address) as client:
        (info,) = client.archives()
        return [(document.id, data) for document, data in client[info.name].scan()]


class ZimItem(Item):
    def __init__(self, path, data, kind):
        super().__init__()
        self._path, self._data, self._kind = path, data, kind

    def get_path(self):
        return self._path

    def get_title(self):
        return f"Title of {self._path}"

    def get_mimetype(self):
        return self._kind

    def get_contentprovider(self):
        return StringProvider(self._data)

    def get_hints(self):
        return {Hint.FRONT_ARTICLE: self._kind == "text/html"}


class PackTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write_rows(self, name, **columns):
        path = self.directory / name
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=700)
        return path

    def test_names_in_messages_do_not_disturb_a_terminal(self):
        table = self.write_rows("one.parquet", **{"\x1b[2Jkey\x9b": ["a"], "text": ["b"]})
        for options in ("--id", "none", "--text", "text"), ("--id", "\x1b[2Jkey\x9b", "--text", "x\x07"):
            done = pack("parquet", table, *options)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"\\x1B[2Jkey\\xC2\\x9B", done.stderr)
            self.assertNotRegex(done.stderr.rstrip(b"\n").decode(), "[\x00-\x1f\x7f-\x9f]")

    def test_rows_of_any_bytes(self):
        draw = random.Random(SEED)
        ids = [f"d/{number % 7}/".encode() + draw.choice((
            b"%d" % number, b"x" * 300 + b"%d" % number, f"\u00e4\u20ac {number}".encode(),
            b"\xff\xfe%d" % number, b"a//b/../%d" % number, b"http://h/?q=%d#f" % number))
            for number in range(ROWS)]
        ids[0], ids[1] = b"/absolute", b"a/./dot"
        texts = [draw.randbytes(draw.choice((0, 1, 100, 20_000))) for _ in ids]
        one = self.write_rows("one.parquet", key=ids[:2000], other=list(range(2000)),
                              text=texts[:2000])
        two = self.write_rows("two.parquet", text=texts[2000:], key=ids[2000:])
        done = pack("parquet", one, two, "--id", "key", "--text", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"quire-pack: 3000 documents, 0 left out\n")
        found = documents_of(build_from(self.directory / "rows.quire", done.stdout))
        self.assertEqual(found, list(zip(ids, texts)))

    def test_kinds_of_columns(self):
        for values, expected in (
                (["a", "\u00e4"], [b"a", "\u00e4".encode()]),
                (pyarrow.array(["a", "b"], pyarrow.large_string()), [b"a", b"b"]),
                (pyarrow.array([-3, 2**40], pyarrow.int64()), [b"-3", b"1099511627776"]),
                (pyarrow.array([7, 8], pyarrow.uint8()), [b"7", b"8"])):
            path = self.write_rows("kinds.parquet", key=values, text=["x", "y"])
            done = pack("parquet", path, "--id", "key", "--text", "text")
            found = documents_of(build_from(self.directory / "kinds.quire", done.stdout,
                                            "--force"))
            self.assertEqual(found, list(zip(expected, [b"x", b"y"])))

    def test_rows_that_are_left_out(self):
        path = self.write_rows("holes.parquet", key=["a", None, "b", "", "c/", "d\0e", "./f"] + [None] * 20,
                               text=["1", "2", None, "4", "5", "6", "7"] + ["8"] * 20)
        done = pack("parquet", path, "--id", "key", "--text", "text")
        self.assertEqual(done.returncode, 1)
        said = done.stderr.decode().splitlines()
        self.assertEqual(len(said), 11)
        for line, (row, fault) in zip(said, ((1, "its id is null"), (2, "its text is null"),
                                             (3, "its id is empty"), (4, "ends with a slash"),
                                             (5, "NUL"), (6, "begins with ./"))):
            self.assertIn(f"row {row}", line)
            self.assertIn(fault, line)
        self.assertEqual(said[-1], "quire-pack: 1 documents, 26 left out")
        self.assertEqual(documents_of(build_from(self.directory / "a.quire", done.stdout)),
                         [(b"a", b"1")])

    def test_lines(self):
        ids = ["http://example.org/", "./", "\u20ac\n\"\\", "plain"]
        path = self.write_rows("lines.parquet", key=ids, text=["a\nb", "", "\u00e4\0", "x" * 70_000])
        done = pack("parquet", path, "--id", "key", "--text", "text", "--format", "lines")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = documents_of(build_from(self.directory / "lines.quire", done.stdout, "--split", "lines",
                                        "--id-field", "id", "--text-field", "text"))
        self.assertEqual(found, [(key.encode(), text) for key, text in zip(
            ids, (b"a\nb", b"", "\u00e4\0".encode(), b"x" * 70_000))])
        binary = self.write_rows("binary.parquet", key=[b"\xff", b"a", b""],
                                 text=[b"a", b"\xff", b"a"])
        done = pack("parquet", binary, "--id", "key", "--text", "text", "--format", "lines")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn(b"its id is not UTF-8", done.stderr)
        self.assertIn(b"its text is not UTF-8", done.stderr)
        self.assertIn(b"its id is empty", done.stderr)

    def test_rows(self):
        utc = datetime.timezone.utc
        path = self.directory / "types.parquet"
        pyarrow.parquet.write_table(pyarrow.table({
            "id": pyarrow.array(["\u00e4\"\n", "b"], pyarrow.large_string()),
            "bytes": [b"x\0", None],
            "number": pyarrow.array([2**64 - 1, 0], pyarrow.uint64()),
            "real": [0.1, None],
            "flag": [True, None],
            "zoned": pyarrow.array([datetime.datetime(2024, 1, 31, 12, 0, 0, 5, utc), None],
                                   pyarrow.timestamp("ns", "Europe/Berlin")),
            "naive": pyarrow.array([datetime.datetime(1960, 1, 1), None],
                                   pyarrow.timestamp("ms")),
            "day": [datetime.date(2024, 2, 29), None],
            "price": [decimal.Decimal("12.30"), None],
            "kind": pyarrow.array(["a", None]).dictionary_encode(),
            "nested": [{"list": [1, None], "data": b"y"}, None]}), path)
        names = pyarrow.parquet.read_schema(path).names
        done = pack("rows", *[f"--column={name}" for name in names], "--column=nested.list", path)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        first, second = map(json.loads, done.stdout.splitlines())
        self.assertEqual(first, {
            "id": "\u00e4\"\n", "bytes": "x\0", "number": 2**64 - 1, "real": 0.1, "flag": True,
            "zoned": "2024-01-31T12:00:00.000005Z", "naive": "1960-01-01T00:00:00Z",
            "day": "2024-02-29", "price": "12.30", "kind": "a",
            "nested": {"list": [1, None], "data": "y"}})
        self.assertEqual({name for name, value in second.items() if value is not None},
                         {"id", "number"})
        self.assertEqual(pack("rows", "--column=id", path).stdout,
                         b'{"id":"\xc3\xa4\\"\\n"}\n{"id":"b"}\n')

    def test_rows_that_json_cannot_hold(self):
        path = self.write_rows("bytes.parquet", key=["a", "b"], text=[b"\xff", b"y"],
                               clock=[datetime.time(1), None])
        done = pack("rows", "--column=key", "--column=text", path)
        self.assertEqual((done.returncode, done.stdout), (1, b'{"key":"b","text":"y"}\n'))
        self.assertIn(b"row 0: left out, its text is not UTF-8", done.stderr)
        for column, message in (("clock", "column clock is of type time64[us]"),
                                ("none", "must be one of its columns, key, text, clock")):
            done = pack("rows", f"--column={column}", path)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(message, done.stderr.decode())

    def test_times_that_json_cannot_hold(self):
        ends = (2**63 - 1, -2**63, 1500)
        fault = "its time cannot be written: date value out of range"
        milliseconds = pyarrow.timestamp("ms")
        for times, written in (
                (pyarrow.array(ends, milliseconds), '"1970-01-01T00:00:01.500000Z"'),
                (pyarrow.array(ends, pyarrow.timestamp("us")), '"1970-01-01T00:00:00.001500Z"'),
                (pyarrow.array([[time] for time in ends], pyarrow.list_(milliseconds)),
                 '["1970-01-01T00:00:01.500000Z"]'),
                (pyarrow.array([2**31 - 1, -2**31, 1], pyarrow.int32()).cast(pyarrow.date32()),
                 '"1970-01-02"')):
            path = self.write_rows("times.parquet", key=["a", "b", "c"], time=times)
            rows = list(_rows.read_rows(str(path), None))
            self.assertEqual([row.fault for row in rows], [fault, fault, ""])
            self.assertEqual(rows[2].members, f'"key":"c","time":{written}')
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            self.assertEqual(pack_module.write_rows(path, None, io.BytesIO()),
                             pack_module.Packed(written=1, left_out=2, redirects=0))
        self.assertIn(f"row 1: left out, {fault}\n", printed.getvalue())
        # Seconds are not in files: Arrow writes milliseconds.
        # pylint: disable=protected-access
        kind, convert = _rows._converter(pyarrow.timestamp("s"))
        with self.assertRaises(OverflowError):
            convert(_rows._values(pyarrow.array([2**63 - 1], kind), kind)[0])

    def test_numbers_that_json_cannot_hold(self):
        path = self.write_rows("numbers.parquet", key=["a", "b", "c"],
                               real=[float("nan"), float("-inf"), 1.5],
                               nested=[[0.5], [None], [float("inf")]])
        for column, faults in (("real", [True, True, False]), ("nested", [False, False, True])):
            rows = list(_rows.read_rows(str(path), [column]))
            self.assertEqual([f"its {column} cannot be written: " in row.fault for row in rows],
                             faults)
            self.assertEqual([row.members == "" for row in rows], faults)

    def test_export(self):
        documents = random_documents(500)
        write_corpus(documents, self.directory / "pages")
        archive = build(self.directory / "pages.quire", self.directory / "pages.tar")
        out = self.directory / "pages.parquet"
        out.write_text("old")
        rules = self.directory / "withdrawn"
        rules.write_text("")
        with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server:
            def export(*options):
                return pack("export-parquet", "pages", out, "--server", server.address, *options)
            done = export("--text-strings")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"is not UTF-8", done.stderr)
            self.assertEqual(out.read_text(), "old")
            done = export()
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"{len(documents)} documents\n".encode(), done.stderr)
            self.assertEqual(sorted(path.name for path in self.directory.iterdir()), sorted(
                ("pages.parquet", "pages.quire", "pages.raw", "pages.tar", "pages.tsv",
                 "withdrawn")))
            table = pyarrow.parquet.read_table(out)
            self.assertEqual(list(zip(table["id"].to_pylist(), table["text"].to_pylist())),
                             documents)
            group = pyarrow.parquet.ParquetFile(out).metadata.row_group(0)
            self.assertEqual(group.column(0).compression, "ZSTD")
            self.assertEqual(group.num_rows, len(documents))
            # And back: the documents and their order.
            again = build_from(self.directory / "again.quire",
                               pack("parquet", out, "--id", "id", "--text", "text").stdout)
            self.assertEqual(documents_of(again),
                             [(name.encode(), data) for name, data in documents])
            rules.write_text(f"pages id {documents[3][0]} block\n")
            server.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while True:
                done = export("--column", "id", "--column", "size")
                if b"1 withdrawn ones left out" in done.stderr or time.monotonic() > deadline:
                    break
            self.assertIn(b"1 withdrawn ones left out", done.stderr)
            table = pyarrow.parquet.read_table(out)
            self.assertEqual(table.column_names, ["id", "size"])
            self.assertEqual(table.num_rows, len(documents) - 1)
            done = export("--prefix", "dir-1/")
            self.assertEqual(pyarrow.parquet.read_table(out)["id"].to_pylist(), sorted(
                name for name, _ in documents if name.startswith("dir-1/")))
            done = pack("export-parquet", "absent", out, "--server", server.address)
            self.assertEqual(done.returncode, 1)

    def test_row_groups_are_bounded(self):
        batch = pyarrow.record_batch({"text": [b"x" * 1_000_000] * 4})
        # pylint: disable=protected-access
        groups = list(pack_module._row_groups([batch] * 70))
        self.assertEqual([len(group) for group in groups], [32, 32, 6])

    def test_zim(self):
        draw = random.Random(SEED)
        entries = {f"A/page {number}.html": (draw.randbytes(draw.choice((1, 5000))), "text/html")
                   for number in range(200)}
        entries["I/\u00e4.png"] = (draw.randbytes(300_000), "image/png")
        entries["empty"] = (b"", "text/plain")
        path = self.directory / "wiki.zim"
        creator = Creator(str(path))
        creator.config_indexing(False, "en")
        with creator:
            for name, (data, kind) in entries.items():
                creator.add_item(ZimItem(name, data, kind))
            creator.add_redirection("A/old.html", "Old", "A/page 0.html", {})
            creator.add_metadata("Title", b"A wiki", "text/plain;charset=utf-8")
        done = pack("zim", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"202 documents, 0 left out, 1 redirects", done.stderr)
        found = documents_of(build_from(self.directory / "wiki.quire", done.stdout))
        self.assertEqual(dict(found), {name.encode(): data for name, (data, _) in entries.items()})

    def test_what_is_no_input(self):
        path = self.write_rows("rows.parquet", key=["a"], text=["x"], number=[1.5])
        (self.directory / "junk").write_bytes(b"junk")
        for arguments, message in (
                (("parquet", path, "--id", "nokey", "--text", "text"), "key, text, number"),
                (("parquet", path, "--id", "number", "--text", "text"), "double"),
                (("parquet", path, "--id", "key", "--text", "number"), "double"),
                (("parquet", self.directory / "junk", "--id", "a", "--text", "b"), "not a Parquet"),
                (("zim", self.directory / "junk"), "not a ZIM"),
                (("zim", self.directory / "absent"), "absent")):
            done = pack(*arguments)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn(message, done.stderr.decode())
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
