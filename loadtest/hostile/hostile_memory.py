#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of memory bounds: requests in flight, descriptions of documents, replaced
archives, clients that stop reading. hostile_test.py runs them."""
import os
import pathlib
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from hostile_case import BUSY_SECONDS_MAX, MEMORY_MIB_DEFAULT, REQUEST_SIZE_MAX, HostileCase
from live_server import error_of, write_corpus
from raw_http2 import grpc_frame

STALLED_STREAMS = 200
# The server of StalledClientsTest ends calls of a client that takes nothing for this time. The
# other servers have the default, which no slow machine reaches.
STALL_SECONDS = 2
# For DescribedAnswersTest: the memory of a small server.
SMALL_MEMORY_MIB = 144
STOCK_MESSAGE_SIZE = 4 << 20
ID_SIZE = 64_000
LONG_ID_COUNT = 300
HOSTILE_STREAMS = 8
# At most 256 are open on one.
CALLS_PER_STALLED_CONNECTION = 250
# Contents of the adversarial archive: documents with a media type each, then those with the
# longest ids.
MEDIA_TYPE_COUNT = 200_000
LONGEST_ID_COUNT = 8
LONGEST_ID_SIZE = 65_535
CONCURRENT_REQUESTS = 32
# Upper bound on the memory of one request of REQUEST_SIZE_MAX while it is received and parsed.
REQUEST_GROWTH = 16 << 20


class ReloadTest(HostileCase):
    """Runs last on its server: it replaces the archive."""

    def reload(self, reload_count):
        """Builds an archive of other contents in place, and makes the server load it."""
        documents = self.documents[reload_count:]
        directory = self.enterContext(tempfile.TemporaryDirectory())
        write_corpus(documents, f"{directory}/pages")
        self.build(f"{directory}/pages.tar", "--force")
        type(self).text = b"".join(data for _, data in documents)
        self.server.process.send_signal(signal.SIGHUP)
        self.wait_until(f'quire_reloads_total{{outcome="succeeded"}} {reload_count}\n',
                        'quire_reloads_total{outcome="failed"} 0\n')

    def test_batches_that_stay_open_and_say_nothing(self):
        """They do not keep replaced archives in memory, which has space for one."""
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
    # gRPC enforces its quota while it continues to read, so it may exceed it for a moment: by
    # some 300 MiB of the data sent here.
    MEMORY_MIB = 2 * MEMORY_MIB_DEFAULT

    def test_requests_that_never_arrive_in_full(self):
        """Twice --memory of them, each without its last byte. No call sees them, so only
        gRPC can bound them."""
        connections = [self.connect_raw() for _ in range(10)]
        body = grpc_frame(bytes(REQUEST_SIZE_MAX))[:-1]
        for connection in connections:
            for _ in range(60):
                connection.start("/quire.v1.Archive/Read", body)
        # Until the server takes no more.
        while any([connection.pump(0.2) for connection in connections]):
            pass
        self.assertTrue(any(connection.reset for connection in connections))


class SmallServerCase(HostileCase):
    """A server with little memory, which is sampled throughout each test."""
    MEMORY_MIB = SMALL_MEMORY_MIB
    # Streams wait for each other here, under the sanitizers for more than a minute.
    SERVER_FLAGS = ("--stall-timeout", "600")

    def run(self, result=None):
        with self.server.resident_samples() as self.samples:
            return super().run(result)

    def tearDown(self):
        super().tearDown()
        if self.asserted_memory_mib:
            self.assertLess(max(self.samples), self.memory_mib << 20)

    def new_archive(self, options=None):
        """Returns a stub on its own connection."""
        channel = self.enterContext(
            self.server.channel() if options is None else
            grpc.insecure_channel(self.server.address, options=options))
        return self.stubs.rpc.ArchiveStub(channel)

    def empty_ranges(self, count, first=0, document_count=LONG_ID_COUNT):
        """Returns a message for `count` documents, in turn, with an empty range of each."""
        pb = self.stubs.pb
        return pb.BatchReadRequest(archive="pages", items=[
            pb.BatchItem(tag=n, document=pb.DocumentName(
                ordinal=first + n % document_count, range=pb.ByteRange(offset=0, size_bytes=0)))
            for n in range(count)])


class DescribedAnswersTest(SmallServerCase):
    """An archive whose documents have ids far longer than the requested data."""

    @classmethod
    def make_documents(cls):
        return [(f"{n:04}-" + "x" * (ID_SIZE - 5), b"document %d\n" % n * 100)
                for n in range(LONG_ID_COUNT)]

    def test_stalled_batches_of_empty_ranges(self):
        """Each requests 64 MB of ids with 10 KB, and reads nothing until all have."""
        count = 1_024
        ended = threading.Event()

        def requests(started):
            yield self.empty_ranges(count)
            started.set()
            ended.wait(BUSY_SECONDS_MAX)

        streams = []
        for _ in range(HOSTILE_STREAMS):
            # gRPC reads no second request if the first was refused by then.
            started = threading.Event()
            stream = self.new_archive().BatchRead(requests(started), timeout=300)
            stream.add_done_callback(lambda _, event=started: event.set())
            streams.append((stream, started))
        for _, started in streams:
            self.assertTrue(started.wait(BUSY_SECONDS_MAX))
        # All admitted batches have a message to send, which no client takes.
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

    def value_of(self, metric):
        return float(re.search(rf"^{re.escape(metric)} (\S+)$", self.server.metrics(),
                               re.MULTILINE).group(1))

    def wait_for_steady(self, metric):
        """Waits until a metric is positive and has been the same ten times in a row."""
        until = time.monotonic() + BUSY_SECONDS_MAX
        values = []
        while len(values) < 10 or len(set(values[-10:])) > 1 or not values[-1]:
            self.assertLess(time.monotonic(), until, values[-10:])
            time.sleep(0.02)
            values.append(self.value_of(metric))

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

    def test_refused_reads_of_clients_that_take_nothing(self):
        """A refusal that waits for its client keeps no description."""
        pb = self.stubs.pb
        refused = 'quire_call_errors_total{reason="SERVER_BUSY"}'
        host, port = self.server.address.rsplit(":", 1)
        for method in ("Read", "ReadStream"):
            with self.subTest(method):
                before = self.value_of(refused)
                for _ in range(HOSTILE_STREAMS):
                    connection = socket.socket()
                    # The server's side then takes little, too.
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                    connection.connect((host, int(port)))
                    self.connect_raw(connection=connection, window=64 << 20)
                for number in range(CALLS_PER_STALLED_CONNECTION):
                    body = grpc_frame(pb.ReadRequest(archive="pages", document=pb.DocumentName(
                        ordinal=number, range=pb.ByteRange(offset=0, size_bytes=0))
                        ).SerializeToString())
                    for connection in self.raw_connections:
                        connection.start_whole(f"/quire.v1.Archive/{method}", body)
                        connection.send_only()
                # Answers that the client does not take fill its share.
                until = time.monotonic() + BUSY_SECONDS_MAX
                while (self.value_of(refused) - before
                       <= HOSTILE_STREAMS * CALLS_PER_STALLED_CONNECTION / 2):
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.1)
                while self.raw_connections:
                    self.raw_connections.pop().close()
                self.wait_until("quire_in_flight_bytes 0\n")

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
        """Returns a request of nearly the server's size limit."""
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
                if self.asserted_memory_mib:
                    self.assertLess(max(self.samples[sample_count:] +
                                        [self.server.resident_bytes()]) - before, REQUEST_GROWTH)
                for call in [start(request) for _ in range(CONCURRENT_REQUESTS)]:
                    self.fails(lambda c=call: c, grpc.StatusCode.INVALID_ARGUMENT, reason)
        for method in ("Read", "ReadStream", "Scan", "ListArchives", "GetArchive",
                       "ListDocuments", "GetSymbolTable", "GetDictionary"):
            path = f"/quire.v1.Archive/{method}"
            for request in (self.fill(archive, unknown), self.fill(archive, unknown)[:20_001]):
                with self.subTest(method=method, size=len(request)):
                    call = (self.channel.unary_stream
                            if method in ("ReadStream", "Scan", "GetDictionary") else
                            self.channel.unary_unary)(path)
                    self.fails(lambda c=call, r=request: c(r),
                               grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_REQUEST")


class AdversarialArchiveTest(SmallServerCase):
    """The archive whose attributes and ids take the most memory for their size
    (adversarial_archive.h)."""

    @classmethod
    def write_archive(cls):
        make_golden = pathlib.Path(cls.quired).resolve().with_name("make_golden")
        subprocess.run([make_golden, "--adversarial", cls.archive_path], check=True,
                       stdout=subprocess.DEVNULL)
        cls.text = b"x" * LONGEST_ID_COUNT

    def test_all_of_its_media_types(self):
        count = self.limits.batch_message_items_max
        starts = range(0, MEDIA_TYPE_COUNT - count, count)
        seen = 0
        for response in self.batch(self.empty_ranges(count, start, count) for start in starts):
            for result in response.results:
                number = result.document.ordinal
                self.assertEqual(result.tag, number % count)
                self.assertEqual((result.document.id, result.document.media_type),
                                 (b"d%d" % number, f"t/{number}"))
                seen += 1
        self.assertEqual(seen, len(starts) * count)

    def test_its_longest_ids(self):
        """From several streams at once, each of 1,024 ids of 64 KB."""
        streams = [self.new_archive().BatchRead(
            iter([self.empty_ranges(1_024, MEDIA_TYPE_COUNT, LONGEST_ID_COUNT)]), timeout=300)
                   for _ in range(HOSTILE_STREAMS)]
        complete = 0
        for stream in streams:
            try:
                sizes = [len(result.document.id) for response in stream
                         for result in response.results]
            except grpc.RpcError as error:
                self.assertEqual(error_of(self.stubs, error)[1], "SERVER_BUSY")
                continue
            self.assertEqual(sizes, [LONGEST_ID_SIZE] * 1_024)
            complete += 1
        self.assertGreater(complete, 0)

    def test_pages(self):
        pb = self.stubs.pb
        request = pb.ListDocumentsRequest(archive="pages", page_size=5_000)
        # Larger pages than the server's limit are reduced to it.
        for _ in range(2):
            page = self.archive.ListDocuments(request)
            self.assertEqual(len(page.documents), 4_000)
            for document in page.documents:
                self.assertEqual(document.media_type, f"t/{document.ordinal}")
            request.page_token = page.next_page_token
        # Pages end early if ids are long.
        request = pb.ListDocumentsRequest(archive="pages", prefix=b"long")
        sizes = []
        while not sizes or request.page_token:
            page = self.archive.ListDocuments(request)
            self.assertGreater(len(page.documents), 0)
            sizes += [len(document.id) for document in page.documents]
            request.page_token = page.next_page_token
        self.assertEqual(sizes, [LONGEST_ID_SIZE] * LONGEST_ID_COUNT)

    def test_reloads(self):
        """The old and the new archive are held for a while."""
        for reload_count in range(1, 4):
            fresh = f"{self.directory}/fresh.quire"
            shutil.copytree(self.archive_path, fresh)
            shutil.rmtree(self.archive_path)
            os.rename(fresh, self.archive_path)
            self.server.process.send_signal(signal.SIGHUP)
            self.wait_until(f'quire_reloads_total{{outcome="succeeded"}} {reload_count}\n',
                            'quire_reloads_total{outcome="failed"} 0\n')
            self.test_pages()


class StalledClientsTest(HostileCase):
    SERVER_FLAGS = ("--stall-timeout", str(STALL_SECONDS))

    def test_clients_that_stop_reading(self):
        """Each on its own connection. The server admits as many as it has memory for,
        refuses the others, and ends all of them eventually; meanwhile honest reads
        succeed, at the second attempt if necessary."""
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
        # One address may hold half of the memory for answers. A quarter of that is reserved for
        # its streams of one block (and its frame) each, whatever else it holds.
        self.assertGreaterEqual(len(stalled), min(
            STALLED_STREAMS, self.limits.in_flight_size_bytes_max // 8 // (65_536 + 12)))
        for offset in range(0, 1_000_000, 50_000):
            response = self.read_when_not_busy(self.archive, pb.ReadRequest(
                archive="pages", range=pb.ByteRange(offset=offset, size_bytes=1_000)))
            self.assertEqual(response.data, self.text[offset:offset + 1_000])
        # A stalled client that wakes up after the server has ended its call receives the data in
        # flight, then the end.
        self.wait_until(*(f'quire_calls_in_flight{{method="{method}"}} 0\n'
                          for method in ("ReadStream", "Scan")))
        for stream in stalled[:3]:
            with self.assertRaises(grpc.RpcError):
                for _ in stream:
                    pass
