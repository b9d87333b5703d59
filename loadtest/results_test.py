#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""RESULTS.md is what results.py makes of the stored figures; a page has its shape
whatever is stored, and what cannot be shown is refused by name.
"""
import importlib
import json
import pathlib
import shutil
import sys
import tempfile
import unittest
import unittest.mock

import make_corpus
import results
import results_runs
import results_tables
from bench_json import write_json


def row_sizes(lines):
    """For each table the number of cells of its rows."""
    tables, previous = [], ""
    for line in lines:
        if line.startswith("|"):
            if not previous.startswith("|"):
                tables.append([])
            tables[-1].append(line.count("|"))
        previous = line
    return tables


class Sample(unittest.TestCase):
    """A copy of the stored figures, to be changed."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name) / "stored"
        shutil.copytree(results.STORED, self.directory)

    def change(self, name, change):
        path = self.directory / f"{name}.json"
        stored = json.loads(path.read_text())
        change(stored)
        write_json(path, stored)

    def keep_only(self, *names):
        for name in results_tables.SECTIONS:
            if name not in names:
                (self.directory / f"{name}.json").unlink()


class PageTest(Sample):
    def test_page_in_the_tree_is_of_the_stored_figures(self):
        for name, lines in zip(("RESULTS.md", results.MODELLED_PAGE),
                               results.render(results.STORED), strict=True):
            page = (results.HERE / name).read_text(encoding="utf-8")
            self.assertEqual(page, "\n".join(lines) + "\n",
                             "run loadtest/results.py --out loadtest/RESULTS.md")

    def test_shape(self):
        page, modelled = results.render(self.directory)
        self.assertLessEqual(len(page), results.LINES_MAX)
        lines = page + modelled
        titles = [line for line in lines if line.startswith("## ")]
        self.assertEqual(titles[0], "## Aims and results")
        self.assertEqual(len(titles), 1 + len(results_tables.SECTIONS))
        self.assertEqual(sum(line.startswith("## ") for line in modelled),
                         len(results_tables.MODELLED))
        tables = row_sizes(lines)
        self.assertGreaterEqual(len(tables), len(titles))
        for sizes in tables:
            self.assertEqual(len(set(sizes)), 1, sizes)
            self.assertGreater(len(sizes), 2)

    def test_missed_aim_is_bold(self):
        def worsen(stored):
            stored["figures"][0].update(text="webdocs256", codec="rlz", rate_percent=8.401,
                                        block_size_bytes=64 << 10,
                                        dictionary_size_bytes=16 << 20)

        self.change("archive_sizes", worsen)
        page = "\n".join(results.render(self.directory)[0])
        self.assertIn("| at most 8.4 % | **8.401 %** | **no** |", page)

    def test_one_commit_is_said_once(self):
        for name in results_tables.SECTIONS:
            self.change(name, lambda stored: stored.update(commit="0123abc"))
        page = "\n".join(results.render(self.directory)[0])
        self.assertEqual(page.count("0123abc"), 1)
        self.change("sweep", lambda stored: stored.update(commit="4567def"))
        page = "\n".join(results.render(self.directory)[0])
        self.assertEqual(page.count("4567def"), 1)
        self.assertIn("Commits differ", page)

    def test_quick_figures_are_marked(self):
        self.assertNotIn("Quick figures", "\n".join(results.render(self.directory)[0]))
        self.change("sweep", lambda stored: stored.update(mode="quick"))
        self.assertIn("Quick figures", "\n".join(results.render(self.directory)[0]))

    def test_what_was_not_measured_is_named(self):
        self.keep_only("sweep", "fsst_bench")
        last = results.render(self.directory)[0][-1]
        self.assertTrue(last.startswith("Not measured: archive_check, "), last)
        self.assertNotIn("sweep", last)

    def test_page_must_not_grow(self):
        self.change("archive_sizes", lambda stored: stored.update(figures=stored["figures"] * 20))
        with self.assertRaisesRegex(results.ResultsError, f"must have at most {results.LINES_MAX}"):
            results.render(self.directory)


class RefusedTest(Sample):
    def refused(self, pattern):
        with self.assertRaisesRegex(results.ResultsError, pattern):
            results.render(self.directory)

    def test_other_format(self):
        self.change("sweep", lambda stored: stored.update(format=2))
        self.refused(r"sweep\.json: format must be 1, got 2")

    def test_truncated_file(self):
        path = self.directory / "sweep.json"
        path.write_text(path.read_text()[:100])
        self.refused(r"sweep\.json: ")

    def test_missing_figure(self):
        self.change("device_bench", lambda stored: stored["figures"].pop("random_decode"))
        self.change("archive_check", lambda stored: stored["figures"].pop("verify"))
        self.refused(r"archive_check\.json: figures lack KeyError\('verify'\)")

    def test_no_figures(self):
        self.keep_only()
        self.refused("no figures")

    def test_quick_figures_do_not_replace_stored_ones(self):
        with self.assertRaises(SystemExit):
            results.parse_arguments(["--run", "--quick"])
        with self.assertRaises(SystemExit):
            results.parse_arguments(["--run"])
        with self.assertRaises(SystemExit):
            results.parse_arguments(["--run", "--corpora", "x", "--only", "none"])


class SectionTest(unittest.TestCase):
    def test_ratio_is_the_median_of_the_rounds(self):
        def rounds(*rates):
            return [{"answers_per_second": rate, "megabytes_per_second": rate / 10,
                     "server_cpu_us": 1} for rate in rates]

        section = results_tables.api_limit({
            "empty unary": rounds(100, 200, 400), "quire unary": rounds(90, 100, 360),
            "quire batch": rounds(900, 200, 720), "empty scan": rounds(1, 1, 1),
            "quire scan": rounds(0.5, 0.7, 0.9)})
        self.assertEqual([(aim.measured, aim.is_met) for aim in section.aims],
                         [("0.90", True), ("2.00", False), ("0.70", False)])


class CorpusTest(unittest.TestCase):
    def test_documents_and_slice(self):
        with tempfile.TemporaryDirectory() as scratch:
            tree = pathlib.Path(scratch, "tree")
            (tree / "b").mkdir(parents=True)
            (tree / "b" / "one").write_bytes(b"0123456789")
            (tree / "a").write_bytes(b"abcde")
            (tree / "empty").write_bytes(b"")
            (tree / "link").symlink_to("a")
            self.assertEqual(list(make_corpus.documents_of(tree)),
                             [("a", b"abcde"), ("b/one", b"0123456789")])
            out = pathlib.Path(scratch, "out")
            make_corpus.write_slice(tree / "b" / "one", out, count=3, size_bytes=2)
            self.assertEqual(out.read_bytes(), b"01" b"34" b"67")
            with self.assertRaisesRegex(ValueError, "has 10 bytes, and 3 pieces of 4 need more"):
                make_corpus.write_slice(tree / "b" / "one", out, count=3, size_bytes=4)


class CommandsTest(unittest.TestCase):
    def test_every_benchmark_has_a_section(self):
        self.assertLessEqual(set(results_runs.COMMANDS), set(results_tables.SECTIONS))

    def test_commands_name_scripts_that_are_there(self):
        for is_quick in (False, True):
            setting = results_runs.Setting(
                pathlib.Path("build"), "c/webdocs", pathlib.Path("c/webdocs256.raw"),
                pathlib.Path("c/columns"), pathlib.Path("work"), is_quick)
            for name, make in results_runs.COMMANDS.items():
                for command in make(setting, "out.json"):
                    program = pathlib.Path(command[0])
                    self.assertTrue(program.is_file() or "bin" in program.parts, command)
                    self.check_options(command)
                if name not in results_runs.PRINTED:
                    self.assertEqual(command[-2:], ["--json", "out.json"])

    def check_options(self, command):
        """The script takes these options."""
        words = [str(word) for word in command]
        if not words[0].endswith(".py"):
            return
        module = importlib.import_module(pathlib.Path(words[0]).stem)
        if hasattr(module, "parse_arguments"):
            with unittest.mock.patch.object(sys, "argv", words):
                module.parse_arguments()

    def test_tables_of_report_programs(self):
        tables = results_runs.parse_tables(
            "\ndisk a\n\n| load | requests/s |\n|---|---|\n| RANDOM | 12 |\n| live | 3 |\n"
            "\ndisk b\n\n| load | requests/s |\n|---|---|\n| RANDOM | 9 |\n")
        self.assertEqual(tables, {"disk a": [["RANDOM", "12"], ["live", "3"]],
                                  "disk b": [["RANDOM", "9"]]})
        tables = results_runs.parse_tables("| a |\n|---|\n| 1 |\n\n| a |\n|---|\n| 2 |\n")
        self.assertEqual(tables, {"table 1": [["1"]], "table 2": [["2"]]})

    def test_command_is_shown_without_paths_of_this_machine(self):
        setting = results_runs.Setting(pathlib.Path("build"), "/c/webdocs", pathlib.Path("/c/s.raw"),
                                       pathlib.Path("/c/columns"), pathlib.Path("/w"), False)
        words = [str(word) for word in results_runs.sweep(setting, "/w/out.json")[0]]
        self.assertEqual(
            results.shown_command(words, setting, pathlib.Path("/c")),
            "loadtest/sweep.py --corpus CORPORA/s.raw --codecs copy,lz4,zlib:9,rlz-zz,rlz-zzz,rlz:2 "
            "--dictionary-sizes 4MiB --seconds 1")


if __name__ == "__main__":
    unittest.main()
