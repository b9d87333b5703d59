#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the corpora of RESULTS.md from Debian documentation packages, which it downloads
with apt-get (0.3 GB).

    loadtest/harness/make_corpus.py --out /data webdocs

    webdocs   eight documentation sites, one after the other, like a crawl:
              76,000 documents, 1.5 GB
    versions  two documentation trees in two releases each: 50,000 documents, 0.65 GB

For each it writes NAME.tar, the documents sorted by path; NAME.raw, the same
concatenated; NAME.tsv, offset, size and path of each in NAME.raw; and NAME256.raw, 256
pieces of 1 MiB, piece i from byte i*size/256 (rounded down) of NAME.raw. Sizes change a
little when Debian updates a package.

Columns for paper_fsst.py are those of the FSST paper, in paper/dbtext of its
authors' repository, github.com/cwida/fsst.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

from live_server import write_corpus

PACKAGES = {
    "webdocs": ("cppreference-doc-en-html", "erlang-doc", "openjdk-17-doc", "qtbase5-doc-html",
                "postgresql-doc-15", "python3.11-doc", "rust-web-doc", "libstdc++-12-doc"),
    "versions": ("libstdc++-11-doc", "libstdc++-12-doc", "linux-doc-6.1", "linux-doc-6.12"),
}
SLICE_COUNT = 256
SLICE_BYTES = 1 << 20


def extract(packages, directory):
    """Returns a directory for each package, of the files in it."""
    subprocess.run(["apt-get", "download", "-qq", *packages], cwd=directory, check=True)
    for archive in sorted(directory.glob("*.deb")):
        target = directory / archive.name.split("_")[0]
        subprocess.run(["dpkg", "-x", archive, target], check=True)
        archive.unlink()


def documents_of(tree):
    """Yields (path, bytes) of all files that are not empty, sorted by path."""
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*")
                   if path.is_file() and not path.is_symlink() and path.stat().st_size > 0)
    return ((name, (tree / name).read_bytes()) for name in names)


def write_slice(text, out, count=SLICE_COUNT, size_bytes=SLICE_BYTES):
    """Writes `count` pieces of the text, at equal distances."""
    text_bytes = os.path.getsize(text)
    if text_bytes < count * size_bytes:
        raise ValueError(f"{text} has {text_bytes:,} bytes, and {count} pieces of {size_bytes:,} "
                         "need more")
    with open(text, "rb") as source, open(out, "wb") as target:
        for number in range(count):
            source.seek(number * text_bytes // count)
            target.write(source.read(size_bytes))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=list(PACKAGES))
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="DIR")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.names:
        with tempfile.TemporaryDirectory(dir=arguments.out) as scratch:
            # apt-get downloads as a separate user.
            os.chmod(scratch, 0o755)
            tree = pathlib.Path(scratch)
            extract(PACKAGES[name], tree)
            write_corpus(documents_of(tree), arguments.out / name)
        raw = arguments.out / f"{name}.raw"
        write_slice(raw, arguments.out / f"{name}{SLICE_COUNT}.raw")
        print(f"{raw}: {raw.stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        sys.exit(f"make_corpus.py: {error}")
