#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the corpora of the fuzz targets: next to each NAME.cc, NAME_corpus.zip, and inputs with
names of their own in NAME_seeds/.

usage: fuzz_corpora.py unpack NAME DIRECTORY   adds the corpus and the seeds to DIRECTORY
       fuzz_corpora.py replay PROGRAM          runs PROGRAM once on all of them
       fuzz_corpora.py shrink BUILD [NAME...]  writes the corpora anew: the inputs of
                                               BUILD/corpus/NAME and of the tree, without those
                                               that cover nothing new
replay is what ctest runs: PROGRAM is a target without libFuzzer
(deploy/cmake/fuzz_replay_main.cc), named like it. shrink takes the fuzz targets in BUILD/fuzz
(deploy/test.sh asan fuzz), whose corpora grow with each run.
"""
import pathlib
import subprocess
import sys
import tempfile
import zipfile

from source_tree import ROOT

INPUT_SIZE_MAX = 16 << 10
CORPUS_SIZE_MAX = 48 << 10
# The same zip for the same inputs.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def source_of(name):
    found = [path for top in ("client", "codecs", "loadtest", "proto", "server")
             for path in (ROOT / top).rglob(f"{name}.cc")]
    if len(found) != 1:
        sys.exit(f"fuzz_corpora: {name} must be the name of one source, such as payload_fuzz; "
                 f"found {len(found)}")
    return found[0]


def unpack(name, directory):
    """Returns the number of inputs, each a file below `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    source = source_of(name)
    count = 0
    seeds = source.with_name(f"{name}_seeds")
    for path in sorted(seeds.glob("*")) if seeds.is_dir() else []:
        (directory / path.name).write_bytes(path.read_bytes())
        count += 1
    corpus = source.with_name(f"{name}_corpus.zip")
    if corpus.is_file():
        with zipfile.ZipFile(corpus) as archive:
            archive.extractall(directory)
            count += len(archive.namelist())
    return count


def replay(program):
    name = program.name
    with tempfile.TemporaryDirectory() as scratch:
        directory = pathlib.Path(scratch)
        count = unpack(name, directory)
        if count == 0:
            sys.exit(f"fuzz_corpora: {name} has no inputs; write them with: "
                     f"fuzz_corpora.py shrink BUILD {name}")
        result = subprocess.run([program, *sorted(directory.iterdir())], check=False)
    if result.returncode != 0:
        sys.exit(f"fuzz_corpora: {name} ended with {result.returncode}; the last input that it "
                 "named is the bad one")
    print(f"{name}: {count} inputs")


def write_zip(path, inputs):
    """Writes the smallest inputs, up to CORPUS_SIZE_MAX bytes of them in all."""
    left = CORPUS_SIZE_MAX
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for number, data in enumerate(sorted(set(inputs), key=lambda data: (len(data), data))):
            left -= len(data)
            if left < 0:
                return number
            archive.writestr(zipfile.ZipInfo(f"{number:04}", ZIP_TIME), data,
                             zipfile.ZIP_DEFLATED)
    return len(set(inputs))


def shrink(build, name):
    with tempfile.TemporaryDirectory() as scratch:
        old, new = pathlib.Path(scratch, "old"), pathlib.Path(scratch, "new")
        unpack(name, old)
        new.mkdir()
        grown = build / "corpus" / name
        subprocess.run([build / "fuzz" / name, "-merge=1", f"-max_len={INPUT_SIZE_MAX}", new, old,
                        *([grown] if grown.is_dir() else [])],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        inputs = [path.read_bytes() for path in new.iterdir()]
    path = source_of(name).with_name(f"{name}_corpus.zip")
    count = write_zip(path, inputs)
    print(f"{path.relative_to(ROOT)}: {count} of {len(inputs)} inputs, "
          f"{path.stat().st_size} bytes")


def main():
    arguments = sys.argv[1:]
    if len(arguments) == 3 and arguments[0] == "unpack":
        unpack(arguments[1], pathlib.Path(arguments[2]))
    elif len(arguments) == 2 and arguments[0] == "replay":
        replay(pathlib.Path(arguments[1]).resolve())
    elif len(arguments) >= 2 and arguments[0] == "shrink":
        build = pathlib.Path(arguments[1]).resolve()
        for name in arguments[2:] or sorted(path.name for path in (build / "fuzz").glob("*_fuzz")):
            shrink(build, name)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
