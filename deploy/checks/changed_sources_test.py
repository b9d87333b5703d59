#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests changed_sources.py against generated repositories."""
import pathlib
import subprocess
import tempfile
import unittest

from changed_sources import COMMITS, changed_suites, choose

UNTRUSTED = ["codecs/zlib/parse.cc"]


class ChangedSourcesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.root = self.directory / "repository"
        self.root.mkdir()
        for path in ("codecs/zlib/parse.cc", "codecs/zlib/parse_test.cc", "server/a.cc",
                     "server/a.h", "server/only.h", "server/user.cc"):
            self.write(path, f"// {path}\n" * 20)
        self.write("server/user.cc", '#include "server/only.h"\n')
        self.git("init", "-q", "-b", "main")
        self.commit()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def git(self, *arguments, cwd=None):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments],
                       cwd=cwd or self.root, check=True, capture_output=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "x")

    def change(self, path, lines=1):
        self.write(path, (self.root / path).read_text() + "// more\n" * lines)

    def chosen(self, root=None, **options):
        return choose(root or self.root, **options)[0]

    def test_chooses_the_suites_of_changed_directories(self):
        directories = {"cache_test": "server/cache", "read_test": "server/read"}
        self.assertEqual(changed_suites(["server/cache/a.cc", "server/b.cc"], directories),
                         ["cache_test"])
        self.assertEqual(changed_suites(["codecs/a.cc"], directories), [])

    def test_a_branch_is_compared_with_its_merge_base(self):
        self.git("checkout", "-q", "-b", "topic")
        for number in range(COMMITS + 2):
            self.change("server/a.cc" if number == 0 else "server/user.cc")
            self.commit()
        self.git("checkout", "-q", "main")
        self.change("codecs/zlib/parse.cc")
        self.commit()
        self.git("checkout", "-q", "topic")
        self.assertEqual(self.chosen(), ["server/user.cc", "server/a.cc"])

    def test_main_is_compared_with_its_last_commits(self):
        self.change("server/a.cc")
        self.commit()
        for _ in range(COMMITS):
            self.change("server/user.cc")
            self.commit()
        self.assertEqual(self.chosen(), ["server/user.cc"])

    def test_a_shallow_clone_is_compared_with_its_oldest_commit(self):
        for path in ("server/user.cc", "server/a.cc"):
            self.change(path)
            self.commit()
        self.git("clone", "-q", "--depth", "2", f"file://{self.root}", "shallow",
                 cwd=self.directory)
        self.assertEqual(self.chosen(self.directory / "shallow"), ["server/a.cc"])

    def test_a_single_commit_gives_what_parses_untrusted_bytes(self):
        self.assertEqual(self.chosen(), UNTRUSTED)
        self.git("clone", "-q", "--depth", "1", f"file://{self.root}", "single",
                 cwd=self.directory)
        self.assertEqual(self.chosen(self.directory / "single"), UNTRUSTED)

    def test_a_tree_without_git_gives_the_same(self):
        self.git("checkout-index", "-a", f"--prefix={self.directory}/tree/")
        self.assertEqual(self.chosen(self.directory / "tree"), UNTRUSTED)

    def test_a_header_stands_for_a_source(self):
        self.change("server/a.h")
        self.change("server/only.h")
        self.commit()
        self.assertEqual(self.chosen(), ["server/a.cc", "server/user.cc"])

    def test_uncommitted_changes_count_and_plain_renames_do_not(self):
        self.git("mv", "server/a.cc", "server/b.cc")
        self.commit()
        self.change("server/user.cc", 3)
        self.write("server/new.cc", "// new\n")
        self.assertEqual(self.chosen(), ["server/user.cc", "server/new.cc"])

    def test_the_named_commit_the_limit_and_the_build(self):
        for path, lines in (("server/a.cc", 1), ("server/user.cc", 5)):
            self.change(path, lines)
            self.commit()
        self.assertEqual(self.chosen(base="HEAD~1"), ["server/user.cc"])
        self.assertEqual(self.chosen(count_max=1), ["server/user.cc"])
        self.assertTrue(choose(self.root, count_max=1)[1].endswith(
            "the 1 with the fewest changed lines are left out: server/a.cc"))
        self.assertEqual(self.chosen(built={"server/a.cc"}), ["server/a.cc"])
        with self.assertRaisesRegex(SystemExit, "must be a commit, got 'none'"):
            self.chosen(base="none")


if __name__ == "__main__":
    unittest.main()
