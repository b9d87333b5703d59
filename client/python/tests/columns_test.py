# SPDX-License-Identifier: Apache-2.0
"""Pages of a listing as columns are those of documents: no field moves to another one."""
import random
import unittest

import quire_archive as quire
from package_harness import SEED
from quire_archive import _columns, _messages
from quire_archive.records import make_document


def entry(ordinal, **fields):
    return _messages.Document(ordinal=ordinal, **fields).SerializeToString()


class ColumnsTest(unittest.TestCase):
    def check(self, entries):
        page = _columns.Page(entries)
        expected = [document for document in map(
            make_document, map(_messages.Document.FromString, entries))
                    if document.record_type != "withdrawn"]
        self.assertEqual(page.count, len(expected))
        none = [None] * page.count
        found = zip(page.ordinals, page.ids, page.offsets, page.sizes, page.times_ms or none,
                    page.media_types or none, page.record_types or none)
        self.assertEqual(list(found), [
            (document.ordinal, document.id, document.offset, document.size,
             document.capture_time_ms,
             *(value and value.encode() for value in (document.media_type, document.record_type)))
            for document in expected])
        return page

    def test_fields_that_are_missing_or_zero(self):
        draw = random.Random(SEED + 40)
        for round_number in range(60):
            # Fields of a page that may be missing, or zero.
            rare = draw.choice(((), ("time",), ("size", "id"), ("time", "size", "id", "kinds")))
            entries = []
            for ordinal in range(draw.randint(0, 30)):
                fields = {"id": b"id %d" % ordinal,
                          "range": {"offset": ordinal * 300, "size_bytes": 300},
                          "capture_time_ms": draw.choice((-5, 5, 2**62)),
                          "media_type": "text/html", "record_type": "response"}
                if "time" in rare and draw.random() < 0.4:
                    fields["capture_time_ms"] = 0
                if "time" in rare and draw.random() < 0.4:
                    del fields["capture_time_ms"]
                if "size" in rare and draw.random() < 0.4:
                    fields["range"] = {"offset": ordinal * 300}
                if "id" in rare and draw.random() < 0.4:
                    fields["id"] = b""
                if "kinds" in rare:
                    fields["media_type"] = draw.choice(("", "text/plain"))
                    fields["record_type"] = draw.choice(("", "withdrawn", "request"))
                entries.append(entry(ordinal, **fields))
            with self.subTest(round=round_number, seed=SEED):
                self.check(entries)
        self.assertIsNone(self.check([entry(0, id=b"a")]).times_ms)

    def test_fields(self):
        draw = random.Random(SEED + 42)
        kinds = {"string": ("string_value", (b"", b"a", b"\xff")),
                 "integer": ("integer_value", (0, -2**63, 2**63 - 1)),
                 "float": ("float_value", (0.0, -1.5)), "boolean": ("boolean_value", (False, True)),
                 "time": ("time_us", (0, -1, 10**15))}
        for chance in (0, 0.5, 1):
            expected, entries = [], []
            for ordinal in range(20):
                values = [None if draw.random() < chance else draw.choice(choices)
                          for _, choices in kinds.values()]
                expected.append(values)
                entries.append(entry(ordinal, id=b"x", fields=[
                    {} if value is None else {member: value}
                    for (member, _), value in zip(kinds.values(), values)]))
            page = _columns.Page(entries, list(kinds))
            self.assertEqual(list(map(list, zip(*page.fields))), expected)
            page.keep([ordinal % 2 == 0 for ordinal in range(20)])
            self.assertEqual(list(map(list, zip(*page.fields))), expected[::2])
        with self.assertRaisesRegex(quire.ServerFault, "does not know fields"):
            _columns.Page(entries, ["string"])
        with self.assertRaisesRegex(quire.ServerFault, "0 values of type integer for 1"):
            _columns.Page([entry(0, fields=[{"boolean_value": True}])], ["integer"])

    def test_what_is_malformed(self):
        with self.assertRaisesRegex(quire.ServerFault, "malformed document"):
            _columns.Page([entry(0, id=b"a"), b"\x0a"])
        for fields in ({"ordinal": 2**63}, {"ordinal": 1, "range": {"size_bytes": 2**63}}):
            with self.assertRaisesRegex(quire.ServerFault, "past 2"):
                _columns.Page([entry(**fields)]).check()


if __name__ == "__main__":
    unittest.main()
