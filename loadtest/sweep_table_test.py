#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the sweep and the device benchmark compute from measurements, and their
pictures and pages."""
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree

import device_bench
from codec_table import read_csv, write_csv
from disk_runs import metric_sums
from sweep import parse_devices, parse_modes
from sweep_plot import Pane, render
from sweep_report import html_page, html_table, markdown_page
from sweep_table import (COLUMNS, TEXT_COLUMNS, archives_of, estimate_seconds, frontier_of, key_of,
                         pane_of, pane_table)

SVG = "{http://www.w3.org/2000/svg}"


def row_of(codec, rate, ranges, block_size=16384, device="real", mode="random", dictionary=None):
    row = dict.fromkeys(COLUMNS)
    row.update(device=device, mode=mode, codec=codec, block_size_bytes=block_size,
               dictionary_size_bytes=dictionary, text_bytes=1_000_000, rate_percent=rate,
               stored_bytes=round(rate * 10_000), seconds=1.5, ranges_per_second=ranges,
               mb_per_second=ranges * 0.016384, cache_hits_percent=1.25,
               in_flight=1 if mode == "random" else None, p50_ms=0.25, p99_ms=1.5)
    return row


ROWS = [row_of("copy", 100, 9000), row_of("copy", 100, 9500, 65536),
        row_of("lz4:1", 25, 8000), row_of("lz4:1", 20, 7000, 65536),
        row_of("rlz:2", 9, 6000, dictionary=4 << 20),
        row_of("rlz:2", 8, 5000, 65536, dictionary=4 << 20),
        row_of("zlib:9", 15, 3000), row_of("zlib:9", 13, 2500, 65536)]


class CellTest(unittest.TestCase):
    def test_dictionaries_only_where_a_codec_needs_one(self):
        found = list(archives_of(["lz4:1", "rlz:2"], lambda spec: spec.startswith("rlz"),
                                 [16, 64], [4, 8]))
        self.assertEqual(found, [("lz4:1", 16, None), ("lz4:1", 64, None), ("rlz:2", 16, 4),
                                 ("rlz:2", 64, 4), ("rlz:2", 16, 8), ("rlz:2", 64, 8)])

    def test_devices_with_and_without_modes(self):
        self.assertEqual(parse_devices("real,wd-red:random+batch"),
                         [("real", ["full", "batch", "random"]), ("wd-red", ["batch", "random"])])

    def test_unknown_modes_are_refused(self):
        with self.assertRaises(Exception):
            parse_modes("random,sideways")

    def test_keys_tell_in_flight_apart(self):
        other = {**ROWS[0], "in_flight": 8}
        self.assertNotEqual(key_of(ROWS[0]), key_of(other))
        self.assertEqual(key_of(ROWS[0]), key_of({**ROWS[0], "ranges_per_second": 1}))

    def test_rows_survive_the_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "results.csv")
            self.assertEqual(read_csv(path, COLUMNS, TEXT_COLUMNS), [])
            write_csv(path, ROWS, COLUMNS)
            self.assertEqual(read_csv(path, COLUMNS, TEXT_COLUMNS), ROWS)
            with self.assertRaises(ValueError):
                read_csv(path)

    def test_an_estimate_counts_archives_and_cells(self):
        self.assertEqual(estimate_seconds(0, 2, 0, 1_000_000), 0)
        self.assertEqual(estimate_seconds(10, 2, 0, 1_000_000), 35)
        self.assertAlmostEqual(estimate_seconds(0, 2, 2, 20e6), 4)


class FrontierTest(unittest.TestCase):
    def test_of_one_pane(self):
        self.assertEqual([(row["codec"], row["block_size_bytes"]) for row in frontier_of(ROWS)],
                         [("copy", 65536), ("lz4:1", 16384), ("lz4:1", 65536), ("rlz:2", 16384),
                          ("rlz:2", 65536)])

    def test_panes_do_not_mix(self):
        rows = [*ROWS, row_of("zlib:9", 15, 100, device="wd-red"),
                row_of("zlib:9", 15, 100, mode="batch")]
        self.assertEqual(pane_of(rows, "real", "random"), ROWS)
        self.assertEqual(len(pane_of(rows, "wd-red", "random")), 1)
        self.assertEqual(pane_of(rows, "wd-red", "batch"), [])

    def test_table_has_all_rows_and_marks_the_frontier(self):
        lines = pane_table(ROWS)
        self.assertEqual(len(lines), len(ROWS) + 2)
        self.assertTrue(lines[3].startswith("| **copy** | 64 KiB | - | **100.00** | **9,500** |"))
        self.assertTrue(lines[8].startswith("| zlib:9 | 16 KiB | - | 15.00 | 3,000 |"), lines[8])


class PictureTest(unittest.TestCase):
    def test_every_cell_is_drawn_once(self):
        rows = [*ROWS, *(row_of("lz4:1", 25, 100 + i, 16384 << i, "wd-red") for i in range(3)),
                row_of("lz4:1", 25, 7, mode="full")]
        picture = xml.etree.ElementTree.fromstring(
            render(rows, "a < b", ["real", "wd-red"], ["full", "random"]))
        tips = [title.text for title in picture.iter(f"{SVG}title")]
        self.assertEqual(len(tips), 1 + len(rows))
        self.assertEqual(tips[0], "a < b")
        lines = picture.findall(f".//{SVG}path[@class='line']")
        # Four codecs on the real disk, one on the modelled; a single point is no line.
        self.assertEqual(len(lines), 5)
        # One for each pane and one in the legend.
        self.assertEqual(len(picture.findall(f".//{SVG}path[@class='frontier']")), 4)

    def test_points_lie_within_their_pane(self):
        pane = Pane(ROWS, "title", 1, 1, {}, [16384, 65536], [0, 4 << 20])
        for row in ROWS:
            x, y = pane.at(row)
            self.assertTrue(pane.left < x < pane.right and pane.top < y < pane.bottom, row)
        smaller, larger = pane.at(ROWS[4]), pane.at(ROWS[0])
        self.assertLess(smaller[0], larger[0])
        self.assertLess(larger[1], smaller[1])

    def test_frontier_steps_from_the_fastest_to_the_smallest(self):
        rows = [row_of("copy", 100, 90), row_of("lz4:1", 20, 40), row_of("zlib:9", 30, 20)]
        pane = Pane(rows, "title", 0, 0, {}, [16384], [0])
        (fast_x, fast_y), (small_x, small_y) = pane.at(rows[0]), pane.at(rows[1])
        self.assertIn(f"M{pane.right} {fast_y:.1f}H{fast_x:.1f}V{small_y:.1f}H{small_x:.1f}"
                      f"V{pane.bottom}", pane.frontier())


class PageTest(unittest.TestCase):
    def test_pages_have_each_pane_and_row(self):
        rows = [*ROWS, row_of("lz4:1", 25, 99, device="wd-red", mode="batch")]
        devices, modes = ["real", "wd-red"], ["batch", "random"]
        markdown = markdown_page(rows, "title", devices, modes)
        self.assertIn("Real disk, RANDOM:", markdown)
        self.assertIn("Modelled drive wd-red, BATCH:", markdown)
        self.assertNotIn("wd-red, RANDOM", markdown)
        page = html_page(rows, "a & b", devices, modes, {"modes": "<svg></svg>"})
        self.assertEqual(page.count("<tr>"), len(rows) + 2)
        self.assertIn("a &amp; b", page)
        self.assertIn("<svg></svg>", page)

    def test_bold_cells(self):
        self.assertEqual(html_table(["| a | b |", "|---|---|", "| **x** | 1 < 2 |"]),
                         "<table>\n<tr><th>a</th><th>b</th></tr>\n"
                         "<tr><td><b>x</b></td><td>1 &lt; 2</td></tr>\n</table>")


class MetricsTest(unittest.TestCase):
    def test_sums_over_labels(self):
        sums = metric_sums('# HELP a b\na{x="1"} 2\na{x="2"} 3\nb 1.5e3\n')
        self.assertEqual(sums, {"a": 5, "b": 1500})


class DeviceTableTest(unittest.TestCase):
    # Decoding was slower when it was measured with fio; shares are of the same moment.
    FIGURES = {"random_storage": 900, "random_decode": 1000, "random_disk": 2000,
               "random_with_fio": 700, "random": 300, "batch": 500,
               "random_storage_of_decode": 0.8, "random_with_fio_of_decode": 0.9,
               "scan_storage": 80, "scan_decode": 100, "scan_disk": 90, "scan_with_fio": 90,
               "scan_storage_of_decode": 0.8, "scan_with_fio_of_decode": 0.9,
               "full_identity": 45, "full_stored": 72,
               "random_read_bytes": 8192, "random_reads_a_request": 1.2, "scan_read_bytes": 81920,
               "full_identity_cache_hits_percent": 0, "full_stored_cache_hits_percent": 3,
               "batch_cache_hits_percent": 1, "random_cache_hits_percent": 2}

    def test_shares_are_of_the_slower_one(self):
        text = "\n".join(device_bench.tables(self.FIGURES))
        self.assertIn("| storage | 900 | 80 % | 89 % |", text)
        self.assertIn("| server, RANDOM | 300 | 30 % | 33 % |", text)
        # The disk is the slower one here.
        self.assertIn("| storage | 80 | 89 % | 89 % |", text)
        self.assertIn("| server, stored | 72 | 80 % | 80 % |", text)

    def test_without_fio_there_is_no_share(self):
        figures = {name: value for name, value in self.FIGURES.items()
                   if "disk" not in name and "with_fio" not in name}
        text = "\n".join(device_bench.tables(figures))
        self.assertIn("| storage | 900 | - | - |", text)
        self.assertIn("| disk (fio) | - | - | - |", text)
        self.assertIn("| decode during fio's reads | - | - | - |", text)


if __name__ == "__main__":
    unittest.main()
