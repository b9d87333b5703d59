# SPDX-License-Identifier: Apache-2.0
"""Columns as a server sends them: read as they are meant, and refused where they are malformed."""
import array
import random
import unittest

import pyarrow

import quire_archive as quire
from package_harness import SEED, FakeServer
from quire_archive import _messages as messages
from quire_archive._wire_columns import WirePage


def numbers(*values):
    """Of 8 bytes each."""
    return array.array("q", values).tobytes()


def bits(values):
    """A bit for each value."""
    return bytes(sum(bool(value) << bit for bit, value in enumerate(values[begin:begin + 8]))
                 for begin in range(0, len(values), 8))


def column(values, kind="integer"):
    """A ValueColumn, as a dictionary."""
    found = {}
    if None in values:
        found["presence"] = bits([value is not None for value in values])
    if kind == "string":
        texts = [value or b"" for value in values]
        found["text"] = b"".join(texts)
        found["text_offsets"] = numbers(*(
            sum(map(len, texts[:end])) for end in range(len(texts) + 1)))
    elif kind == "boolean":
        found["booleans"] = bits(values)
    elif kind == "float":
        found["numbers"] = array.array("d", [value or 0 for value in values]).tobytes()
    else:
        found["numbers"] = numbers(*(value or 0 for value in values))
    return found


def page(kinds=(), **columns):
    """A WirePage of two documents, except for `columns`."""
    made = {"document_count": 2, "ordinals": column([0, 1]), **columns}
    return WirePage(messages.DocumentColumns(**made), dict(kinds))


class WireColumnsTest(unittest.TestCase):
    def test_all_types(self):
        draw = random.Random(SEED + 43)
        choices = {"string": (b"", b"a", b"\xff" * 40), "integer": (0, -2**63, 2**63 - 1),
                   "float": (0.0, -1.5), "boolean": (False, True), "time": (0, -1, 10**15)}
        for count in (0, 1, 8, 9, 100):
            for chance in (0, 0.5, 1):
                values = {kind: [None if draw.random() < chance else draw.choice(all_of)
                                 for _ in range(count)] for kind, all_of in choices.items()}
                found = page({kind: kind for kind in choices}, document_count=count,
                             ordinals=column(list(range(count))),
                             fields=[column(of_kind, kind) for kind, of_kind in values.items()])
                self.assertEqual(found.ordinals, list(range(count)))
                for kind, expected in values.items():
                    column_of = found.column(kind)
                    column_of.validate(full=True)
                    self.assertEqual(column_of.to_pylist(), expected, (kind, count, chance))

    def test_attributes(self):
        found = page(ids=column([b"a", b"bc"], "string"), offsets=column([0, 5]),
                     sizes_bytes=column([5, 0]), capture_times_ms=column([None, -1]),
                     media_types=column([b"text/html", None], "string"))
        self.assertEqual((found.offsets, found.sizes), ([0, 5], [5, 0]))
        self.assertEqual(found.column("id").to_pylist(), [b"a", b"bc"])
        self.assertEqual(found.column("size").to_pylist(), [5, 0])
        self.assertEqual(found.column("time").to_pylist(), [None, -1])
        self.assertEqual(found.column("type").to_pylist(), [b"text/html", None])
        self.assertIsNone(found.column("record_type"))

    def test_what_is_malformed(self):
        text = {"text": b"abc", "text_offsets": numbers(0, 1, 3)}
        for message, kind, bad in (
                ("8 bytes as the field f, expected 16", "integer", {"numbers": numbers(1)}),
                ("0 bytes as the field f, expected 16", "time", {}),
                ("2 bytes as the field f, expected 1", "boolean", {"booleans": b"\0\0"}),
                ("0 bytes as presence", "integer", {**column([1, 2]), "presence": b""}),
                ("24", "string", {**text, "text_offsets": numbers(0, 1)}),
                ("malformed the field f", "string", {**text, "text_offsets": numbers(0, 3, 1)}),
                ("malformed the field f", "string", {**text, "text_offsets": numbers(0, 1, 4)}),
                ("malformed the field f", "string", {**text, "text_offsets": numbers(-1, 1, 3)})):
            with self.subTest(message), self.assertRaisesRegex(quire.ServerFault, message):
                page({"f": kind}, fields=[bad])
        with self.assertRaisesRegex(quire.ServerFault, "0 columns of fields, expected 1"):
            page({"f": "integer"})
        with self.assertRaisesRegex(quire.ServerFault, "past 2"):
            page(ordinals=column([0, -1]))
        with self.assertRaisesRegex(quire.ServerFault, "ordinals that are null"):
            page(ordinals=column([0, None]))
        with self.assertRaisesRegex(quire.ServerFault, "2 documents without ids"):
            page().column("id")

    def test_pages_of_a_server(self):
        """Positions are checked as those of documents are."""
        pages = [{"columns": {"document_count": 2, "ordinals": column([0, 1]),
                              "sizes_bytes": column([1, 2])}, "next_page_token": "1"},
                 {"columns": {}, "next_page_token": "2"},
                 {"columns": {"document_count": 1, "ordinals": column([2]),
                              "sizes_bytes": column([3])}}]
        requests = []

        def list_documents(request, _context):
            requests.append(request)
            return pages[int(request.page_token or 0)]

        server = self.enterContext(FakeServer(ListDocuments=list_documents))
        server.description.update(document_count=3, size_bytes=6)
        archive = self.enterContext(quire.connect(server.address))["a"]
        self.assertEqual(archive.to_arrow(["size"]).read_all().to_pydict(), {"size": [1, 2, 3]})
        wanted = requests[0].columns
        self.assertEqual((wanted.ids, wanted.ranges, wanted.capture_times), (False, True, False))
        pages[2]["columns"]["ordinals"] = column([1])
        with self.assertRaisesRegex(quire.ServerFault, "listed document 1 where 2 was next"):
            archive.to_arrow(["size"]).read_all()
        pages[2]["columns"] = {"document_count": 1, "ordinals": column([2])}
        with self.assertRaisesRegex(quire.ServerFault, "without sizes_bytes"):
            archive.to_arrow(["size"]).read_all()
        with self.assertRaisesRegex(quire.ServerFault, "without ids"):
            archive.to_arrow(["id"]).read_all()
        self.assertEqual(archive.to_arrow(["ordinal", "type"]).read_all().schema.field("type").type,
                         pyarrow.string())
        with self.assertRaisesRegex(quire.ServerFault, "columns for a list by id"):
            archive.to_arrow(["size"], prefix=b"a").read_all()


if __name__ == "__main__":
    unittest.main()
