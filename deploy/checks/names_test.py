#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks house rules about whole files.

A file's name is unique, so that it can be named without its directory. There are no notes
to oneself, no tabs, no blanks at the ends of lines, and each directory of sources has a
README.md, itself or above it. Sources that a document names exist. Headers that one
program may include define no two types of one name, as the linker would use the code of
one of them for both.
"""
import re

from source_tree import read_text, run_check

SHARED_NAMES = {"README.md", "NOTES.md", "CMakeLists.txt", "Cargo.toml", "main.rs", ".clang-tidy",
                "kustomization.yaml"}
SOURCE_SUFFIXES = (".cc", ".h", ".c", ".py", ".sh", ".proto", ".cmake")
PROSE_SUFFIXES = (".md", ".txt", ".toml", ".yaml")
NOTE_TO_SELF = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")

# Keeps the string's memory.
ASSIGNED_EMPTY_STRING = re.compile(r"^\s+[\w.>-]+ = std::string\(\);$")
# A source by its name, with or without directories, in backquotes.
NAMED_SOURCE = re.compile(r"`([\w./-]*\w\.(?:cc|h|py|sh|proto|cmake))`")
# A type that a header defines for other files.
DEFINED_TYPE = re.compile(r"^(?:struct|class) (\w+)(?: final)?(?: : [^;{]*)?\s*\{", re.MULTILINE)
# Modules that no program links together.
APART = {"client", "server"}


def twice_defined(types):
    """`types`: name -> headers that define it."""
    complaints = []
    for name, paths in sorted(types.items()):
        for index, one in enumerate(paths):
            complaints += [f"{one}: {name} is defined in {other}, too" for other in paths[:index]
                           if {one.split("/")[0], other.split("/")[0]} != APART]
    return complaints


def check_text(path, text):
    complaints = []
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if NOTE_TO_SELF.search(line):
            complaints.append(f"{path}:{number}: a note to oneself")
        if ASSIGNED_EMPTY_STRING.search(line):
            complaints.append(f"{path}:{number}: keeps the string's memory; call clear(), or "
                              "FreeMemory() to free it")
        if line != line.rstrip():
            complaints.append(f"{path}:{number}: blanks at the end of the line")
        if "\t" in line and path.endswith(SOURCE_SUFFIXES):
            complaints.append(f"{path}:{number}: a tab")
    if text and not text.endswith("\n"):
        complaints.append(f"{path}: the last line does not end")
    return complaints


def check(root, files):
    complaints = []
    by_name = {}
    directories = set()
    types = {}
    names = {path.rpartition("/")[2] for path in files}
    for path in files:
        directory, _, name = path.rpartition("/")
        if name not in SHARED_NAMES and path.endswith(SOURCE_SUFFIXES + PROSE_SUFFIXES):
            by_name.setdefault(name, []).append(path)
        if path.endswith((".cc", ".h", ".proto")):
            directories.add(directory)
        if path.startswith("LICENSES/"):
            continue
        text = read_text(root / path)
        if text is not None and path.endswith(SOURCE_SUFFIXES + PROSE_SUFFIXES):
            complaints += check_text(path, text)
        if text is not None and path.endswith(".h") and "testing" not in path.split("/"):
            for name in DEFINED_TYPE.findall(text):
                types.setdefault(name, []).append(path)
        if text is not None and path.endswith(".md"):
            complaints += [f"{path}: names {name}, which does not exist"
                           for name in NAMED_SOURCE.findall(text)
                           if name.rpartition("/")[2] not in names]
    for name, paths in sorted(by_name.items()):
        if len(paths) > 1:
            complaints.append(f"{name}: the same name {len(paths)} times: {' '.join(paths)}")
    complaints += twice_defined(types)
    for directory in sorted(directories):
        parts = directory.split("/")
        above = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
        if not any(f"{f}/README.md" in files for f in above):
            complaints.append(f"{directory}: no README.md here or above")
    return complaints


BAD_SAMPLE = {
    "README.md": "fine\n",
    "client/README.md": "`long.cc`, `client/twice.h`, `gone.h`\n",
    "client/long.cc": "//\n",
    "client/twice.h": "// TO" "DO later\n",
    "server/twice.h": "int a; \n\tint b;",
    "client/one.h": "struct Both {\n};\nclass Apart {\n};\nclass Declared;\n",
    "codecs/other.h": "class Both final : public Base {\n};\nclass Declared;\n",
    "codecs/README.md": "fine\n",
    "server/third.h": "class Apart {\n};\n",
}
EXPECTED = [
    "client/README.md: names gone.h",
    "client/twice.h:1: a note",
    "server/twice.h:1: blanks",
    "server/twice.h:2: a tab",
    "server/twice.h: the last line",
    "twice.h: the same name 2 times",
    "codecs/other.h: Both is defined in client/one.h",
    "server: no README.md",
]

if __name__ == "__main__":
    run_check("names_test", check, BAD_SAMPLE, EXPECTED)
