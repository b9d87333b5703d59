#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""range_bench.py chooses pieces in order of compressibility and sums up what it
measured; range_plot.py draws round ticks."""
import pathlib
import random
import tempfile
import unittest
import zlib

import range_bench
import range_plot


def line(offset, size, **times):
    return {"offset": offset, "size": size, "us": times}


class PiecesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        # From zeros, over letters, to random bytes.
        draw = random.Random(1)
        for name, letters in (("b", 1), ("a", 16), ("c", 256)):
            (self.directory / name).write_bytes(
                bytes(draw.choices(range(letters), k=range_bench.PIECE_SIZE + 5000)))
        (self.directory / "short").write_bytes(b"short")

    def test_in_order_of_compressibility(self):
        files = range_bench.files_of([self.directory])
        self.assertEqual([[path.name for path in each] for each in files], [["a", "b", "c"]])
        pieces = range_bench.choose_pieces(files, 6)
        self.assertEqual([name for _, name, *_ in pieces], ["b", "b", "a", "a", "c", "c"])
        for size, name, offset, piece in pieces:
            text = (self.directory / name).read_bytes()
            self.assertEqual(piece, text[offset:offset + range_bench.PIECE_SIZE])
            self.assertEqual(size, len(zlib.compress(piece, 6)))

    def test_texts_have_equal_shares(self):
        pieces = range_bench.choose_pieces(
            range_bench.files_of([self.directory / "c", self.directory]), 9)
        # All candidates of the first, a third of the second's.
        self.assertEqual([name for _, name, *_ in pieces].count("c"), 6)
        for path, message in ((self.directory / "none", "none: no such file or directory"),
                              (self.directory / "short", "short: no file of 256,000 bytes")):
            with self.assertRaisesRegex(SystemExit, message):
                range_bench.files_of([self.directory, path])

    def test_too_little_text(self):
        path = self.directory / "one"
        path.write_bytes(bytes(range_bench.PIECE_SIZE))
        with self.assertRaisesRegex(SystemExit, "1 pieces of 256,000 bytes, fewer than --pieces 2"):
            range_bench.choose_pieces([[path]], 2)


class SumsTest(unittest.TestCase):
    def setUp(self):
        self.figures = {
            "pieces": [{"whole": {"zlib": 100}}, {"whole": {"zlib": 300}}],
            "ranges": [
                line(32 << 10, 4096, start=60, partition32=10, lz4_start=9, lz4_recursive=8),
                line(32 << 10, 8192, start=80, partition32=30, lz4_start=9, lz4_recursive=12),
                line(64 << 10, 4096, start=99, partition32=9, lz4_start=9, lz4_recursive=10),
                line(None, 8, start=12, phrases_recursive=4, lz4_start=9, lz4_recursive=3)]}

    def test_sums_and_ratios(self):
        offsets, sizes = [32 << 10], [4096, 8192]
        self.assertEqual(range_bench.total(self.figures, "start", sizes, offsets), 140)
        self.assertEqual(range_bench.ratio(self.figures, "start", "partition32", sizes, offsets),
                         3.5)
        # Ranges for each of which 200 µs would be decoded.
        figures = {**self.figures, "ranges": [
            line(offset, 4096, partition32=10) for offset in range_bench.OFFSETS]}
        self.assertEqual(range_bench.against_whole(figures, "partition32", [4096]), 20)
        self.assertEqual(range_bench.recursion_ratio(self.figures, 8), 3)

    def test_rule_is_compared_with_the_best_at_worst(self):
        figures = {
            "pieces": [{"whole": {"partition32": 100}}],
            "ranges": [line(1, 8, partition32=20, phrases_recursive=5),
                       line(1, 16, partition32=30, phrases_recursive=40),
                       line(1, 32, partition32=150, phrases_recursive=200),
                       line(None, 8, partition32=900, phrases_recursive=1)]}
        self.assertEqual(range_bench.rule_excess(figures), 1.5)
        self.assertEqual(range_bench.rule_excess(figures, ["phrases_recursive"]), 4)

    def test_crossover_is_the_longest_range_that_wins(self):
        figures = {"ranges": [line(offset, size, lz4_start=9, lz4_recursive=8 if size < limit else 10)
                              for offset, limit in ((1, 512), (2, 0))
                              for size in range_bench.SHORT_SIZES + range_bench.LONG_SIZES[1:]]}
        self.assertEqual(range_bench.crossover(figures, 1), 256)
        self.assertEqual(range_bench.crossover(figures, 2), 0)

    def test_loss_is_in_percent_of_the_text(self):
        piece = {"stored": {"zlib:1": 25_600, "zlib-pex:1/8192": 30_720}}
        self.assertAlmostEqual(range_bench.loss(piece, 1, 8192), 2)


class AxisTest(unittest.TestCase):
    def test_linear_ticks_are_round_and_within(self):
        for high, expected in ((7, [0, 1, 2, 3, 4, 5, 6, 7]), (34, [0, 5, 10, 15, 20, 25, 30]),
                               (0.4, [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4])):
            axis = range_plot.LinearAxis([high], 0, 100)
            self.assertEqual([round(tick, 6) for tick in axis.ticks()], expected)
            self.assertEqual((axis(0), axis(high)), (0, 100))
        low = range_plot.LinearAxis([-0.5, 2], 0, 100)
        self.assertTrue(all(-0.5 <= tick <= 2 for tick in low.ticks()))
        self.assertEqual(low(-0.5), 0)


if __name__ == "__main__":
    unittest.main()
