#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the examples and runs them: against quired, and against a server that fails at first.

Needs protoc, go, mvn, java, cargo and npm, and their registries. Builds into
BUILD/examples.

usage: examples_test.py QUIRED
"""
import concurrent.futures
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc

SOURCE = pathlib.Path(__file__).resolve().parent
ROOT = SOURCE.parents[1]
sys.path.insert(0, str(ROOT / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from live_server import MESSAGE_SIZE_OPTIONS, LiveServer, make_stubs, write_corpus

BUILD = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "examples"
PROTO = str(ROOT / "proto")
# For code generators, and for JavaScript, which reads the protos when it runs.
ENVIRONMENT = {**os.environ, "QUIRE_PROTO": PROTO}
# Versions of code generators, which are no dependencies of an example.
GO_TOOLS = ["google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
            "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2"]
LARGE_SIZE = 9_000_000
RUN_SECONDS_MAX = 120
# Answers that an archive is being opened: more than the attempts without RetryInfo.
OPENING_COUNT = 8
SEED = 20261126


def run(command, directory, **variables):
    subprocess.run(command, check=True, cwd=directory, stdout=sys.stderr,
                   env={**ENVIRONMENT, **variables})


def copy_sources(language):
    """A copy below BUILD, which keeps what was built from it before."""
    directory = BUILD / language
    shutil.copytree(SOURCE / language, directory, dirs_exist_ok=True)
    return directory


def build_go():
    directory = copy_sources("go")
    tools = BUILD / "go-tools"
    for tool in GO_TOOLS:
        run(["go", "install", tool], directory, GOBIN=str(tools))
    run(["go", "generate"], directory, PATH=f"{tools}:{os.environ['PATH']}")
    run(["go", "vet", "."], directory)
    run(["go", "build", "-o", "read_documents", "."], directory)
    return [directory / "read_documents"]


def build_java():
    directory = copy_sources("java")
    run(["mvn", "-q", "-B", f"-Dquire.proto={PROTO}", "process-classes"], directory)
    target = directory / "target"
    return ["java", "-cp", f"{target}/classes:{target}/dependency/*", "example.ReadDocuments"]


def build_rust():
    directory = copy_sources("rust")
    run(["cargo", "build", "--quiet"], directory)
    return [directory / "target" / "debug" / "read_documents"]


def build_javascript():
    directory = copy_sources("javascript")
    run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], directory)
    return ["node", directory / "read_documents.js"]


def make_faulty_server(stubs, address):
    """A server that passes calls on to `address`, and fails each method at first.

    Returns (server, its address, the metadata quire-attempt of the calls by method, the
    metadata quire-archive of all calls).
    """
    channel = grpc.insecure_channel(address, options=MESSAGE_SIZE_OPTIONS)
    real = stubs.rpc.ArchiveStub(channel)
    attempts = {"Read": [], "ReadStream": [], "BatchRead": [], "GetArchive": []}
    routes = set()
    lock = threading.Lock()

    def count(method, context):
        with lock:
            metadata = dict(context.invocation_metadata())
            routes.add(metadata.get("quire-archive"))
            attempts[method].append(metadata.get("quire-attempt"))
            return len(attempts[method])

    def fail(context, code, reason):
        status = stubs.details.RpcStatus(code=code.value[0], message="as the test wants")
        retry = stubs.details.RpcRetryInfo()
        retry.retry_delay.nanos = 50_000_000
        for name, message in (
                ("ErrorInfo", stubs.details.RpcErrorInfo(reason=reason, domain="quire")),
                ("RetryInfo", retry)):
            status.details.add(type_url=f"type.googleapis.com/google.rpc.{name}",
                               value=message.SerializeToString())
        context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
        context.abort(code, "as the test wants")

    def forward(call, request, context):
        try:
            return call(request)
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata())
            context.abort(error.code(), error.details())

    class Faulty(stubs.rpc.ArchiveServicer):
        def GetArchive(self, request, context):
            if count("GetArchive", context) <= OPENING_COUNT:
                fail(context, grpc.StatusCode.UNAVAILABLE, "ARCHIVE_OPENING")
            return forward(real.GetArchive, request, context)

        def Read(self, request, context):
            if count("Read", context) <= 2:
                fail(context, grpc.StatusCode.UNAVAILABLE, "DRAINING")
            return forward(real.Read, request, context)

        def ReadStream(self, request, context):
            number = count("ReadStream", context)
            for message in real.ReadStream(request):
                yield message
                if number == 1:
                    fail(context, grpc.StatusCode.UNAVAILABLE, "DRAINING")

        def BatchRead(self, request_iterator, context):
            number = count("BatchRead", context)
            if number == 1:
                fail(context, grpc.StatusCode.RESOURCE_EXHAUSTED, "SERVER_BUSY")
            for message in real.BatchRead(request_iterator):
                if number > 2:
                    yield message
                    continue
                yield stubs.pb.BatchReadResponse(results=message.results[:1])
                fail(context, grpc.StatusCode.UNAVAILABLE, "DRAINING")

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8), options=MESSAGE_SIZE_OPTIONS)
    stubs.rpc.add_ArchiveServicer_to_server(Faulty(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}", attempts, routes


class ExamplesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        draw = random.Random(SEED)
        cls.documents = {f"page-{number:03}": draw.randbytes(draw.choice((0, 1, 300, 20_000)))
                         for number in range(300)}
        cls.documents["large"] = draw.randbytes(LARGE_SIZE)
        write_corpus(sorted(cls.documents.items()), f"{directory}/pages")
        subprocess.run([QUIRED, "build", "--quiet", "-o", f"{directory}/pages.quire",
                        f"{directory}/pages.tar"], check=True)
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [f"{directory}/pages.quire"]))
        cls.stubs = make_stubs(directory)
        BUILD.mkdir(parents=True, exist_ok=True)

    def expected(self, ids):
        """What the program prints."""
        lines = []
        for how, key in [("read", ids[0]), *(("batch", key) for key in ids)]:
            data = self.documents.get(key)
            lines.append(f"{how} {key} error DOCUMENT_NOT_FOUND" if data is None else
                         f"{how} {key} {len(data)} {hashlib.sha256(data).hexdigest()}")
        return lines

    def run_example(self, command, address, archive, ids):
        return subprocess.run([*map(str, command), address, archive, *ids], check=False,
                              capture_output=True, text=True, timeout=RUN_SECONDS_MAX,
                              env=ENVIRONMENT)

    def check(self, command, address, ids):
        done = self.run_example(command, address, "pages", ids)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines(), self.expected(ids))

    def check_example(self, command):
        draw = random.Random(SEED)
        many = draw.sample(sorted(self.documents), len(self.documents))
        self.check(command, self.server.address, [*many, "absent", many[0], ""])
        self.check(command, self.server.address, ["large", "page-001"])
        self.check(command, self.server.address, ["absent"])
        server, address, attempts, routes = make_faulty_server(self.stubs, self.server.address)
        try:
            self.check(command, address, ["page-002", "large", "absent", *many[:20]])
        finally:
            server.stop(None).wait()
        # None after ARCHIVE_OPENING, nor after RESOURCE_EXHAUSTED.
        self.assertEqual(attempts, {"Read": [None, "1", "2"], "ReadStream": [None, "1"],
                                    "BatchRead": [None, None, "1"],
                                    "GetArchive": [None] * (OPENING_COUNT + 1)})
        self.assertEqual(routes, {"pages"})
        # A server that is down is reported after few attempts.
        done = self.run_example(command, address, "pages", ["page-001"])
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("UNAVAILABLE", done.stderr.upper())
        # An error that ends the program is named.
        done = self.run_example(command, self.server.address, "other", ["page-001"])
        self.assertEqual(done.stdout, "read page-001 error ARCHIVE_NOT_FOUND\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ARCHIVE_NOT_FOUND", done.stderr)

    def test_go(self):
        self.check_example(build_go())

    def test_java(self):
        self.check_example(build_java())

    def test_rust(self):
        self.check_example(build_rust())

    def test_javascript(self):
        self.check_example(build_javascript())


if __name__ == "__main__":
    QUIRED = sys.argv.pop(1)
    unittest.main()
