#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests tidy_run.py with clang-tidy on small sources."""
import json
import pathlib
import tempfile
import unittest

from tidy_run import run

CLEAN = "int %s(int x) { return x; }\n"
HIDDEN = "namespace { int Hidden() { return 1; } }\nint %s() { return Hidden(); }\n"
UNUSED = "int %s(int x) { return 1; }\n"
DIVIDES = "int %s() { int x = 0; return 1 / x; }\n"


class TidyRunTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()
        (self.root / ".clang-tidy").write_text(
            "Checks: '-*,misc-unused-parameters,clang-analyzer-core*,"
            "readability-duplicate-include'\n"
            "WarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n")
        self.build = self.root / "build"
        self.build.mkdir()
        self.commands = []

    def add(self, path, text, options="", built=True):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)
        if built:
            self.commands.append({"file": str(self.root / path), "directory": str(self.build),
                                  "command": f"clang++ -I{self.root} {options} -MD -MF x.d -o x.o "
                                             f"-c {self.root / path}"})

    def complaints(self, *sources):
        """Returns the number of batches, that of those taken apart, and all complaints."""
        (self.build / "compile_commands.json").write_text(json.dumps(self.commands))
        found = []
        batches, apart, faulty, self.left_out = run(self.root, self.build, list(sources), 2,
                                                    report=found.append)
        self.assertEqual(faulty, len(found))
        return batches, apart, "\n".join(found)

    def test_sources_of_a_directory_are_one_batch(self):
        for name in ("one", "two", "three"):
            self.add(f"a/{name}.cc", CLEAN % name)
        self.add("b/four.cc", CLEAN % "four")
        self.assertEqual(self.complaints("a/one.cc", "a/two.cc", "a/three.cc", "b/four.cc"),
                         (2, 0, ""))

    def test_a_fault_is_named_once_with_its_source(self):
        self.add("a/one.cc", CLEAN % "One")
        self.add("a/two.cc", UNUSED % "Two")
        batches, apart, text = self.complaints("a/one.cc", "a/two.cc")
        self.assertEqual((batches, apart), (1, 1))
        self.assertEqual(text.count("misc-unused-parameters"), 1)
        self.assertIn("a/two.cc:1:13: error", text)

    def test_the_analyzer_looks_into_sources_of_a_batch(self):
        self.add("a/one.cc", CLEAN % "One")
        self.add("a/two.cc", DIVIDES % "Two")
        self.assertIn("a/two.cc:1:33: error: Division by zero",
                      self.complaints("a/one.cc", "a/two.cc")[2])

    def test_the_analyzer_leaves_tests_out(self):
        self.add("a/one_test.cc", CLEAN % "One")
        self.add("a/two_test.cc", DIVIDES % "Two")
        self.assertEqual(self.complaints("a/one_test.cc", "a/two_test.cc"), (1, 0, ""))

    def test_an_include_of_two_sources_is_no_duplicate_but_one_of_the_same_is(self):
        self.add("a/one.h", "#pragma once\n", built=False)
        self.add("a/one.cc", '#include "a/one.h"\n')
        self.add("a/two.cc", '#include "a/one.h"\n')
        self.assertEqual(self.complaints("a/one.cc", "a/two.cc"), (1, 0, ""))
        self.add("a/two.cc", '#include "a/one.h"\n#include "a/one.h"\n')
        self.assertIn("a/two.cc:2:1: error: duplicate include",
                      self.complaints("a/one.cc", "a/two.cc")[2])

    def test_sources_that_do_not_compile_together_are_taken_apart(self):
        self.add("a/one.cc", HIDDEN % "One")
        self.add("a/two.cc", HIDDEN % "Two")
        self.assertEqual(self.complaints("a/one.cc", "a/two.cc"), (1, 1, ""))

    def test_a_source_that_does_not_compile_is_a_fault(self):
        self.add("a/one.cc", '#include "missing.h"\n')
        self.assertIn("'missing.h' file not found", self.complaints("a/one.cc")[2])

    def test_options_are_those_of_the_source_or_of_its_neighbour(self):
        needs = "int %s() { return VALUE; }\n"
        self.add("a/one.cc", needs % "One", "-DVALUE=1")
        self.add("a/two.cc", needs % "Two", "-DVALUE=2")
        self.add("a/one_fuzz.cc", needs % "Three", built=False)
        self.add("a/three.cc", '#include "missing.h"\n', built=False)
        self.assertEqual(self.complaints("a/one.cc", "a/two.cc", "a/one_fuzz.cc", "a/three.cc"),
                         (2, 0, ""))
        self.assertEqual(self.left_out, ["a/three.cc"])


if __name__ == "__main__":
    unittest.main()
