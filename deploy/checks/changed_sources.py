#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the changed sources, which continuous integration runs clang-tidy on.

Compares with the first of these that exists: the commit of --base, the merge base with
origin/main or main, the commit COMMITS before HEAD or the oldest in a shallow clone. With
a single commit, or without git, there is no base: lists the parsers of untrusted bytes
instead. Prints paths, one per line, most changed lines first, and the base on standard
error.

With --suites prints instead the tests with the label `tsan` of the CMake build directory
BUILD that are defined in a directory with changed sources.

usage: changed_sources.py [--base COMMIT] [--count-max N] [--commands FILE] [--suites BUILD]
"""
import argparse
import json
import pathlib
import subprocess
import sys

from source_tree import ROOT, list_files, read_text
from test_times import test_directories

COMMITS = 5
COUNT_MAX = 40
SUFFIXES = (".cc", ".h")
UNTRUSTED = ("codecs/payload/", "codecs/zlib/", "codecs/zstd/", "server/archive/format/")
TESTS = ("_test.cc", "_fuzz.cc", "_benchmark.cc")


class Repository:
    def __init__(self, root):
        self.root = root

    def git(self, *arguments):
        """Returns the standard output of the git command; None if it failed."""
        try:
            return subprocess.run(
                ["git", "-c", f"safe.directory={self.root}", *arguments], cwd=self.root,
                check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
        except (OSError, subprocess.CalledProcessError):
            return None

    def find_base(self, wanted=None):
        """Returns the commit to compare with, or None."""
        head = (self.git("rev-parse", "--verify", "-q", "HEAD^{commit}") or "").strip()
        if wanted:
            found = self.git("rev-parse", "--verify", "-q", f"{wanted}^{{commit}}")
            if found is None:
                sys.exit(f"changed_sources: --base must be a commit, got '{wanted}'")
            return found.strip()
        for branch in ("origin/main", "main"):
            found = (self.git("merge-base", branch, "HEAD") or "").strip()
            if found and found != head:
                return found
        line = (self.git("rev-list", "--first-parent", f"--max-count={COMMITS + 1}", "HEAD") or
                "").split()
        return line[-1] if len(line) > 1 else None

    def changed_lines(self, base):
        """Returns the number of lines changed since `base`, by path, including uncommitted ones."""
        fields = (self.git("diff", "--numstat", "-z", "-M", base) or "").split("\0")
        changed = {}
        while len(fields) > 1:
            added, removed, path = fields.pop(0).split("\t")
            if not path:  # A rename: the old name, then the new one.
                path = fields[1]
                del fields[:2]
            if added != "-" and int(added) + int(removed) > 0:
                changed[path] = int(added) + int(removed)
        others = self.git("ls-files", "-z", "--others", "--exclude-standard") or ""
        return changed | {path: 1 for path in others.split("\0") if path}


def source_of(header, files, contents):
    """Returns the source that best covers a header for clang-tidy, or None."""
    for candidate in (f"{header[:-2]}.cc", f"{header[:-2]}_test.cc"):
        if candidate in files:
            return candidate
    for path in files:
        if path.endswith(".cc") and f'#include "{header}"' in contents(path):
            return path
    return None


def choose(root, base=None, count_max=COUNT_MAX, built=None):
    """Returns the sources, most changed first, and a sentence about the choice."""
    files = [path for path in list_files(root) if path.endswith(SUFFIXES)]
    repository = Repository(root)
    commit = repository.find_base(base)
    if commit is None:
        weights = {path: 1 for path in files
                   if path.startswith(UNTRUSTED) and path.endswith(".cc")
                   and not path.endswith(TESTS)}
        reason = "no commit to compare with: what parses untrusted bytes"
    else:
        weights = {}
        known = set(files)
        for path, lines in repository.changed_lines(commit).items():
            if path not in known:
                continue
            source = path if path.endswith(".cc") else source_of(
                path, files, lambda other: read_text(root / other) or "")
            if source is not None:
                weights[source] = weights.get(source, 0) + lines
        reason = f"changed since {commit[:12]}"
    if built is not None:
        weights = {path: lines for path, lines in weights.items() if path in built}
    ordered = sorted(weights, key=lambda path: (-weights[path], path))
    left_out = ordered[count_max:]
    return ordered[:count_max], f"{reason}; {len(ordered)} sources" + (
        f", of which the {len(left_out)} with the fewest changed lines are left out: "
        f"{' '.join(left_out)}" if left_out else "")


def changed_suites(sources, directories):
    """Returns the names of suites, given the directory of each, that have changed sources."""
    changed = {str(pathlib.PurePath(path).parent) for path in sources}
    return sorted(name for name, directory in directories.items() if directory in changed)


def built_sources(root, commands):
    """Returns the sources in a compile_commands.json, relative to root."""
    return {str(pathlib.Path(entry["file"]).relative_to(root))
            for entry in json.loads(pathlib.Path(commands).read_text())
            if pathlib.Path(entry["file"]).is_relative_to(root)}


def main():
    parser = argparse.ArgumentParser(description="lists the sources that changed")
    parser.add_argument("--base", help="compare with this commit")
    parser.add_argument("--count-max", type=int, default=COUNT_MAX)
    parser.add_argument("--commands", help="only sources in this compile_commands.json")
    parser.add_argument("--suites", metavar="BUILD", type=pathlib.Path,
                        help="print the suites with threads of changed directories")
    options = parser.parse_args()
    if options.suites is not None:
        sources, reason = choose(ROOT, options.base, sys.maxsize)
        suites = changed_suites(sources, test_directories(options.suites, "tsan"))
        print(f"changed_sources: {reason}; {len(suites)} suites with threads", file=sys.stderr)
        for suite in suites:
            print(suite)
        return
    sources, reason = choose(
        ROOT, options.base, options.count_max,
        None if options.commands is None else built_sources(ROOT, options.commands))
    print(f"changed_sources: {reason}", file=sys.stderr)
    for path in sources:
        print(path)


if __name__ == "__main__":
    main()
