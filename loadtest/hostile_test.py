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
import queue
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc

from live_server import (LiveServer, error_of, make_documents, make_stubs,
                         raise_file_limit, write_corpus)
from raw_http2 import RawConnection, grpc_frame

SEED = 20261122
MEMORY_MIB_DEFAULT = 256
U64_MAX = 2**64 - 1
IDLE_CONNECTIONS = 1_000
STALLED_STREAMS = 200
# The longest message that the server takes.
REQUEST_SIZE_MAX = 2 << 20
# After this the server of StalledClientsTest gives up on a client that takes
# nothing. That of the other tests has its default, which no slow machine makes
# them reach.
STALL_SECONDS = 2
BUSY_SECONDS_MAX = 60
# Of DescribedAnswersTest: what a small server has.
SMALL_MEMORY_MIB = 192
STOCK_MESSAGE_SIZE = 4 << 20
ID_SIZE = 64_000
LONG_ID_COUNT = 300
HOSTILE_STREAMS = 8
CONCURRENT_REQUESTS = 32
# What one request of REQUEST_SIZE_MAX may take at most while it is received and parsed.
REQUEST_GROWTH = 16 << 20


class HostileCase(unittest.TestCase):
    """A server of its own for each class of tests; checks after each test that
    it is as well as before."""
    SERVER_FLAGS = ()
    # Unless the command line says.
    MEMORY_MIB = None

    @classmethod
    def make_documents(cls):
        # Incompressible documents after the text: what a stalled stream holds
        # back is then more than any socket buffer.
        draw = random.Random(SEED)
        return make_documents(500, SEED) + [
            (f"zz-large-{n}", draw.randbytes(8 << 20)) for n in range(4)]

    @classmethod
    def setUpClass(cls):
        cls.raw_connections = []
        raise_file_limit(4 * IDLE_CONNECTIONS)
        directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.memory_mib = cls.MEMORY_MIB or MEMORY_MIB or MEMORY_MIB_DEFAULT
        cls.documents = sorted(cls.make_documents())
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{directory}/pages")
        cls.archive_path = f"{directory}/pages.quire"
        subprocess.run([QUIRED, "build", "-o", cls.archive_path, "--codec", "zstd",
                        f"{directory}/pages.tar"], check=True)
        cls.stubs = make_stubs(directory)
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [f"pages={cls.archive_path}"],
            "--memory", f"{cls.memory_mib}MiB", *cls.SERVER_FLAGS))
        cls.channel = cls.enterClassContext(cls.server.channel())
        cls.archive = cls.stubs.rpc.ArchiveStub(cls.channel)
        cls.limits = cls.archive.ListArchives(cls.stubs.pb.ListArchivesRequest()).limits

    def tearDown(self):
        pb = self.stubs.pb
        while self.raw_connections:
            self.raw_connections.pop().close()
        self.assertIsNone(self.server.process.poll(), "the server has ended")
        # Or what this test left behind would keep the next one's reads out.
        self.wait_until("quire_in_flight_bytes 0\n")
        with self.server.channel() as channel:
            response = self.read_when_not_busy(
                self.stubs.rpc.ArchiveStub(channel),
                pb.ReadRequest(archive="pages", range=pb.ByteRange(offset=70_000, size_bytes=9_999)))
        self.assertEqual(response.data, self.text[70_000:79_999])
        if MEMORY_MIB:
            self.assertLess(self.server.resident_peak_bytes(), self.memory_mib << 20)

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

    def connect_raw(self, **options):
        """Open until the end of the test."""
        self.raw_connections.append(RawConnection(self.server.address, **options))
        return self.raw_connections[-1]

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
        # Each was cancelled, or had been answered or refused before: together they
        # hold more than one address may.
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


class ReloadTest(HostileCase):
    """Last of its server's: it replaces the archive."""

    def reload(self, reload_count):
        """Builds an archive of other contents in place, and has the server take it."""
        documents = self.documents[reload_count:]
        directory = self.enterContext(tempfile.TemporaryDirectory())
        write_corpus(documents, f"{directory}/pages")
        subprocess.run([QUIRED, "build", "--force", "-o", self.archive_path, "--codec", "zstd",
                        f"{directory}/pages.tar"], check=True)
        type(self).text = b"".join(data for _, data in documents)
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_until(f'quire_reloads_total{{outcome="succeeded"}} {reload_count}\n',
                        'quire_reloads_total{outcome="failed"} 0\n')

    def test_batches_that_stay_open_and_say_nothing(self):
        """They do not keep archives that were replaced, of which memory has one."""
        pb = self.stubs.pb
        item = pb.BatchItem(tag=1, range=pb.ByteRange(offset=0, size_bytes=100))
        streams = []
        for items in ([], [item]):
            messages = queue.SimpleQueue()
            messages.put(pb.BatchReadRequest(archive="pages", items=items))
            stream = self.archive.BatchRead(iter(messages.get, None))
            self.addCleanup(stream.cancel)
            if items:
                self.assertEqual(next(stream).results[0].data, self.text[:100])
            streams.append((stream, messages))
        self.wait_until("quire_batch_message_items_count 2\n")
        for reload_count in range(1, 5):
            self.reload(reload_count)
        for stream, messages in streams:
            messages.put(pb.BatchReadRequest(items=[item]))
            self.fails(lambda s=stream: s, grpc.StatusCode.UNAVAILABLE, "ARCHIVE_REPLACED")
            messages.put(None)


class UnreadRequestsTest(HostileCase):
    # gRPC enforces its quota while it goes on reading, so that it takes more than
    # that for a moment: some 300 MiB at most of what is sent here.
    MEMORY_MIB = 2 * MEMORY_MIB_DEFAULT

    def test_requests_that_never_arrive_in_full(self):
        """Over twice --memory of them, each but for its last byte. No call sees
        them, so that only gRPC can bound them."""
        connections = [self.connect_raw() for _ in range(10)]
        body = grpc_frame(bytes(REQUEST_SIZE_MAX))[:-1]
        for connection in connections:
            for _ in range(60):
                connection.start("/quire.v1.Archive/Read", body)
        # Until the server takes no more.
        while any([connection.pump(0.2) for connection in connections]):
            pass
        self.assertTrue(any(connection.reset for connection in connections))


class DescribedAnswersTest(HostileCase):
    """A server with little memory, and an archive whose documents have ids far longer
    than what is asked of them."""
    MEMORY_MIB = SMALL_MEMORY_MIB

    @classmethod
    def make_documents(cls):
        return [(f"{n:04}-" + "x" * (ID_SIZE - 5), b"document %d\n" % n * 100)
                for n in range(LONG_ID_COUNT)]

    def run(self, result=None):
        """Each test with the server's memory sampled."""
        with self.server.resident_samples() as self.samples:
            return super().run(result)

    def tearDown(self):
        super().tearDown()
        if MEMORY_MIB:
            self.assertLess(max(self.samples), self.memory_mib << 20)

    def new_archive(self, options=None):
        """A stub on a connection of its own."""
        channel = self.enterContext(
            self.server.channel() if options is None else
            grpc.insecure_channel(self.server.address, options=options))
        return self.stubs.rpc.ArchiveStub(channel)

    def empty_ranges(self, count):
        pb = self.stubs.pb
        return pb.BatchReadRequest(archive="pages", items=[
            pb.BatchItem(tag=n, document=pb.DocumentName(
                ordinal=n % LONG_ID_COUNT, range=pb.ByteRange(offset=0, size_bytes=0)))
            for n in range(count)])

    def test_stalled_batches_of_empty_ranges(self):
        """Each asks for 64 MB of ids with 10 KB, and reads nothing until all have."""
        count = 1_024
        ended = threading.Event()

        def requests(started):
            yield self.empty_ranges(count)
            started.set()
            ended.wait(BUSY_SECONDS_MAX)

        streams = []
        for _ in range(HOSTILE_STREAMS):
            # gRPC asks for no second request if the first was refused by then.
            started = threading.Event()
            stream = self.new_archive().BatchRead(requests(started), timeout=300)
            stream.add_done_callback(lambda _, event=started: event.set())
            streams.append((stream, started))
        for _, started in streams:
            self.assertTrue(started.wait(BUSY_SECONDS_MAX))
        # All that are admitted have a message to send, which no client takes.
        self.wait_for_steady("quire_in_flight_bytes")
        ended.set()
        complete = 0
        for stream, _ in streams:
            tags = set()
            try:
                for response in stream:
                    self.assertLessEqual(response.ByteSize(), STOCK_MESSAGE_SIZE)
                    tags.update(result.tag for result in response.results)
            except grpc.RpcError as error:
                self.assertEqual(error_of(self.stubs, error)[1], "SERVER_BUSY")
                continue
            self.assertEqual(len(tags), count)
            complete += 1
        self.assertGreater(complete, 0)

    def wait_for_steady(self, metric):
        """Until a metric is positive and has been the same ten times in a row."""
        until = time.monotonic() + BUSY_SECONDS_MAX
        values = []
        while len(values) < 10 or len(set(values[-10:])) > 1 or not float(values[-1]):
            self.assertLess(time.monotonic(), until, values[-10:])
            time.sleep(0.02)
            values.append(re.search(rf"^{metric} (\S+)$", self.server.metrics(),
                                    re.MULTILINE).group(1))

    def test_a_stock_client_reads_a_batch(self):
        archive = self.new_archive(options=[])
        results = [result for response in archive.BatchRead(iter([self.empty_ranges(100)]))
                   for result in response.results]
        self.assertEqual(sorted(result.tag for result in results), list(range(100)))
        for result in results:
            self.assertEqual(len(result.document.id), ID_SIZE)

    def test_single_reads_of_empty_ranges(self):
        pb = self.stubs.pb
        calls = []
        for _ in range(HOSTILE_STREAMS):
            archive = self.new_archive()
            calls += [archive.Read.future(pb.ReadRequest(archive="pages", document=pb.DocumentName(
                ordinal=n % LONG_ID_COUNT, range=pb.ByteRange(offset=0, size_bytes=0))))
                      for n in range(200)]
        right = 0
        for call in calls:
            error = call.exception()
            if error is None:
                self.assertEqual(len(call.result().document.id), ID_SIZE)
                right += 1
            else:
                self.assertEqual(error_of(self.stubs, error)[1], "SERVER_BUSY")
        self.assertGreater(right, 0)

    def test_pages_and_streams(self):
        pb = self.stubs.pb
        request = pb.ListDocumentsRequest(archive="pages", page_size=1_000)
        names = []
        while not names or request.page_token:
            page = self.archive.ListDocuments(request)
            # Its token has the last id.
            self.assertLess(page.ByteSize(), (1 << 20) + 2 * ID_SIZE)
            names += [document.id for document in page.documents]
            request.page_token = page.next_page_token
        self.assertEqual(names, [name.encode() for name, _ in self.documents])
        for number, (name, data) in enumerate(self.documents[:50]):
            pieces = list(self.archive.ReadStream(pb.ReadRequest(
                archive="pages", document=pb.DocumentName(ordinal=number))))
            self.assertEqual(pieces[0].document.id, name.encode())
            self.assertEqual(b"".join(piece.data for piece in pieces), data)

    def fill(self, start, part):
        """A request of nearly the size that the server takes."""
        return start + part * ((REQUEST_SIZE_MAX - len(start) - 100) // len(part))

    def test_requests_that_grow_when_they_are_parsed(self):
        """Two bytes on the wire are up to 64 as an item or a field."""
        archive = b"\x0a\x05pages"
        item, unknown = b"\x12\x00", b"\x7a\x00"
        field = lambda tag, contents: (
            tag + bytes([len(contents) & 127 | 128, len(contents) >> 7 & 127 | 128,
                         len(contents) >> 14]) + contents)
        nested = field(b"\x12", field(b"\x1a", self.fill(b"", unknown)[:-50]))
        batches = {"items": (self.fill(archive, item), "LIMIT_EXCEEDED"),
                   "unknown fields": (self.fill(archive, unknown), "MALFORMED_REQUEST"),
                   "fields of an item": (archive + nested, "MALFORMED_REQUEST"),
                   "encodings": (archive + field(b"\x1a", self.fill(b"", b"\x63")[:-50]),
                                 "MALFORMED_REQUEST")}

        def start(request):
            channel = self.enterContext(self.server.channel())
            return channel.stream_stream("/quire.v1.Archive/BatchRead")(iter([request]))

        for name, (request, reason) in batches.items():
            with self.subTest(name):
                before = self.server.resident_bytes()
                sample_count = len(self.samples)
                self.fails(lambda r=request: start(r), grpc.StatusCode.INVALID_ARGUMENT, reason)
                if MEMORY_MIB:
                    self.assertLess(max(self.samples[sample_count:] +
                                        [self.server.resident_bytes()]) - before, REQUEST_GROWTH)
                for call in [start(request) for _ in range(CONCURRENT_REQUESTS)]:
                    self.fails(lambda c=call: c, grpc.StatusCode.INVALID_ARGUMENT, reason)
        for method in ("Read", "ReadStream", "Scan", "ListArchives", "GetArchive",
                       "ListDocuments", "GetSymbolTable"):
            path = f"/quire.v1.Archive/{method}"
            for request in (self.fill(archive, unknown), self.fill(archive, unknown)[:20_001]):
                with self.subTest(method=method, size=len(request)):
                    call = (self.channel.unary_stream if method in ("ReadStream", "Scan") else
                            self.channel.unary_unary)(path)
                    self.fails(lambda c=call, r=request: c(r),
                               grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


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
        # One address may hold half of the memory for answers. A quarter of that is left
        # to its streams of one block (and its frame) each, whatever else it holds.
        self.assertGreaterEqual(len(stalled), min(
            STALLED_STREAMS, self.limits.in_flight_size_bytes_max // 8 // (65_536 + 12)))
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
