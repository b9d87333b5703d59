#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rooms of the repository use each other in one direction only.

Read from the #include lines of all sources and from what the CMake targets
link. A room is the longest entry of ROOMS that a file lies under; what it may
use is itself and the rooms listed. The same for libraries that are not ours:
LIBRARIES says who may use those that not everyone may.
"""
import re

from source_tree import read_text, run_check

CODECS = ["codecs/base", "codecs"]
SERVER = ["server/archive", "server/ingest", "server/storage", "server/service",
          "server/verbs"]
ROOMS = {
    "proto": [],
    "codecs/base": [],
    "codecs": CODECS,
    "server/archive": CODECS,
    "server/ingest": [*CODECS, "server/archive"],
    # And one header of the archive: see SINGLE_HEADERS.
    "server/storage": ["codecs/base"],
    "server/service": [*CODECS, "server/archive", "server/storage", "proto"],
    "server/verbs": [*CODECS, *SERVER, "deploy/manual"],
    "server": [*CODECS, *SERVER, "proto", "deploy/manual"],
    "client/quire": [*CODECS, "proto"],
    "client": [*CODECS, "proto", "client/quire", "deploy/manual"],
    "loadtest": [],
    "loadtest/requests": ["codecs/base", "client/quire"],
    "loadtest/report": ["codecs/base", "client/quire", "proto", "loadtest/requests"],
    "loadtest/generator": [*CODECS, "proto", "client/quire", "client", "deploy/manual",
                           "loadtest/requests", "loadtest/report"],
    "loadtest/codec_bench": [*CODECS, "deploy/manual", "loadtest/requests"],
    "loadtest/api_limit": ["codecs/base", "proto", "deploy/manual"],
    "deploy/manual": [],
    "deploy": [],
}
SINGLE_HEADERS = {"server/storage": ["server/archive/positions.h"]}

# What a room may not use: a pattern over "#include <...>" and over names of
# linked targets, the rooms that may all the same, and why.
LIBRARIES = [
    (re.compile(r"sdsl/|quire::sdsl"), ("server", "codecs/lz77"),
     "sdsl-lite is GPLv3"),
    (re.compile(r"grpc(pp)?/|gRPC::|quire_proto$|google/(protobuf|rpc)/"),
     ("server", "client", "proto", "loadtest"), "codecs know no network"),
    (re.compile(r"prometheus"), ("server",), "only the server has metrics"),
    (re.compile(r"^archive(_entry)?\.h$|LibArchive"), ("server/ingest",),
     "only ingest reads foreign archives"),
    (re.compile(r"liburing|quire::uring"), ("server/storage",),
     "only storage talks to devices"),
    (re.compile(r"CLI/|quire::cli11"), ("server", "client", "loadtest", "deploy/manual"),
     "codecs have no command line"),
]
# Codecs are pure functions over bytes; their tests need not be, nor the mutex
# that the base lends to the rooms above.
IMPURE = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|"
    r"codecs/base/mutex\.h|fstream|filesystem|fcntl\.h|unistd\.h|sys/.*|absl/time/.*|"
    r"absl/synchronization/.*)$")
NEED_NOT_BE_PURE = re.compile(
    r"_(test|fuzz|benchmark)\.cc$|_test_|test_util|^codecs/base/mutex\.h$")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
TARGET = re.compile(
    r"\b(quire_library|quire_binary|quire_test|quire_fuzz|quire_benchmark|"
    r"add_library|add_executable|target_link_libraries)\s*\(\s*([^\s()]+)([^()]*)\)")
SECTIONS = ("SOURCES", "LABELS", "TIMEOUT", "PCH")


def room_of(path):
    under = [room for room in ROOMS if path == room or path.startswith(room + "/")]
    return max(under, key=len, default=None)


def may_use(room, used_room):
    return used_room == room or used_room in ROOMS[room]


def library_fault(path, used):
    """Why the file must not use that library; None if it may."""
    for pattern, rooms, reason in LIBRARIES:
        if pattern.search(used) and not path.startswith(tuple(r + "/" for r in rooms)):
            return reason
    return None


def check_includes(path, text, files):
    room = room_of(path)
    for match in INCLUDE.finditer(text):
        used = match.group(1) or match.group(2)
        where = f"{path}:{text.count(chr(10), 0, match.start(1 if match.group(1) else 2)) + 1}"
        fault = library_fault(path, used)
        if fault:
            yield f"{where}: {used}: {fault}"
        used_room = room_of(used)
        ours = used_room is not None and (match.group(1) or used in files)
        if ours and not may_use(room, used_room) and used not in SINGLE_HEADERS.get(room, []):
            yield f"{where}: {room} must not use {used}"
        elif match.group(1) and not ours and "/" not in used and used in {
                f.rpartition("/")[2] for f in files}:
            yield f"{where}: {used}: our headers are named from the root of the tree"
        if (room.startswith("codecs") and not NEED_NOT_BE_PURE.search(path)
                and IMPURE.match(used)):
            yield f"{where}: {used}: codecs are pure functions over bytes"


def parse_targets(path, text):
    """(target, libraries that it links, is it defined here) of a CMakeLists.txt."""
    text = re.sub(r"#[^\n]*", "", text)
    for command, name, rest in TARGET.findall(text):
        words = rest.split()
        if command == "target_link_libraries":
            links = [w for w in words if w not in ("PUBLIC", "PRIVATE", "INTERFACE")]
        elif "DEPS" in words:
            links = words[words.index("DEPS") + 1:]
            ends = [i for i, word in enumerate(links) if word in SECTIONS]
            links = links[:ends[0]] if ends else links
        else:
            links = []
        yield name, links, command != "target_link_libraries"


def check_targets(root, files):
    targets = []
    home = {}
    for path in files:
        if path.rpartition("/")[2] == "CMakeLists.txt" and "/" in path:
            for name, links, defined in parse_targets(path, (root / path).read_text()):
                targets.append((path, name, links))
                if defined:
                    home[name] = room_of(path)
    for path, name, links in targets:
        room = home.get(name, room_of(path))
        for link in links:
            if link in home and not may_use(room, home[link]):
                yield f"{path}: {name} of {room} must not link {link} of {home[link]}"
            fault = library_fault(path, link)
            if fault:
                yield f"{path}: {name} links {link}: {fault}"


def check(root, files):
    complaints = []
    for path in files:
        if path.endswith((".cc", ".h", ".c")):
            if room_of(path) is None:
                complaints.append(f"{path}: this folder has no entry in ROOMS")
            else:
                complaints += check_includes(path, read_text(root / path) or "", files)
    return complaints + list(check_targets(root, files))


BAD_SAMPLE = {
    "attic/a.cc": "",
    "client/quire/reader.cc": '#include <vector>\n#include "server/archive/archive.h"\n',
    "client/CMakeLists.txt":
        "quire_library(quire_client\n  SOURCES a.cc # server_x\n  DEPS quire_server absl::status)\n",
    "codecs/block/clock.cc": "#include <chrono>\n#include <sdsl/sd_vector.hpp>\n",
    "codecs/block/clock_test.cc": "#include <chrono>\n",
    "server/CMakeLists.txt":
        "quire_library(quire_server SOURCES a.cc DEPS quire::sdsl quire_proto)\n",
    "server/archive/archive.h": '#include "codecs/block_codec.h"\n',
    "server/archive/sibling.cc": '#include "archive.h"\n',
    "server/storage/a.cc":
        '#include "server/archive/positions.h"\n#include "server/archive/archive.h"\n',
}
EXPECTED = [
    "attic/a.cc: this folder",
    "client/quire/reader.cc:2: client/quire must not use server/archive/archive.h",
    "codecs/block/clock.cc:1: chrono: codecs are pure",
    "codecs/block/clock.cc:2: sdsl/sd_vector.hpp: sdsl-lite is GPLv3",
    "server/archive/sibling.cc:1: archive.h: only ingest",
    "server/archive/sibling.cc:1: archive.h: our headers",
    "server/storage/a.cc:2: server/storage must not use server/archive/archive.h",
    "client/CMakeLists.txt: quire_client of client must not link quire_server of server",
]

if __name__ == "__main__":
    run_check("layers_test", check, BAD_SAMPLE, EXPECTED)
