#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the modules of the repository use each other in one direction only.

Reads the #include lines of all sources and the libraries of the CMake targets. A module
is the longest entry of MODULES that contains a file; it may use itself and the entries
listed for it. Tests, fuzz targets and benchmarks may use all of the component that they
test (server/storage, client/quire, ...). Directories in PRIVATE belong to one module, and
those named `testing` to tests; what is below the one at the top may use what the directory
that it mirrors (MIRRORED) may. LIBRARIES restricts foreign libraries in the same way.
"""
import re

from source_tree import read_text, run_check

FSST = "codecs/fsst"
ARCHIVE = "server/archive"
INGEST = "server/ingest"
REDACTION = "server/redaction"
STORAGE = "server/storage"
SERVICE = "server/service"
SERVICE_BELOW = ["codecs", ARCHIVE, STORAGE, "proto", f"{SERVICE}/base"]
MODULES = {
    "proto": [],
    "codecs/base": [],
    "codecs": ["codecs"],
    f"{FSST}/table": ["codecs/base"],
    f"{FSST}/decode": ["codecs/base", f"{FSST}/table"],
    f"{FSST}/encode": ["codecs/base", f"{FSST}/table"],
    f"{FSST}/training": ["codecs/base", f"{FSST}/table", f"{FSST}/encode"],
    f"{FSST}/block": ["codecs"],
    f"{ARCHIVE}/format": ["codecs"],
    f"{ARCHIVE}/files": ["codecs", f"{ARCHIVE}/format"],
    f"{ARCHIVE}/container": ["codecs", f"{ARCHIVE}/format"],
    f"{ARCHIVE}/captures": ["codecs", f"{ARCHIVE}/container", f"{ARCHIVE}/format"],
    f"{ARCHIVE}/deposits": ["codecs", f"{ARCHIVE}/container", f"{ARCHIVE}/format"],
    f"{ARCHIVE}/fields": ["codecs", f"{ARCHIVE}/container", f"{ARCHIVE}/format"],
    f"{ARCHIVE}/index": ["codecs", f"{ARCHIVE}/captures", f"{ARCHIVE}/container",
                         f"{ARCHIVE}/deposits", f"{ARCHIVE}/fields", f"{ARCHIVE}/format"],
    ARCHIVE: ["codecs", ARCHIVE],
    f"{INGEST}/sources": ["codecs", ARCHIVE],
    f"{INGEST}/testing": ["codecs", ARCHIVE, f"{INGEST}/sources"],
    f"{INGEST}/blocks": ["codecs", ARCHIVE],
    f"{INGEST}/text": ["codecs", ARCHIVE, f"{INGEST}/blocks", f"{INGEST}/sources"],
    f"{INGEST}/dictionary": ["codecs"],
    INGEST: ["codecs", ARCHIVE, INGEST],
    REDACTION: ["codecs", ARCHIVE, INGEST],
    f"{STORAGE}/base": ["codecs/base"],
    f"{STORAGE}/device": ["codecs/base", f"{STORAGE}/base"],
    f"{STORAGE}/scheduler": ["codecs/base", f"{STORAGE}/base"],
    f"{STORAGE}/cache": ["codecs/base", f"{STORAGE}/base"],
    f"{STORAGE}/fetch": ["codecs/base", f"{STORAGE}/base", f"{STORAGE}/cache",
                         f"{STORAGE}/device", f"{STORAGE}/scheduler"],
    f"{STORAGE}/model": ["codecs/base", f"{STORAGE}/device"],
    f"{STORAGE}/remote": ["codecs/base", f"{STORAGE}/base", f"{STORAGE}/device"],
    f"{STORAGE}/simulation": ["codecs/base", f"{STORAGE}/base", f"{STORAGE}/cache",
                              f"{STORAGE}/device", f"{STORAGE}/model",
                              f"{STORAGE}/scheduler"],
    STORAGE: ["codecs/base", STORAGE],
    f"{SERVICE}/base": ["codecs/base", "proto"],
    f"{SERVICE}/catalog": SERVICE_BELOW,
    f"{SERVICE}/limits": ["codecs", "proto", f"{SERVICE}/base", f"{STORAGE}/base"],
    f"{SERVICE}/security": ["codecs/base", "proto", f"{ARCHIVE}/files", f"{SERVICE}/base",
                            f"{SERVICE}/limits"],
    f"{SERVICE}/logging": ["codecs/base", f"{ARCHIVE}/files", f"{SERVICE}/base",
                           f"{SERVICE}/security"],
    f"{SERVICE}/metrics": [*SERVICE_BELOW, f"{SERVICE}/catalog", f"{SERVICE}/limits"],
    f"{SERVICE}/read": [*SERVICE_BELOW, f"{SERVICE}/catalog"],
    f"{SERVICE}/calls": [*SERVICE_BELOW, f"{SERVICE}/catalog", f"{SERVICE}/limits",
                         f"{SERVICE}/logging", f"{SERVICE}/metrics", f"{SERVICE}/read", f"{SERVICE}/security"],
    f"{SERVICE}/listen": ["codecs/base", "proto", f"{ARCHIVE}/files", f"{SERVICE}/limits"],
    f"{SERVICE}/scrub": [*SERVICE_BELOW, f"{SERVICE}/catalog", f"{SERVICE}/metrics"],
    SERVICE: [*SERVICE_BELOW, SERVICE],
    "server/planner": ["codecs", ARCHIVE, INGEST, f"{STORAGE}/base", f"{STORAGE}/device",
                       f"{STORAGE}/model", f"{STORAGE}/scheduler", f"{STORAGE}/simulation"],
    "server/commands": ["codecs", "server"],
    "server": ["codecs", "server", "proto"],
    "client/quire": ["codecs", "proto"],
    "client/quire/payload": ["codecs/base"],
    "client/quire/internal": ["codecs", "proto", "client/quire"],
    "client/quire/testing": ["codecs", "proto", "client/quire"],
    "client": ["codecs", "proto", "client/quire"],
    "loadtest": [],
    "loadtest/requests": ["codecs/base", "client/quire"],
    "loadtest/report": ["codecs/base", "client/quire", "proto", "loadtest/requests"],
    "loadtest/generator": ["codecs", "proto", "client/quire", "client",
                           "loadtest/requests", "loadtest/report"],
    "loadtest/papers": ["codecs", "loadtest/requests"],
    "loadtest/bench": ["codecs/base", "proto"],
    "deploy": [],
}
# Directory of testing/ -> the directory whose tests it serves.
MIRRORED = {"testing/archive": ARCHIVE, "testing/base": "codecs/base",
            "testing/codecs": "codecs", "testing/storage": STORAGE}
# Directory -> the modules that may use it; the load generator measures the parts of the library's
# calls.
PRIVATE = {"client/quire/internal": ["client/quire", "loadtest/generator"]}
TEST_SOURCE = re.compile(
    r"_(test|fuzz|benchmark)\.cc$|_test_|_testing\.|_fixture\.|(^|/)testing/")
TESTING = re.compile(r"(^|/)testing/")
# Commands and names of targets that are tests, or that only tests link.
TEST_COMMANDS = ("quire_test", "quire_fuzz", "quire_benchmark")
TEST_TARGET = re.compile(r"_(test|testing|fixture)$|_test_|_fake_")

# Restricted libraries: a pattern over "#include <...>" and over names of linked targets, the
# modules that may use them, and the reason.
LIBRARIES = [
    (re.compile(r"sdsl/|quire::sdsl"), ("server", "loadtest/papers/lz77"),
     "sdsl-lite is GPLv3"),
    (re.compile(r"grpc(pp)?/|gRPC::|quire_proto$|google/(protobuf|rpc)/"),
     ("server", "client", "proto", "loadtest"), "codecs know no network"),
    (re.compile(r"prometheus"), ("server",), "only the server has metrics"),
    (re.compile(r"toml\+\+|quire::toml"), ("server/commands",), "one configuration file"),
    (re.compile(r"spdlog"), (f"{SERVICE}/logging",), "all messages of the server go one way"),
    (re.compile(r"^archive(_entry)?\.h$|LibArchive"), (INGEST,),
     "only ingest reads foreign archives"),
    (re.compile(r"liburing|quire::uring"), ("server/storage",),
     "only storage talks to devices"),
    (re.compile(r"systemd/|quire::systemd"), ("server/commands",),
     "only the program has a service manager"),
    (re.compile(r"microhttpd"), (SERVICE, "client/http"),
     "only the metrics port and the gateway speak HTTP/1"),
    (re.compile(r"openssl/|OpenSSL::"),
     (SERVICE, f"{STORAGE}/remote", "client", "loadtest", f"{ARCHIVE}/files"),
     "only the two ends of a connection know TLS, and files their SHA-256"),
    (re.compile(r"curl/|CURL::"), (f"{STORAGE}/remote",),
     "only object stores are reached by libcurl"),
    (re.compile(r"CLI/|quire::cli11|quire_manual$|"
                r"codecs/base/(completion|manual|number_range|program_main)\.h"),
     ("server", "client", "loadtest", "codecs/base"), "codecs have no command line"),
]
# Codecs are pure functions over bytes, except their tests and the base's services for upper
# modules: the mutex, the owner of a descriptor, the clock, the parser of times, the progress
# meter, the lock of a socket's path, and figures of the process. Huge pages are a hint to the kernel, and change no result.
IMPURE = re.compile(
    r"^(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|"
    r"codecs/base/(monotonic_time|mutex|unique_fd|duration_text|process_figures|progress_meter|socket_path_claim)\.h|fstream|filesystem|fcntl\.h|unistd\.h|sys/.*|absl/time/.*|"
    r"absl/synchronization/.*)$")
NEED_NOT_BE_PURE = re.compile(
    r"_(test|fuzz)\.cc$|(^|/)testing/|"
    r"^codecs/base/((monotonic_time|mutex|unique_fd)\.h|(child_process|duration_text|process_figures|progress_meter|socket_path_claim)\.(h|cc)|(memory/huge_pages|program_main)\.cc)$")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
TARGET = re.compile(
    r"\b(quire_library|quire_header_library|quire_binary|quire_test|quire_fuzz|quire_benchmark|"
    r"add_library|add_executable|target_link_libraries)\s*\(\s*([^\s()]+)([^()]*)\)")
SECTIONS = ("SOURCES", "LABELS", "TIMEOUT", "GRPC")


def mirrored(path):
    """Returns the path that has the rights of `path`: its own, unless it is below testing/."""
    for directory, served in MIRRORED.items():
        if is_under(path, directory):
            return served + path[len(directory):]
    return path


def module_of(path):
    path = mirrored(path)
    under = [module for module in MODULES if is_under(path, module)]
    return max(under, key=len, default=None)


def is_under(path, directory):
    return path == directory or path.startswith(directory + "/")


def component_of(module):
    """Returns the modules that the tests of a module may use."""
    return "codecs" if is_under(module, "codecs") else "/".join(module.split("/")[:2])


def may_use(module, used_module, is_test):
    for directory, users in PRIVATE.items():
        if is_under(used_module, directory) and not any(is_under(module, u) for u in users):
            return False
    allowed = [module, *MODULES[module]] + ([component_of(module)] if is_test else [])
    return any(is_under(used_module, entry) for entry in allowed)


def library_fault(path, used):
    """Returns why the file must not use that library; None if it may."""
    for pattern, modules, reason in LIBRARIES:
        if pattern.search(used) and not mirrored(path).startswith(tuple(r + "/" for r in modules)):
            return reason
    return None


def check_includes(path, text, files):
    module = module_of(path)
    for match in INCLUDE.finditer(text):
        used = match.group(1) or match.group(2)
        where = f"{path}:{text.count(chr(10), 0, match.start(1 if match.group(1) else 2)) + 1}"
        fault = library_fault(path, used)
        if fault:
            yield f"{where}: {used}: {fault}"
        used_module = module_of(used)
        ours = used_module is not None and (match.group(1) or used in files)
        is_test = TEST_SOURCE.search(path) is not None
        if ours and not may_use(module, used_module, is_test):
            yield f"{where}: {module} must not use {used}"
        elif ours and TESTING.search(used) and not is_test:
            yield f"{where}: {used}: only tests use it"
        elif match.group(1) and not ours and "/" not in used and used in {
                f.rpartition("/")[2] for f in files}:
            yield f"{where}: {used}: our headers are named from the root of the tree"
        if (module.startswith("codecs") and not NEED_NOT_BE_PURE.search(path)
                and IMPURE.match(used)):
            yield f"{where}: {used}: codecs are pure functions over bytes"


def parse_targets(path, text):
    """Yields (target, libraries that it links, is it defined here, is it a test)."""
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
        is_test = (command in TEST_COMMANDS or TEST_TARGET.search(name) is not None
                   or TESTING.search(path) is not None)
        yield name, links, command != "target_link_libraries", is_test


def check_targets(root, files):
    targets = []
    home = {}
    for_tests = set()
    for path in files:
        if path.rpartition("/")[2] == "CMakeLists.txt" and "/" in path:
            for name, links, defined, is_test in parse_targets(
                    path, (root / path).read_text()):
                targets.append((path, name, links, is_test))
                if defined and "$" not in name:
                    home[name] = module_of(path)
                    if TESTING.search(path):
                        for_tests.add(name)
    for path, name, links, is_test in targets:
        module = home.get(name, module_of(path))
        for link in links:
            if link in home and not may_use(module, home[link], is_test):
                yield f"{path}: {name} of {module} must not link {link} of {home[link]}"
            elif link in for_tests and not is_test:
                yield f"{path}: {name} links {link}: only tests link it"
            fault = library_fault(path, link)
            if fault:
                yield f"{path}: {name} links {link}: {fault}"


def check(root, files):
    complaints = []
    for path in files:
        if path.endswith((".cc", ".h", ".c")):
            if module_of(path) is None:
                complaints.append(f"{path}: this directory has no entry in MODULES")
            else:
                complaints += check_includes(path, read_text(root / path) or "", files)
    return complaints + list(check_targets(root, files))


BAD_SAMPLE = {
    "attic/a.cc": "",
    "client/quire/reader.cc": '#include <vector>\n#include "server/archive/archive.h"\n',
    "client/CMakeLists.txt":
        "quire_library(quire_client\n  SOURCES a.cc # server_x\n  DEPS quire_server absl::status)\n",
    "codecs/zlib/clock.cc": "#include <chrono>\n#include <sdsl/sd_vector.hpp>\n",
    "codecs/zlib/clock_test.cc": "#include <chrono>\n",
    "server/CMakeLists.txt":
        "quire_library(quire_server SOURCES a.cc DEPS quire::sdsl quire_proto)\n",
    "server/archive/archive.h": '#include "codecs/block_codec.h"\n',
    "server/archive/sibling.cc": '#include "archive.h"\n',
    "server/storage/a.cc":
        '#include "codecs/base/positions.h"\n#include "server/archive/archive.h"\n',
    "server/archive/CMakeLists.txt":
        "quire_library(quire_archive SOURCES a.cc DEPS quire_samples)\n",
    "server/storage/cache/b.cc": '#include "server/storage/device/device.h"\n',
    "server/storage/cache/b_test.cc": '#include "server/storage/device/device.h"\n',
    "client/cli/inside.cc": '#include "client/quire/internal/connection.h"\n',
    "client/quire/c.cc": '#include "client/quire/testing/fake_server.h"\n',
    "testing/archive/CMakeLists.txt":
        "quire_library(quire_samples SOURCES a.cc DEPS quire::sdsl quire_server)\n",
    "testing/archive/samples.cc":
        '#include "server/archive/archive.h"\n#include "server/service/server.h"\n',
}
EXPECTED = [
    "attic/a.cc: this directory",
    "client/cli/inside.cc:1: client must not use client/quire/internal/connection.h",
    "client/quire/c.cc:1: client/quire/testing/fake_server.h: only tests",
    "client/quire/reader.cc:2: client/quire must not use server/archive/archive.h",
    "codecs/zlib/clock.cc:1: chrono: codecs are pure",
    "codecs/zlib/clock.cc:2: sdsl/sd_vector.hpp: sdsl-lite is GPLv3",
    "server/archive/sibling.cc:1: archive.h: only ingest",
    "server/archive/sibling.cc:1: archive.h: our headers",
    "server/storage/a.cc:2: server/storage must not use server/archive/archive.h",
    "server/storage/cache/b.cc:1: server/storage/cache must not use server/storage/device",
    "testing/archive/samples.cc:2: server/archive must not use server/service/server.h",
    "client/CMakeLists.txt: quire_client of client must not link quire_server of server",
    "server/archive/CMakeLists.txt: quire_archive links quire_samples: only tests",
    "testing/archive/CMakeLists.txt: quire_samples of server/archive must not link quire_server",
]

if __name__ == "__main__":
    run_check("layers_test", check, BAD_SAMPLE, EXPECTED)
