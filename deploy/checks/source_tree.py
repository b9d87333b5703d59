#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Lists the files of the repository, and runs the checks in this directory.

As a program: prints the files of the tree, one per line, with one of the given suffixes
(all without any).

usage: source_tree.py [SUFFIX...]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def list_files(root):
    """Returns sorted paths relative to root that git tracks or would track.

    Without git (an unpacked tarball): all files outside build directories.
    """
    try:
        listing = subprocess.run(
            ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "--cached",
             "--others", "--exclude-standard"],
            cwd=root, check=True, capture_output=True).stdout.decode()
        names = {name for name in listing.split("\0") if name}
    except (OSError, subprocess.CalledProcessError):
        names = set()
        for directory, directories, files in os.walk(root):
            directories[:] = [f for f in directories
                          if f not in (".git", "__pycache__")
                          and not f.startswith("build")]
            names |= {os.path.relpath(os.path.join(directory, f), root) for f in files}
    return sorted(n for n in names if (root / n).is_file())


def read_text(path):
    """Returns the file's text; None if it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def run_check(name, check, bad_sample, expected):
    """Runs `check(root, files) -> complaints` on the repository.

    First proves that the check can fail: `bad_sample` maps paths to contents, and its
    complaints must be as many as `expected` and contain those texts, in order.
    """
    with tempfile.TemporaryDirectory() as directory:
        sample = pathlib.Path(directory)
        for path, contents in bad_sample.items():
            (sample / path).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(contents, bytes):
                (sample / path).write_bytes(contents)
            else:
                (sample / path).write_text(contents)
        complaints = check(sample, sorted(bad_sample))
    matches = len(complaints) == len(expected) and all(
        text in complaint for text, complaint in zip(expected, complaints))
    if not matches:
        sys.exit(f"{name}: the check does not find what is wrong with its own bad sample.\n"
                 f"expected: {expected}\nfound:    {complaints}")

    files = list_files(ROOT)
    complaints = check(ROOT, files)
    for complaint in complaints:
        print(complaint)
    if complaints:
        sys.exit(f"{name}: {len(complaints)} faults in {len(files)} files")
    print(f"{name}: {len(files)} files, no faults "
          f"(and {len(expected)} found in the bad sample)")


if __name__ == "__main__":
    for file in list_files(ROOT):
        if len(sys.argv) == 1 or file.endswith(tuple(sys.argv[1:])):
            print(file)
