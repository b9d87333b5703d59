#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What no honest client would send, against a real quired.

Each request gets the documented code and reason, or is bounded in memory; and
after each the server answers an honest read as before.

usage: hostile_test.py QUIRED [MEMORY_MIB]
Without MEMORY_MIB, resident memory is not held against --memory (a sanitizer's
own is part of it).
"""
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import grpc

from live_server import (LiveServer, error_of, make_documents, make_stubs,
                         raise_file_limit, write_corpus)

SEED = 20261122
MEMORY_MIB_DEFAULT = 256
U64_MAX = 2**64 - 1
IDLE_CONNECTIONS = 1_000
STALLED_STREAMS = 200
# After this the server of StalledClientsTest gives up on a client that takes
# nothing. That of the other tests has its default, which no slow machine makes
# them reach.
STALL_SECONDS = 2
BUSY_SECONDS_MAX = 60


class HostileCase(unittest.TestCase):
    """A server of its own for each class of tests; checks after each test that
    it is as well as before."""
    SERVER_FLAGS = ()

    @classmethod
    def setUpClass(cls):
        raise_file_limit(4 * IDLE_CONNECTIONS)
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        # Incompressible documents after the text: what a stalled stream holds
        # back is then more than any socket buffer.
        draw = random.Random(SEED)
        cls.documents = sorted(make_documents(500, SEED) + [
            (f"zz-large-{n}", draw.randbytes(8 << 20)) for n in range(4)])
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{folder}/pages")
        subprocess.run([QUIRED, "build", "-o", f"{folder}/pages.quire", "--codec", "zstd",
                        f"{folder}/pages.tar"], check=True)
        cls.stubs = make_stubs(folder)
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [f"pages={folder}/pages.quire"],
            "--memory", f"{MEMORY_MIB or MEMORY_MIB_DEFAULT}MiB",
            *cls.SERVER_FLAGS))
        cls.channel = cls.enterClassContext(cls.server.channel())
        cls.archive = cls.stubs.rpc.ArchiveStub(cls.channel)
        cls.limits = cls.archive.ListArchives(cls.stubs.pb.ListArchivesRequest()).limits

    def tearDown(self):
        pb = self.stubs.pb
        self.assertIsNone(self.server.process.poll(), "the server has ended")
        # Or what this test left behind would keep the next one's reads out.
        self.wait_until("quire_in_flight_bytes 0\n")
        with self.server.channel() as channel:
            response = self.read_when_not_busy(
                self.stubs.rpc.ArchiveStub(channel),
                pb.ReadRequest(archive="pages", range=pb.ByteRange(offset=70_000, size_bytes=9_999)))
        self.assertEqual(response.data, self.text[70_000:79_999])
        if MEMORY_MIB:
            self.assertLess(self.server.resident_peak_bytes(), MEMORY_MIB << 20)

    def read_when_not_busy(self, archive, request):
        """What an honest client does: comes back when a busy server says so."""
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
        """Until the server's metrics have all of these lines."""
        until = time.monotonic() + BUSY_SECONDS_MAX
        while not all(line in (metrics := self.server.metrics()) for line in lines):
            self.assertLess(time.monotonic(), until, metrics)
            time.sleep(0.1)

    def fails(self, call, code, reason):
        """Runs the call, or the stream to its end, and checks how it fails."""
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

    def batch(self, messages):
        return self.archive.BatchRead(iter(messages), timeout=300)


class HostileTest(HostileCase):
    def test_ranges_past_the_end_and_past_64_bits(self):
        end = len(self.text)
        for offset, size in ((0, end + 1), (end, 1), (end + 1, 0), (1, end), (0, U64_MAX),
                             (U64_MAX, 2), (U64_MAX, U64_MAX), (U64_MAX, 1), (2**63, 2**63)):
            with self.subTest(offset=offset, size=size):
                self.fails(lambda o=offset, s=size: self.read_range(o, s),
                           grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")
                pb = self.stubs.pb
                request = pb.ReadRequest(
                    archive="pages", range=pb.ByteRange(offset=offset, size_bytes=size))
                self.fails(lambda r=request: self.archive.ReadStream(r),
                           grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")
        within = self.stubs.pb.DocumentName(
            ordinal=0, range=self.stubs.pb.ByteRange(offset=U64_MAX, size_bytes=2))
        self.fails(lambda: self.archive.Read(self.stubs.pb.ReadRequest(
            archive="pages", document=within)),
                   grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")

    def test_a_read_over_the_limit_is_refused_and_can_be_streamed(self):
        pb = self.stubs.pb
        size = self.limits.read_size_bytes_max + 1
        self.assertGreater(len(self.text), size, "the limit is larger than this test's archive")
        _, _, _, retry = self.fails(lambda: self.read_range(0, size),
                                    grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED")
        self.assertFalse(retry)
        pieces = list(self.archive.ReadStream(pb.ReadRequest(
            archive="pages", range=pb.ByteRange(offset=0, size_bytes=size))))
        self.assertTrue(all(len(p.data) <= self.limits.chunk_size_bytes_max for p in pieces))
        self.assertEqual(b"".join(p.data for p in pieces), self.text[:size])

    def test_encodings_that_there_are_not(self):
        pb = self.stubs.pb
        for accepted in ([0], [4], [-1, 2**31 - 1], [99] * 400_000,
                         list(range(4, 100_000)) + [pb.WIRE_ENCODING_STORED]):
            with self.subTest(accepted=accepted[:2]):
                response = self.archive.Read(pb.ReadRequest(
                    archive="pages", range=pb.ByteRange(offset=5, size_bytes=999),
                    accepted_encodings=accepted))
                self.assertEqual(response.encoding, accepted[-1] if len(accepted) > 2 and
                                 accepted[-1] == pb.WIRE_ENCODING_STORED
                                 else pb.WIRE_ENCODING_IDENTITY)

    def test_whole_blocks_for_single_bytes(self):
        pb = self.stubs.pb
        start = len(self.text) - (16 << 20)
        for encoding in (pb.WIRE_ENCODING_STORED, pb.WIRE_ENCODING_FSST):
            request = pb.BatchReadRequest(
                archive="pages", accepted_encodings=[encoding],
                items=[pb.BatchItem(tag=n, range=pb.ByteRange(
                    offset=start + n * 4000, size_bytes=1)) for n in range(4000)])
            count = sum(len(response.results) for response in self.batch([request]))
            self.assertEqual(count, 4000)

    def test_unknown_archives(self):
        pb = self.stubs.pb
        for name in ("nobody", "", "a/../pages", "\0", "x" * 100_000):
            calls = [
                lambda n=name: self.archive.GetArchive(pb.GetArchiveRequest(archive=n)),
                lambda n=name: self.read_range(0, 1, archive=n),
                lambda n=name: self.archive.ReadStream(pb.ReadRequest(
                    archive=n, range=pb.ByteRange(offset=0, size_bytes=1))),
                lambda n=name: self.archive.Scan(pb.ScanRequest(archive=n)),
                lambda n=name: self.archive.ListDocuments(pb.ListDocumentsRequest(archive=n)),
                lambda n=name: self.batch([pb.BatchReadRequest(archive=n)]),
                lambda: self.batch([pb.BatchReadRequest(items=[pb.BatchItem(tag=1)])]),
            ]
            for call in calls:
                with self.subTest(name=name[:20]):
                    self.fails(call, grpc.StatusCode.NOT_FOUND, "ARCHIVE_NOT_FOUND")

    def test_malformed_requests(self):
        pb = self.stubs.pb
        calls = {
            "no target": lambda: self.archive.Read(pb.ReadRequest(archive="pages")),
            "no name": lambda: self.archive.Read(
                pb.ReadRequest(archive="pages", document=pb.DocumentName())),
            "page token": lambda: self.archive.ListDocuments(
                pb.ListDocumentsRequest(archive="pages", page_token="\x7f" * 50)),
            "page size": lambda: self.archive.ListDocuments(
                pb.ListDocumentsRequest(archive="pages", page_size=0)),
            "resume token": lambda: self.archive.Scan(
                pb.ScanRequest(archive="pages", resume_token="from elsewhere")),
            "second archive in the batch": lambda: self.batch(
                [pb.BatchReadRequest(archive="pages"), pb.BatchReadRequest(archive="other")]),
        }
        for name, call in calls.items():
            with self.subTest(name):
                self.fails(call, grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")

    def test_bytes_that_are_no_message(self):
        draw = random.Random(SEED)
        for method in ("Read", "GetArchive", "ListDocuments"):
            call = self.channel.unary_unary(f"/quire.v1.Archive/{method}")
            for size in (1, 10, 1000, 100_000):
                with self.assertRaises(grpc.RpcError):
                    call(b"\xff" + draw.randbytes(size), timeout=30)
        with self.assertRaises(grpc.RpcError) as caught:
            self.channel.unary_unary("/quire.v1.Archive/Nothing")(b"", timeout=30)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_bytes_that_are_no_http2(self):
        draw = random.Random(SEED)
        host, port = self.server.address.rsplit(":", 1)
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000, draw.randbytes(100_000), preface,
                     preface + draw.randbytes(10_000), preface + b"\xff" * 10_000):
            with socket.create_connection((host, int(port))) as connection:
                try:
                    connection.sendall(data)
                except OSError:
                    pass  # The server may close while it is still being sent to.

    def test_a_very_long_document_id(self):
        pb = self.stubs.pb
        for size in (self.limits.document_id_size_bytes_max + 1, 32 << 20):
            with self.assertRaises(grpc.RpcError) as caught:
                self.archive.Read(pb.ReadRequest(
                    archive="pages", document=pb.DocumentName(id=b"x" * size)))
            self.assertIn(caught.exception.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED,
                                                    grpc.StatusCode.INVALID_ARGUMENT))

    def test_too_many_items_in_a_message(self):
        pb = self.stubs.pb
        item = pb.BatchItem(tag=1, range=pb.ByteRange(offset=0, size_bytes=1))
        message = pb.BatchReadRequest(
            archive="pages", items=[item] * (self.limits.batch_message_items_max + 1))
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.batch([message]))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_batch_of_overlapping_and_of_bad_ranges(self):
        """Bad items fail alone; the others come, each once."""
        pb = self.stubs.pb
        wanted = {}
        for tag in range(2_000):
            wanted[tag] = (100_000 + tag % 50, 3_000 + tag)
        bad = {2_000: (len(self.text), 1), 2_001: (U64_MAX, 2), 2_002: (0, U64_MAX)}
        items = [pb.BatchItem(tag=t, range=pb.ByteRange(offset=o, size_bytes=s))
                 for t, (o, s) in {**wanted, **bad}.items()]
        items.append(pb.BatchItem(tag=2_003))
        step = min(500, self.limits.batch_message_items_max)
        messages = [pb.BatchReadRequest(archive="pages", items=items[i:i + step])
                    for i in range(0, len(items), step)]
        answers = {}
        for response in self.batch(messages):
            for result in response.results:
                self.assertNotIn(result.tag, answers)
                answers[result.tag] = result
        self.assertEqual(len(answers), len(items))
        for tag, (offset, size) in wanted.items():
            self.assertEqual(answers[tag].data, self.text[offset:offset + size])
        for tag in bad:
            self.assertEqual(answers[tag].status.reason, pb.RANGE_PAST_END)
        self.assertEqual(answers[2_003].status.reason, pb.MALFORMED_REQUEST)

    def test_more_ids_in_a_batch_than_may_wait(self):
        """Half of them unknown; each gets exactly one answer."""
        pb = self.stubs.pb
        step = self.limits.batch_message_items_max
        count = 2 * self.limits.batch_pending_items_max
        known = [name.encode() for name, data in self.documents if 0 < len(data) < 20_000][:50]
        self.assertTrue(known)

        def messages():
            for start in range(0, count, step):
                message = pb.BatchReadRequest(archive="pages")
                for tag in range(start, min(start + step, count)):
                    item = message.items.add(tag=tag)
                    item.document.id = known[tag // 2 % len(known)] if tag % 2 else b"no-%d" % tag
                    if tag % 2:
                        item.document.range.offset = 0
                        item.document.range.size_bytes = 1
                yield message

        answered = bytearray(count)
        for response in self.archive.BatchRead(messages(), timeout=600):
            for result in response.results:
                answered[result.tag] += 1
                if result.tag % 2:
                    self.assertEqual(len(result.data), 1)
                else:
                    self.assertEqual(result.status.reason, pb.DOCUMENT_NOT_FOUND)
        self.assertEqual(answered.count(1), count)

    def test_a_batch_client_that_writes_and_never_reads(self):
        """The server stops taking items in; it does not pile up answers."""
        pb = self.stubs.pb
        item = pb.BatchItem(tag=1, range=pb.ByteRange(offset=0, size_bytes=500_000))
        message = pb.BatchReadRequest(
            archive="pages", items=[item] * min(100, self.limits.batch_message_items_max))
        with self.server.channel() as channel:
            call = self.stubs.rpc.ArchiveStub(channel).BatchRead(
                (message for _ in range(1_000)), timeout=300)
            next(call)
            for offset in range(0, 1_000_000, 50_000):
                self.assertEqual(self.read_range(offset, 1_000).data,
                                 self.text[offset:offset + 1_000])
            call.cancel()

    def test_a_thousand_connections_that_do_nothing(self):
        host, port = self.server.address.rsplit(":", 1)
        connections = [socket.create_connection((host, int(port)))
                       for _ in range(IDLE_CONNECTIONS)]
        try:
            for offset in range(0, 1_000_000, 100_000):
                self.assertEqual(self.read_range(offset, 1_000).data,
                                 self.text[offset:offset + 1_000])
        finally:
            for connection in connections:
                connection.close()

    def test_a_thousand_calls_cancelled_at_once(self):
        pb = self.stubs.pb
        request = pb.ReadRequest(archive="pages",
                                 range=pb.ByteRange(offset=0, size_bytes=200_000))
        calls = [self.archive.Read.future(request) for _ in range(1_000)]
        for call in calls:
            call.cancel()
        for call in calls:
            self.assertTrue(call.cancelled() or call.code() is not None)

    def test_a_deadline_that_has_passed(self):
        pb = self.stubs.pb
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.archive.Scan(pb.ScanRequest(archive="pages"), timeout=1e-6))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


class StalledClientsTest(HostileCase):
    SERVER_FLAGS = ("--stall-timeout", str(STALL_SECONDS))

    def test_clients_that_stop_reading(self):
        """Each on a connection of its own. The server takes on as many as it has
        memory for, refuses the others, gives up on all in the end; and in the
        meantime honest reads come through, if need be at the second attempt."""
        pb = self.stubs.pb
        request = pb.ReadRequest(archive="pages",
                                 range=pb.ByteRange(offset=0, size_bytes=len(self.text)))
        stalled = []
        for number in range(STALLED_STREAMS):
            channel = self.enterContext(self.server.channel())
            archive = self.stubs.rpc.ArchiveStub(channel)
            stream = (archive.Scan(pb.ScanRequest(archive="pages")) if number % 2 else
                      archive.ReadStream(request))
            self.addCleanup(stream.cancel)
            try:
                next(stream)
                stalled.append(stream)
            except grpc.RpcError as error:
                code, reason, _, retry = error_of(self.stubs, error)
                self.assertEqual((code, reason, retry),
                                 (grpc.StatusCode.RESOURCE_EXHAUSTED, "SERVER_BUSY", True))
        # A quarter of the memory for answers is left to streams of one block (and
        # its frame) each, whatever others hold.
        self.assertGreaterEqual(
            len(stalled),
            min(STALLED_STREAMS, self.limits.in_flight_size_bytes_max // 4 // (65_536 + 12)))
        for offset in range(0, 1_000_000, 50_000):
            response = self.read_when_not_busy(self.archive, pb.ReadRequest(
                archive="pages", range=pb.ByteRange(offset=offset, size_bytes=1_000)))
            self.assertEqual(response.data, self.text[offset:offset + 1_000])
        # A stalled client that wakes up once the server has given up on it finds
        # what was on its way, then the end.
        self.wait_until(*(f'quire_calls_in_flight{{method="{method}"}} 0\n'
                          for method in ("ReadStream", "Scan")))
        for stream in stalled[:3]:
            with self.assertRaises(grpc.RpcError):
                for _ in stream:
                    pass


if __name__ == "__main__":
    QUIRED = sys.argv.pop(1)
    MEMORY_MIB = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else None
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    unittest.main(verbosity=2)
