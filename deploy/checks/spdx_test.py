#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each file states the licence of its directory.

Debian's sdsl-lite is GPLv3, so the directories whose code links it (GPL_DIRECTORYS) are
GPL-3.0-or-later. Everything else is Apache-2.0, so that any program can embed the client.
Files that cannot contain a licence line are listed in REUSE.toml.
"""
import fnmatch
import re
import tomllib

from source_tree import read_text, run_check

GPL_DIRECTORYS = ("server/", "loadtest/papers/lz77/", "testing/archive/",
                  "testing/storage/")
SPDX = re.compile(r"SPDX-License-Identifier: *([A-Za-z0-9.+-]+)")
# A line "#!" and an encoding may come first.
LINES_MAX = 4


def expected_licence(path):
    return "GPL-3.0-or-later" if path.startswith(GPL_DIRECTORYS) else "Apache-2.0"


def annotations(root):
    """Returns (pattern, licence) of REUSE.toml, in its order."""
    listing = tomllib.loads((root / "REUSE.toml").read_text())
    return [(pattern, entry["SPDX-License-Identifier"])
            for entry in listing.get("annotations", [])
            for pattern in ([entry["path"]] if isinstance(entry["path"], str)
                            else entry["path"])]


def check(root, files):
    listed = annotations(root)
    complaints = []
    used = set()
    for path in files:
        if path.startswith("LICENSES/"):
            continue
        text = read_text(root / path)
        head = "\n".join((text or "").splitlines()[:LINES_MAX])
        match = SPDX.search(head)
        licence = match.group(1) if match else None
        for pattern, listed_licence in listed:
            if fnmatch.fnmatchcase(path, pattern):
                used.add(pattern)
                licence = licence or listed_licence
        if licence is None:
            complaints.append(f"{path}: no SPDX-License-Identifier in its first "
                              f"{LINES_MAX} lines, and not listed in REUSE.toml")
        elif licence != expected_licence(path):
            complaints.append(f"{path}: {licence}, but in this directory it is "
                              f"{expected_licence(path)}")
        elif not (root / "LICENSES" / f"{licence}.txt").is_file():
            complaints.append(f"{path}: {licence} has no text in LICENSES/")
    complaints += [f"REUSE.toml: {pattern} matches no file"
                   for pattern, _ in listed if pattern not in used]
    return complaints


BAD_SAMPLE = {
    "LICENSES/Apache-2.0.txt": "text",
    "REUSE.toml": "# SPDX-License-Identifier: Apache-2.0\n[[annotations]]\n"
                  "path = ['*.bin', 'gone/*']\n"
                  "SPDX-License-Identifier = 'Apache-2.0'\n",
    "client/good.bin": b"\xff\xfe",
    "client/good.cc": "// SPDX-License-Identifier: Apache-2.0\n",
    "client/late.cc": "\n\n\n\n// SPDX-License-Identifier: Apache-2.0\n",
    "loadtest/papers/lz77/no_text.cc": "// SPDX-License-Identifier: GPL-3.0-or-later\n",
    "server/wrong.cc": "// SPDX-License-Identifier: Apache-2.0\n",
}
EXPECTED = [
    "client/late.cc: no SPDX",
    "loadtest/papers/lz77/no_text.cc: GPL-3.0-or-later has no text",
    "server/wrong.cc: Apache-2.0, but",
    "gone/* matches no file",
]

if __name__ == "__main__":
    run_check("spdx_test", check, BAD_SAMPLE, EXPECTED)
