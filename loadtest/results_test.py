#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that RESULTS.md equals the output of results.py for the stored figures, and that
invalid figures are refused by name."""
import contextlib
import io
import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import results

sys.path.insert(0, str(results.HERE / "harness"))
# pylint: disable=wrong-import-position
import make_corpus
from bench_json import write_json


def row_sizes(lines):
    """Returns the number of cells of each row, by table."""
    tables, previous = [], ""
    for line in lines:
        if line.startswith("|"):
            if not previous.startswith("|"):
                tables.append([])
            tables[-1].append(line.count("|"))
        previous = line
    return tables


class Sample(unittest.TestCase):
    """Figures of every section, to be changed."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        write_json(self.directory / results.ABOUT, {
            "format": results.FORMAT, "machine": "2 cores", "corpora": ["`webdocs`: 1 byte"]})
        for name in results.SECTIONS:
            write_json(self.directory / f"{name}.json", {
                "format": results.FORMAT, "benchmark": name, "commit": "0123abc", "mode": "full",
                "load": "idle", "command": f"loadtest/{name}.py",
                "lines": ["| what | figure |", "|---|---|", f"| {name} | 1 |"]})

    def change(self, name, **values):
        path = self.directory / f"{name}.json"
        write_json(path, {**json.loads(path.read_text()), **values})

    def page(self):
        return "\n".join(results.render(self.directory))


class PageTest(Sample):
    def test_page_in_the_tree_is_of_the_stored_figures(self):
        page = (results.HERE / "RESULTS.md").read_text(encoding="utf-8")
        lines = results.render(results.STORED)
        self.assertEqual(page, "\n".join(lines) + "\n",
                         "run loadtest/results.py --out loadtest/RESULTS.md")
        for sizes in row_sizes(lines):
            self.assertEqual(len(set(sizes)), 1, sizes)

    def test_a_section_for_each_benchmark(self):
        lines = results.render(self.directory)
        titles = "; ".join(line[3:] for line in lines if line.startswith("## ")).split("; ")
        self.assertCountEqual(titles, [section.title for section in results.SECTIONS.values()])
        self.assertLessEqual(len(row_sizes(lines)), results.TABLES_MAX)
        for name in results.SECTIONS:
            self.assertEqual(lines.count(f"| {name} | 1 |"), 1)

    def test_rows_that_join_another_table(self):
        page = self.page()
        self.assertIn("| paper_migration | 1 |\n| paper_cost | 1 |\n", page)
        self.assertIn("## Migratory Compression; Data Compression for Climate Data\n", page)
        # Alone it has a table.
        (self.directory / "paper_migration.json").unlink()
        self.assertIn("## Data Compression for Climate Data\n", self.page())
        (self.directory / "paper_fsst.json").unlink()
        self.change("paper_cost", lines=["| other |", "|---|", "| 1 |"])
        self.assertIn("| other |", self.page())

    def test_rows_of_another_table_do_not_join(self):
        self.change("paper_cost", lines=["| other |", "|---|", "| 1 |"])
        with self.assertRaisesRegex(results.ResultsError, r"paper_cost\.json: .*paper_migration"):
            self.page()

    def test_one_commit_is_named_once(self):
        self.assertEqual(self.page().count("0123abc"), 1)
        self.change("wire_bench", commit="4567def")
        self.assertEqual(self.page().count("4567def"), 1)
        self.assertIn("Commits differ", self.page())

    def test_quick_figures_are_marked(self):
        self.assertNotIn("Quick figures", self.page())
        self.change("api_limit", mode="quick")
        self.assertIn("Quick figures", self.page())

    def test_benchmarks_without_figures_are_named(self):
        (self.directory / "paper_fsst.json").unlink()
        self.assertTrue(self.page().endswith("Not measured: paper_fsst."))

    def test_number_of_tables_is_limited(self):
        table = ["| a | b |", "|---|---|", "| 1 | 2 |"]
        self.change("api_limit", lines=[*table, "", *table])
        with self.assertRaisesRegex(results.ResultsError, "11 tables; at most 10"):
            self.page()


class RefusedTest(Sample):
    def refused(self, pattern):
        with self.assertRaisesRegex(results.ResultsError, pattern):
            results.render(self.directory)

    def test_other_format(self):
        self.change("api_limit", format=1)
        self.refused(r"api_limit\.json: format must be 2, got 1")

    def test_truncated_file(self):
        path = self.directory / "api_limit.json"
        path.write_text(path.read_text()[:50])
        self.refused(r"api_limit\.json: ")

    def test_no_figures(self):
        for name in results.SECTIONS:
            (self.directory / f"{name}.json").unlink()
        self.refused("no figures")

    def test_command_lines(self):
        for words in (["--run", "--quick"], ["--run"],
                      ["--run", "--only", "api_limit,paper_fsst"],
                      ["--run", "--corpora", "x", "--only", "none"]):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
                results.parse_arguments(words)
        self.assertEqual(results.parse_arguments(["--run", "--only", "api_limit"]).only,
                         ["api_limit"])


class CommandsTest(unittest.TestCase):
    def test_programs_exist_and_paths_are_hidden(self):
        with tempfile.TemporaryDirectory() as scratch:
            corpora = pathlib.Path(scratch)
            (corpora / "columns").mkdir()
            for is_quick in (False, True):
                setting = results.Setting(pathlib.Path("/build"), corpora,
                                          pathlib.Path("/bench/work"), is_quick)
                for name, section in results.SECTIONS.items():
                    command = section.command(setting)
                    program = pathlib.Path(command[0])
                    self.assertTrue(program.is_file() or program.parent.name == "bin", name)
                    shown = results.shown_command(command, setting)
                    self.assertRegex(shown, r"^(loadtest|bin)/")
                    self.assertNotIn(scratch, shown)


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


if __name__ == "__main__":
    unittest.main()
