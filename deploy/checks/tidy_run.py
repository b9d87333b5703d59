#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy on sources, several of a directory at a time.

Most of its time goes into the headers: it parses them and matches each check against
each of their declarations. Sources of a directory share most headers, so up to BATCH of
them with the same options are copied into one source. If clang-tidy complains of that
one, its sources are looked at one by one, and these complaints count: anonymous
namespaces of sources that are never compiled together may have the same names, and a
`using` is unused in its own source alone.

Reads the sources from standard input, one per line, and their options from the
compile_commands.json of BUILD. Fuzz targets that BUILD does not compile get those of
another source of their directory or of a directory above; other sources are left out,
and named: they need libraries that are not installed. Prints complaints, and a summary
on standard error; fails if there are complaints.

usage: tidy_run.py [--jobs N] [--batch N] BUILD
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shlex
import subprocess
import sys

from source_tree import ROOT

CLANG_TIDY = "clang-tidy-14"
BATCH = 8
NOT_SHIPPED = re.compile(r"_(test|benchmark)\.cc$|(^|/)testing/")
# Tests and benchmarks multiply small constants, set variables before they start threads,
# and may be slow. They run under the sanitizers, and the analyzer would take two thirds of
# the time.
NOT_SHIPPED_CHECKS = ("-clang-analyzer-*,-performance-*,-concurrency-*,"
                      "-bugprone-implicit-widening*")
FUZZ_TARGET = "_fuzz.cc"
# clang-tidy's count of what it does not show.
COUNTS = re.compile(r"^(\d+ warnings? .*generated|Suppressed \d+ warnings|Use -header-filter).*")


def compile_options(command):
    """Returns the options of a compile command but those that name its files."""
    words = iter(shlex.split(command)[1:])
    options = []
    for word in words:
        if word in ("-o", "-MF", "-MT", "-MQ"):
            next(words, None)
        elif word not in ("-c", "-MD", "-MMD") and not word.endswith((".cc", ".c")):
            options.append(word)
    return tuple(options)


def options_by_source(commands, root):
    """Returns the options of each source below root, by its path relative to root."""
    return {str(pathlib.Path(entry["file"]).relative_to(root)): compile_options(entry["command"])
            for entry in commands if pathlib.Path(entry["file"]).is_relative_to(root)}


def options_of(source, known):
    """Returns the options of the source, or those of the nearest one that is known."""
    if source in known:
        return known[source]
    for directory in pathlib.PurePath(source).parents:
        for other in sorted(known):
            if pathlib.PurePath(other).is_relative_to(directory):
                return known[other]
    sys.exit(f"tidy_run: {source}: no compile command fits it")


def make_batches(sources, known, batch):
    """Returns lists of sources that can be looked at together, each with its options."""
    groups = {}
    for source in sources:
        options = options_of(source, known)
        key = (str(pathlib.PurePath(source).parent), bool(NOT_SHIPPED.search(source)), options)
        groups.setdefault(key, []).append(source)
    return [(group[start:start + batch], key[2])
            for key, group in groups.items() for start in range(0, len(group), batch)]


def complaints_of(root, path, source, options):
    """Returns clang-tidy's complaints about the file at `path`, "" for none."""
    checks = [f"--checks={NOT_SHIPPED_CHECKS}"] if NOT_SHIPPED.search(source) else []
    done = subprocess.run(
        [CLANG_TIDY, "--quiet", f"--config-file={root / '.clang-tidy'}",
         *checks, str(path), "--", *options],
        cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stdout.splitlines() if not COUNTS.match(line)]
    return "\n".join(lines) or f"{path}: {CLANG_TIDY} ended with {done.returncode}"


def batch_text(texts):
    """Returns the texts of sources as that of one source.

    They are copied, as the analyzer looks into functions of the main file only. What an
    earlier source includes is left out, or readability-duplicate-include would find it.
    """
    earlier = set()
    lines = []
    for text in texts:
        seen = set()
        for line in text.splitlines():
            is_include = line.startswith("#include")
            # The second one of a source is a duplicate.
            left_out = is_include and line in earlier and line not in seen
            lines.append("" if left_out else line)
            if is_include:
                seen.add(line)
        earlier |= seen
    return "\n".join(lines) + "\n"


def look_at(root, sources, options, batch_path):
    """Returns the complaints about the sources, and whether each was looked at alone."""
    if len(sources) > 1:
        batch_path.write_text(batch_text((root / source).read_text() for source in sources))
        if not complaints_of(root, batch_path, sources[0], options):
            return "", False
    complaints = [complaints_of(root, root / source, source, options) for source in sources]
    return "\n".join(text for text in complaints if text), len(sources) > 1


def run(root, build, sources, jobs, batch=BATCH, report=print):
    """Calls `report` with the complaints about each faulty batch.

    Returns the numbers of batches, of those looked at source by source, and of faulty ones,
    and the sources that are left out.
    """
    known = options_by_source(json.loads((build / "compile_commands.json").read_text()), root)
    left_out = [source for source in sources
                if source not in known and not source.endswith(FUZZ_TARGET)]
    batches = make_batches([source for source in sources if source not in left_out], known, batch)
    directory = build / "tidy_batches"
    directory.mkdir(exist_ok=True)
    apart = 0
    faulty = 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(look_at, root, batch_sources, options,
                               (directory / f"batch_{number}.cc").resolve())
                   for number, (batch_sources, options) in enumerate(batches)]
        for future in concurrent.futures.as_completed(futures):
            complaints, was_apart = future.result()
            apart += was_apart
            if complaints:
                faulty += 1
                report(complaints)
    return len(batches), apart, faulty, left_out


def main():
    parser = argparse.ArgumentParser(description="runs clang-tidy on sources")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=BATCH, help="sources at a time")
    parser.add_argument("build", type=pathlib.Path)
    options = parser.parse_args()
    sources = sorted({line for line in sys.stdin.read().split("\n") if line})
    batches, apart, faulty, left_out = run(
        ROOT, options.build, sources, options.jobs, options.batch,
        lambda text: print(text, flush=True))
    print(f"tidy_run: {len(sources) - len(left_out)} sources in {batches} batches, of which "
          f"{apart} were looked at source by source; complaints in {faulty} batches"
          + (f"; not built, and left out: {' '.join(left_out)}" if left_out else ""),
          file=sys.stderr)
    sys.exit(1 if faulty else 0)


if __name__ == "__main__":
    main()
