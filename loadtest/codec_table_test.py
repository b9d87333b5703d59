#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the codec benchmark computes from its measurements, and its picture."""
import pathlib
import random
import re
import tempfile
import unittest
import xml.etree.ElementTree

from codec_plot import Axis, LabelPlaces, frontier_path, render, ticks
from codec_runs import archive_sizes, middle, spread_documents, write_documents
from codec_table import (COLUMNS, block_table, complete, format_rate, format_size, key_of,
                         pareto_frontier, rate_percent, read_csv, store_table, write_csv)
from live_server import parse_size


def block_row(codec, rate, ranges, block_size=65536, dictionary=None, **more):
    """A row of a text of a million bytes."""
    columns = {"dictionary_method": "uniform", "dictionary_size_bytes": dictionary,
               "dictionary_xz_bytes": 1000, "dictionary_zlib_bytes": 2000} if dictionary else {}
    payload = round(rate * 10_000) - columns.get("dictionary_xz_bytes", 0) - 100
    return complete({"kind": "block", "codec": codec, "block_size_bytes": block_size,
                     "text_bytes": 1_000_000, "encoded_bytes": 1_000_000,
                     "payload_bytes": payload, "index_bytes": 100, "ranges_per_second": ranges,
                     "encode_mb_per_second": 12.34, "decode_mb_per_second": 987.6,
                     "peak_memory_bytes": 7 << 20, **columns, **more})


class RateTest(unittest.TestCase):
    def test_counts_all_parts(self):
        self.assertAlmostEqual(rate_percent(1000, 100, 20, 5), 12.5)
        self.assertAlmostEqual(rate_percent(1000, 100, None), 10)

    def test_refuses_an_empty_text(self):
        with self.assertRaises(ValueError):
            rate_percent(0, 1)

    def test_both_dictionary_accounts(self):
        row = complete({"text_bytes": 1000, "payload_bytes": 100, "index_bytes": 10,
                        "dictionary_xz_bytes": 20, "dictionary_zlib_bytes": 30})
        self.assertEqual((row["rate_percent"], row["rate_zlib_percent"]), (13, 14))

    def test_a_row_has_all_columns(self):
        self.assertEqual(list(complete({"codec": "copy"})), COLUMNS)


class ParetoFrontierTest(unittest.TestCase):
    def frontier(self, points):
        return pareto_frontier(points, lambda p: p[0], lambda p: p[1])

    def test_keeps_what_nothing_beats(self):
        points = [(1, 5), (2, 6), (3, 7), (2, 8), (1, 6), (3, 9)]
        self.assertEqual(self.frontier(points), [(3, 7), (2, 6), (1, 5)])

    def test_of_equals_keeps_the_first(self):
        self.assertEqual(self.frontier([(1, 5, "a"), (1, 5, "b")]), [(1, 5, "a")])

    def test_equal_in_one_is_beaten(self):
        self.assertEqual(self.frontier([(1, 5), (2, 5)]), [(2, 5)])
        self.assertEqual(self.frontier([(2, 6), (2, 5)]), [(2, 5)])

    def test_empty(self):
        self.assertEqual(self.frontier([]), [])

    def test_is_what_the_definition_says(self):
        seed = random.randrange(1 << 32)
        draw = random.Random(seed)
        points = list({(draw.randrange(30), draw.randrange(30)) for _ in range(100)})
        expected = {p for p in points
                    if not any(q != p and q[0] >= p[0] and q[1] <= p[1] for q in points)}
        self.assertEqual(set(self.frontier(points)), expected, f"seed {seed}")


class CsvTest(unittest.TestCase):
    def test_gives_back_what_was_written(self):
        rows = [block_row("zlib:6", 12.5, 100.5), block_row("rlz", 8, 200, dictionary=1 << 20)]
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "a.csv")
            self.assertEqual(read_csv(path), [])
            write_csv(path, rows)
            again = read_csv(path)
            self.assertEqual(again, rows)
            self.assertEqual(list(map(key_of, again)), list(map(key_of, rows)))

    def test_refuses_other_columns(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "a.csv")
            path.write_text("kind,codec\nblock,zlib\n")
            with self.assertRaises(ValueError):
                read_csv(path)


class TableTest(unittest.TestCase):
    def test_sizes(self):
        self.assertEqual([format_size(s) for s in (None, 0, 100, 65536, 16 << 20, 3 << 30, 1536)],
                         ["-", "-", "100 B", "64 KiB", "16 MiB", "3 GiB", "1536 B"])
        self.assertEqual([parse_size(t) for t in ("16KiB", "4mib", "1GiB")],
                         [16384, 4 << 20, 1 << 30])

    def test_marks_samples(self):
        self.assertEqual(format_rate(block_row("a", 12.345, 1)), "12.35")
        self.assertEqual(format_rate(block_row("a", 12.345, 1, encoded_bytes=999)), "~12.35")

    def test_the_frontier_is_bold(self):
        lines = block_table([block_row("good", 8, 200, dictionary=1 << 20),
                             block_row("beaten", 9, 100)])
        self.assertEqual(lines[2], "| **good** | 64 KiB | 1 MiB uniform | **8.00** | 8.10 | 12.3 "
                         "| 988 | **200** | 7 |")
        self.assertEqual(lines[3], "| beaten | 64 KiB | - | 9.00 | - | 12.3 | 988 | 100 | 7 |")

    def test_each_kind_has_its_table(self):
        rows = [block_row("rlz", 8, 1), {**block_row("rocks", 9, None), "kind": "store",
                                        "documents_per_second": 1234.5}]
        self.assertEqual(len(block_table(rows)), 3)
        self.assertIn("| rocks | 64 KiB | - | 1,000,000 | 9.00 | 12.3 | 1,234 | 7 |",
                      store_table(rows))


class PlotTest(unittest.TestCase):
    def test_axes_are_logarithmic(self):
        axis = Axis([10, 1000], 0, 100)
        self.assertAlmostEqual(axis(100), 50)
        self.assertTrue(0 < axis(10) < axis(1000) < 100)
        self.assertTrue(all(0 <= axis(tick) <= 100.1 for tick in axis.ticks()))

    def test_ticks_are_round(self):
        self.assertEqual(ticks(9, 110), [10, 15, 20, 30, 50, 70, 100])
        self.assertGreaterEqual(len(ticks(7, 9.9)), 3)

    def test_the_frontier_goes_in_steps(self):
        rows = [block_row("a", 20, 300), block_row("b", 10, 100)]
        path = frontier_path(rows, lambda x: x, lambda y: y)
        self.assertIn("V20.0H100.0V10.0H", path)

    def test_labels_keep_apart(self):
        places = LabelPlaces()
        found = [places.place(400, 300, "rlz:max") for _ in range(20)]
        found = [place for place in found if place]
        self.assertEqual(len(found), len(set(found)))
        self.assertLess(len(found), 20)

    def test_draws_every_row(self):
        rows = [block_row(codec, rate, ranges, block_size, dictionary)
                for codec, rate, ranges, block_size, dictionary in (
                    ("copy", 100, 400_000, 16384, None), ("a<b", 12, 9000, 65536, None),
                    ("rlz:1", 8, 30_000, 65536, 1 << 20), ("rlz:2", 7.5, 31_000, 262144, 4 << 20))]
        picture = render(rows, "title & more")
        root = xml.etree.ElementTree.fromstring(picture)
        tips = [e.text for e in root.iter("{http://www.w3.org/2000/svg}title")]
        self.assertIn("title & more", tips)
        for row in rows:
            self.assertTrue(any(tip.startswith(row["codec"] + " · ") for tip in tips), row)
        self.assertEqual(len(re.findall('class="best"', picture)), 2)
        self.assertIn("prefers-color-scheme: dark", picture)


class DocumentsTest(unittest.TestCase):
    def test_spreads_over_the_text(self):
        rows = [(i * 10, 10, f"d{i}") for i in range(100)]
        chosen = spread_documents(rows, 250)
        self.assertEqual(sum(size for _, size, _ in chosen), 250)
        self.assertTrue(all(0 <= b[0] - a[0] <= 50 for a, b in zip(chosen, chosen[1:])))
        self.assertEqual(spread_documents(rows, 1000), rows)

    def test_writes_the_last_of_an_id(self):
        with tempfile.TemporaryDirectory() as directory:
            stem = f"{directory}/c"
            pathlib.Path(f"{stem}.raw").write_bytes(b"aabbbcccc")
            pathlib.Path(f"{stem}.tsv").write_text("0\t2\tx\n2\t3\ty\n5\t4\tx\n")
            text, index = write_documents(stem, 100, pathlib.Path(directory))
            self.assertEqual(text.read_bytes(), b"ccccbbb")
            self.assertEqual(index.read_text(), "0\t4\tx\n4\t3\ty\n")


class SizesTest(unittest.TestCase):
    def test_archives_vary_one_size_at_a_time(self):
        self.assertEqual(middle([64, 4, 16]), 16)
        self.assertEqual(archive_sizes([1, 2, 3], [10, 20, 30]),
                         [(1, 20), (2, 10), (2, 20), (2, 30), (3, 20)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
