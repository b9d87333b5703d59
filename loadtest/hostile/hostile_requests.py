#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of requests and connections that no honest client makes; hostile_test.py runs them."""
import os
import pathlib
import random
import re
import socket
import sys
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from hostile_case import BUSY_SECONDS_MAX, SEED, HostileCase
from live_server import error_of
from raw_http2 import grpc_frame

U64_MAX = 2**64 - 1
IDLE_CONNECTIONS = 1_000


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
        for accepted in ([0], [4], [-1, 2**31 - 1],
                         list(range(4, 100)) + [pb.WIRE_ENCODING_STORED]):
            with self.subTest(accepted=accepted[:2]):
                response = self.archive.Read(pb.ReadRequest(
                    archive="pages", range=pb.ByteRange(offset=5, size_bytes=999),
                    accepted_encodings=accepted))
                self.assertEqual(response.encoding, accepted[-1] if len(accepted) > 2 and
                                 accepted[-1] == pb.WIRE_ENCODING_STORED
                                 else pb.WIRE_ENCODING_IDENTITY)
        for count in (2_000, 400_000):
            self.fails(lambda n=count: self.archive.Read(pb.ReadRequest(
                archive="pages", range=pb.ByteRange(offset=5, size_bytes=999),
                accepted_encodings=[99] * n)),
                       grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")

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
            "empty delimiter": lambda: self.archive.ListDocuments(
                pb.ListDocumentsRequest(archive="pages", delimiter=b"")),
            "long delimiter": lambda: self.archive.ListDocuments(
                pb.ListDocumentsRequest(archive="pages", delimiter=b"/" * 200_000)),
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
                    pass  # The server may close the connection while it still receives.

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
        """Bad items fail alone; the others arrive, each once."""
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
        """The server stops reading items; it does not accumulate answers."""
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
        # Each was cancelled, or had been answered or refused before: together they exceed the
        # share of one address.
        codes = [call.code() for call in calls]
        self.assertLessEqual(set(codes), {grpc.StatusCode.CANCELLED, grpc.StatusCode.OK,
                                          grpc.StatusCode.RESOURCE_EXHAUSTED})
        self.assertIn(grpc.StatusCode.CANCELLED, codes)
        for call, code in zip(calls, codes):
            if code == grpc.StatusCode.OK:
                self.assertEqual(call.result().data, self.text[:200_000])
            elif code == grpc.StatusCode.RESOURCE_EXHAUSTED:
                self.assertEqual(error_of(self.stubs, call.exception())[1], "SERVER_BUSY")
        self.wait_until('quire_calls_in_flight{method="Read"} 0\n')

    def test_a_deadline_that_has_passed(self):
        pb = self.stubs.pb
        with self.assertRaises(grpc.RpcError) as caught:
            list(self.archive.Scan(pb.ScanRequest(archive="pages"), timeout=1e-6))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)


    def test_connections_of_one_address_have_one_share(self):
        """Ten connections, each with answers that it does not take."""
        pb = self.stubs.pb
        size = min(self.limits.read_size_bytes_max, 2 << 20)
        request = grpc_frame(pb.ReadRequest(archive="pages", range=pb.ByteRange(
            offset=len(self.text) - (16 << 20), size_bytes=size)).SerializeToString())
        connections = [self.connect_raw(window=0) for _ in range(10)]
        for connection in connections:
            for _ in range(4):
                connection.start("/quire.v1.Archive/Read", request)
        while any([connection.pump(0.2) for connection in connections]):
            held = int(re.search(r"^quire_in_flight_bytes (\S+)$", self.server.metrics(),
                                 re.MULTILINE).group(1))
            self.assertLessEqual(held, self.limits.client_in_flight_size_bytes_max)

    def test_reflection_streams_that_say_nothing(self):
        """They take few of the server's threads; calls that read take none of these."""
        def thread_count():
            return len(os.listdir(f"/proc/{self.server.process.pid}/task"))

        self.read_range(0, 1_000)
        before = thread_count()
        with self.server.channel() as channel:
            open_stream = channel.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            end = threading.Event()
            self.addCleanup(end.set)
            streams = [open_stream(iter(end.wait, True)) for _ in range(100)]
            refused = 0
            until = time.monotonic() + BUSY_SECONDS_MAX
            while refused < 90 and time.monotonic() < until:
                refused = sum(stream.is_active() is False for stream in streams)
                time.sleep(0.05)
            self.assertGreaterEqual(refused, 90)
            self.assertLess(thread_count(), before + 10)
            self.assertEqual(self.read_range(500, 1_000).data, self.text[500:1_500])
            for stream in streams:
                stream.cancel()
