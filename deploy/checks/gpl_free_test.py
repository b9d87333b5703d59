#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no binary of client/, loadtest/ or codecs/ links sdsl-lite or the server,
except paper_extraction and loadtest/papers/lz77, which it measures and which are not installed.

Reads the inputs of each link from build.ninja, where CMake lists them transitively.

usage: gpl_free_test.py BUILD_DIRECTORY
"""
import pathlib
import re
import sys

FREE = re.compile(r"^(client|loadtest(?!/papers/(paper_extraction$|lz77/))|codecs)/")
FORBIDDEN = re.compile(r"(^|/)libsdsl[.\w-]*$|^(server|testing/(archive|storage))/|^-lsdsl$")
# The first object file identifies the directory of a binary.
EDGE = re.compile(r"^build [^:]*: CXX_EXECUTABLE_LINKER\w+ (\S+)/CMakeFiles/(.+?)\.dir/")


def check_ninja(text):
    """Returns (checked binaries, complaints)."""
    binaries, complaints = [], []
    output = None
    for line in text.splitlines():
        if line.startswith("build "):
            edge = EDGE.match(line)
            output = "/".join(edge.groups()) if edge else None
            output = output if output and FREE.match(output) else None
            if output:
                binaries.append(output)
        elif output and line.startswith("  LINK_LIBRARIES ="):
            complaints += [f"{output} links {word}" for word in line.split("=", 1)[1].split()
                           if FORBIDDEN.search(word)]
    return binaries, complaints


BAD_SAMPLE = """\
build bin/quired: CXX_EXECUTABLE_LINKER__quired_RelWithDebInfo server/CMakeFiles/quired.dir/a.o
  LINK_LIBRARIES = server/libquire_archive.a  /usr/lib/libsdsl.so
build bin/quire: CXX_EXECUTABLE_LINKER__quire_Debug client/cli/CMakeFiles/quire.dir/a.o | a
  LINK_LIBRARIES = client/libquire_client.a  server/libquire_archive.a  /usr/lib/libsdsl.so
"""


def main():
    binaries, complaints = check_ninja(BAD_SAMPLE)
    if binaries != ["client/cli/quire"] or len(complaints) != 2:
        sys.exit(f"gpl_free_test: misreads its own bad sample: {binaries} {complaints}")
    text = (pathlib.Path(sys.argv[1]) / "build.ninja").read_text()
    binaries, complaints = check_ninja(text)
    if not any(name.startswith("client/") for name in binaries):
        sys.exit("gpl_free_test: build.ninja links no binary of client/")
    print(*complaints, sep="\n", end="\n" if complaints else "")
    if complaints:
        sys.exit(f"gpl_free_test: {len(complaints)} faults")
    print(f"gpl_free_test: {len(binaries)} binaries, no faults")


if __name__ == "__main__":
    main()
