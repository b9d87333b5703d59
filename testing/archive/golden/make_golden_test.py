#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""make_golden makes the golden archives next to this file, byte for byte.

Of what an encoder or the writer does otherwise since, the golden archive stays as
it is, for it must still be read: IMPROVED_SINCE says why.

usage: make_golden_test.py MAKE_GOLDEN
"""

import pathlib
import subprocess
import sys
import tempfile

GOLDEN = pathlib.Path(__file__).resolve().parent
IMPROVED_SINCE = {
    "good/members": "level max of rlz finds more copies",
    "good/parts": "the default level of rlz tries no known distance again",
}


def archives(directory):
    """Of each archive, by the name of its directory: its files' bytes by name."""
    return {
        f"{kind}/{archive.name}": {file.name: file.read_bytes() for file in archive.iterdir()}
        for kind in ("good", "bad")
        for archive in (directory / kind).iterdir()
    }


def main():
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.argv[1], directory], check=True)
        made, golden = archives(pathlib.Path(directory)), archives(GOLDEN)
    faults = [f"{name}: there is no such golden archive" for name in made.keys() - golden.keys()]
    faults += [f"{name}: not made any more" for name in golden.keys() - made.keys()]
    for name in sorted(made.keys() & golden.keys()):
        same = made[name] == golden[name]
        if not same and name not in IMPROVED_SINCE:
            faults.append(f"{name}: made otherwise; if that is right, say why in IMPROVED_SINCE")
        if same and name in IMPROVED_SINCE:
            faults.append(f"{name}: as it was; take it out of IMPROVED_SINCE")
    print("\n".join(sorted(faults)) or f"{len(golden)} golden archives, made again")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
