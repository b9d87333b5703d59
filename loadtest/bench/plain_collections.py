#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the collections that plain_build.py measures from public packages.

usage: plain_collections.py DIR [NAME...]

Each is a directory DIR/NAME of 20 to 150 MB; an existing one is kept. Needs apt-get,
dpkg, pip and npm.
"""
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

DEBIAN = {
    # Three and two releases of a manual.
    "manual": ["libstdc++-11-doc", "libstdc++-12-doc"],
    "pages": ["cppreference-doc-en-html"],
    "handbook": ["python3.11-doc", "sqlite3-doc", "postgresql-doc-15"],
    "prose": ["anarchism", "doc-debian", "debian-reference-en", "debian-reference-de",
              "debian-reference-fr", "developers-reference", "maint-guide", "bible-kjv-text"],
    "tables": ["unicode-data", "tzdata", "iso-codes", "ieee-data", "geoip-database"],
    "words": ["wamerican-insane", "wbritish-insane", "wfrench", "wngerman", "wspanish",
              "witalian", "wdutch", "wpolish"],
    "compressed": ["manpages", "manpages-dev", "manpages-de", "manpages-fr", "manpages-ja",
                   "manpages-es", "gcc-12-doc", "perl-doc", "git-man", "valgrind"],
    "sources": ["linux-headers-6.1.0-50-common", "libboost1.74-dev", "emacs-el", "perl-modules-5.36",
                "libpython3.11-stdlib"],
    "binaries": ["libllvm15", "libqt5gui5", "libqt5core5a", "python3.11-minimal", "perl-base"],
}
PIP = {
    # Consecutive releases.
    "releases": [("sympy", v) for v in ("1.9", "1.10.1", "1.11.1", "1.12")],
    "toolkit": [("sphinx", v) for v in
                ("5.3.0", "6.0.0", "6.1.3", "6.2.1", "7.0.1", "7.1.2", "7.2.6", "7.3.7", "7.4.7")],
}
NPM = {"compiler": [("typescript", v) for v in ("5.2.2", "5.3.3", "5.4.5")]}


def download(name, into):
    scratch = into.parent / f"{into.name}-download"
    scratch.mkdir()
    for package in DEBIAN.get(name, []):
        subprocess.run(["apt-get", "download", "-qq", package], cwd=scratch, check=False)
    for deb in sorted(scratch.glob("*.deb")):
        subprocess.run(["dpkg", "-x", deb, into / deb.name.split("_")[0]], check=True)
    for package, version in PIP.get(name, []):
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "-q", "--only-binary", ":all:",
                        "-d", scratch, f"{package}=={version}"], check=True)
        (wheel,) = scratch.glob("*.whl")
        zipfile.ZipFile(wheel).extractall(into / f"{package}-{version}")
        wheel.unlink()
    for package, version in NPM.get(name, []):
        subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=scratch, check=True)
        (archive,) = scratch.glob("*.tgz")
        tarfile.open(archive).extractall(into / f"{package}-{version}")
        archive.unlink()
    shutil.rmtree(scratch)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or [*DEBIAN, *PIP, *NPM]:
        if (directory / name).exists():
            continue
        with tempfile.TemporaryDirectory(dir=directory) as scratch:
            tree = pathlib.Path(scratch) / name
            tree.mkdir()
            download(name, tree)
            tree.rename(directory / name)
        files = [p for p in (directory / name).rglob("*") if p.is_file() and not p.is_symlink()]
        print(name, len(files), sum(p.stat().st_size for p in files), flush=True)


if __name__ == "__main__":
    main()
