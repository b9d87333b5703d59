#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Base of the hostile tests: a real quired, checked after each test."""
import pathlib
import random
import sys
import tempfile
import time
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_setup import AS_IT_IS, build_archive
from live_server import (LiveServer, error_of, make_documents, make_stubs,
                         raise_file_limit, write_corpus)
from raw_http2 import RawConnection

SEED = 20261122
MEMORY_MIB_DEFAULT = 256
# Size limit of messages in the server.
REQUEST_SIZE_MAX = 2 << 20
BUSY_SECONDS_MAX = 60
OPEN_FILES_MAX = 4_000


class HostileCase(unittest.TestCase):
    """One server for each class of tests; checks after each test that it works as before."""
    SERVER_FLAGS = ()
    # Precedes quired on the command line.
    SERVER_COMMAND = ()
    # Replaces the command line's value.
    MEMORY_MIB = None
    # From the command line.
    quired = None
    asserted_memory_mib = None

    @classmethod
    def make_documents(cls):
        # Incompressible documents after the text: a stalled stream then holds back more than any
        # socket buffer.
        draw = random.Random(SEED)
        return make_documents(500, SEED) + [
            (f"zz-large-{n}", draw.randbytes(8 << 20)) for n in range(4)]

    @classmethod
    def build(cls, source, *options):
        """Builds the archive of a tar. That is not what these tests are of, and takes long
        under a sanitizer."""
        build_archive(cls.quired, cls.archive_path, [source],
                      ["--codec", "zstd:fast", *AS_IT_IS, *options])

    @classmethod
    def write_archive(cls):
        """Sets `documents` and `text`, the content of the archive."""
        cls.documents = sorted(cls.make_documents())
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{cls.directory}/pages")
        cls.build(f"{cls.directory}/pages.tar")

    @classmethod
    def server_flags(cls):
        """Options of `quired serve`. Called once, when `directory` exists."""
        return cls.SERVER_FLAGS

    @classmethod
    def honest_channel(cls):
        """A connection of a client that may read the archive."""
        return cls.server.channel()

    @classmethod
    def setUpClass(cls):
        cls.raw_connections = []
        raise_file_limit(OPEN_FILES_MAX)
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.memory_mib = cls.MEMORY_MIB or cls.asserted_memory_mib or MEMORY_MIB_DEFAULT
        cls.archive_path = f"{cls.directory}/pages.quire"
        cls.write_archive()
        cls.stubs = make_stubs(cls.directory)
        cls.server = cls.enterClassContext(LiveServer(
            cls.quired, [f"pages={cls.archive_path}"],
            "--memory", f"{cls.memory_mib}MiB", *cls.server_flags(),
            command=cls.SERVER_COMMAND))
        cls.channel = cls.enterClassContext(cls.honest_channel())
        cls.archive = cls.stubs.rpc.ArchiveStub(cls.channel)
        cls.limits = cls.archive.ListArchives(cls.stubs.pb.ListArchivesRequest()).limits

    def tearDown(self):
        pb = self.stubs.pb
        while self.raw_connections:
            self.raw_connections.pop().close()
        self.assertIsNone(self.server.process.poll(), "the server has ended")
        # Otherwise leftovers of this test would block the next one's reads.
        self.wait_until("quire_in_flight_bytes 0\n")
        size = min(9_999, len(self.text))
        offset = min(70_000, len(self.text) - size)
        with self.honest_channel() as channel:
            response = self.read_when_not_busy(
                self.stubs.rpc.ArchiveStub(channel), pb.ReadRequest(
                    archive="pages", range=pb.ByteRange(offset=offset, size_bytes=size)))
        self.assertEqual(response.data, self.text[offset:offset + size])
        self.assertTrue(self.server.is_ready())
        if self.asserted_memory_mib:
            self.assertLess(self.server.resident_peak_bytes(), self.memory_mib << 20)

    def read_when_not_busy(self, archive, request):
        """Reads like an honest client: retries when a busy server says so."""
        until = time.monotonic() + BUSY_SECONDS_MAX
        while True:
            try:
                return archive.Read(request, timeout=BUSY_SECONDS_MAX)
            except grpc.RpcError as error:
                _, reason, _, retry = error_of(self.stubs, error)
                if reason != "SERVER_BUSY" or not retry or time.monotonic() > until:
                    raise
            time.sleep(0.1)

    def wait_until(self, *lines):
        """Waits until the server's metrics have all of these lines."""
        until = time.monotonic() + BUSY_SECONDS_MAX
        while not all(line in (metrics := self.server.metrics()) for line in lines):
            self.assertLess(time.monotonic(), until, metrics)
            time.sleep(0.1)

    def fails(self, call, code, reason):
        """Runs the call, or the stream to its end, and checks its error."""
        with self.assertRaises(grpc.RpcError) as caught:
            response = call()
            if hasattr(response, "__next__"):
                for _ in response:
                    pass
        found = error_of(self.stubs, caught.exception)
        self.assertEqual(found[:2], (code, reason), found)
        return found

    def read_range(self, offset, size_bytes, archive="pages"):
        pb = self.stubs.pb
        return self.archive.Read(pb.ReadRequest(
            archive=archive, range=pb.ByteRange(offset=offset, size_bytes=size_bytes)))

    def connect_raw(self, **options):
        """Stays open until the end of the test."""
        self.raw_connections.append(RawConnection(self.server.address, **options))
        return self.raw_connections[-1]

    def batch(self, messages):
        return self.archive.BatchRead(iter(messages), timeout=300)
