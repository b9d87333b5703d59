#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of clients without credentials, or with wrong ones: whatever they send, they get
no byte of an archive and hold no resources of the server. hostile_test.py runs them."""
import contextlib
import pathlib
import random
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from certificates import Authority
from hostile_case import REQUEST_SIZE_MAX, SEED, HostileCase
from hostile_memory import UnreadRequestsTest
from live_server import MESSAGE_SIZE_OPTIONS
from raw_http2 import RawConnection, grpc_frame

SERVICE = "/quire.v1.Archive/"
IDLE_CONNECTIONS = 500
DESCRIPTORS_MAX = 256
SILENT_CONNECTIONS = 400
OPEN_STREAMS = 100
CONCURRENT_REQUESTS = 16
PATIENCE_SECONDS = 60
# gRPC's limit on headers.
HEADERS_SIZE_MAX = 8 << 10


class WithHeaders(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor,
                  grpc.StreamUnaryClientInterceptor, grpc.StreamStreamClientInterceptor):
    """Adds headers to each call of a channel."""

    def __init__(self, *headers):
        self.headers = headers

    def _go_on(self, continuation, details, request):
        # pylint: disable-next=protected-access
        return continuation(details._replace(
            metadata=(*(details.metadata or ()), *self.headers)), request)

    intercept_unary_unary = intercept_unary_stream = _go_on
    intercept_stream_unary = intercept_stream_stream = _go_on


class OutsideCase:
    """A server that authenticates its clients. Subclasses define how, and the credentials
    of rejected clients."""

    # Status codes of failed calls.
    CODES = {}

    @classmethod
    def outside_channels(cls):
        """Returns a channel for each kind of false credentials; the caller closes them."""
        raise NotImplementedError

    def methods(self):
        return self.stubs.pb.DESCRIPTOR.services_by_name["Archive"].methods

    def requests(self):
        """Returns bytes for any method by name: valid requests, forged ones, and garbage."""
        pb = self.stubs.pb
        archive = b"\x0a\x05pages"
        fill = lambda part, size: part * (size // len(part))
        some = pb.ByteRange(offset=0, size_bytes=1_000)
        return {
            "nothing": b"",
            # Valid for GetArchive, Scan, ListDocuments, GetSymbolTable and batches, too.
            "the archive": archive,
            "a range": pb.ReadRequest(archive="pages", range=some).SerializeToString(),
            "a document": pb.ReadRequest(
                archive="pages", document=pb.DocumentName(ordinal=0)).SerializeToString(),
            "a batch": pb.BatchReadRequest(archive="pages", items=[
                pb.BatchItem(tag=1, range=some)] * 100).SerializeToString(),
            "a range past 64 bits": pb.ReadRequest(archive="pages", range=pb.ByteRange(
                offset=2**64 - 1, size_bytes=2**64 - 1)).SerializeToString(),
            "another archive": pb.GetArchiveRequest(archive="nobody").SerializeToString(),
            "a long name": pb.GetArchiveRequest(archive="x" * 100_000).SerializeToString(),
            "no message": b"\xff" * 1_000,
            "many items": archive + fill(b"\x12\x00", REQUEST_SIZE_MAX - 100),
            "unknown fields": archive + fill(b"\x7a\x00", REQUEST_SIZE_MAX - 100),
            "too long": bytes(REQUEST_SIZE_MAX + 1),
        }

    def start(self, channel, method, request):
        """Begins a call of any kind; returns a function that waits for its first message."""
        path = SERVICE + method.name
        if method.client_streaming:
            call = channel.stream_stream(path)(iter([request]), timeout=PATIENCE_SECONDS)
        elif method.server_streaming:
            call = channel.unary_stream(path)(request, timeout=PATIENCE_SECONDS)
        else:
            return channel.unary_unary(path).future(request, timeout=PATIENCE_SECONDS).result
        return lambda: next(call)

    def assert_refused(self, first_message, codes):
        """Checks that the call ends with one of the codes, without a message."""
        with self.assertRaises(grpc.RpcError) as caught:
            self.fail(f"an outsider got {len(first_message())} bytes")
        self.assertIn(caught.exception.code(), codes, caught.exception.details())
        return caught.exception

    def codes(self, shown):
        return self.CODES.get(shown, self.CODES["else"])

    @contextlib.contextmanager
    def showing(self, shown, channel):
        with channel, self.subTest(shown=shown):
            yield

    def test_no_request_gets_an_answer(self):
        malformed = {grpc.StatusCode.INTERNAL, grpc.StatusCode.INVALID_ARGUMENT,
                     grpc.StatusCode.RESOURCE_EXHAUSTED}
        for shown, channel in self.outside_channels().items():
            with self.showing(shown, channel):
                for method in self.methods():
                    for name, request in self.requests().items():
                        with self.subTest(method=method.name, request=name):
                            good = name in ("nothing", "the archive", "a range", "a document",
                                            "a batch", "another archive")
                            self.assert_refused(
                                self.start(channel, method, request),
                                self.codes(shown) if good else self.codes(shown) | malformed)

    def test_answers_do_not_tell_archives_apart(self):
        """Compares an existing archive with a missing one."""
        pb = self.stubs.pb
        for shown, channel in self.outside_channels().items():
            with self.showing(shown, channel):
                for method in self.methods():
                    told = {name: self.assert_refused(
                        self.start(channel, method,
                                   pb.GetArchiveRequest(archive=name).SerializeToString()),
                        self.codes(shown)).details() for name in ("pages", "nobody")}
                    if grpc.StatusCode.UNAVAILABLE not in self.codes(shown):
                        self.assertEqual(told["pages"], told["nobody"])

    def test_many_at_once(self):
        """Requests that grow when they are parsed; tearDown checks memory against its limit."""
        for shown, channel in self.outside_channels().items():
            with self.showing(shown, channel):
                for name in ("many items", "unknown fields"):
                    request = self.requests()[name]
                    calls = [self.start(channel, method, request) for method in self.methods()
                             for _ in range(CONCURRENT_REQUESTS)]
                    for first_message in calls:
                        self.assert_refused(first_message, self.codes(shown) | {
                                grpc.StatusCode.INVALID_ARGUMENT,
                                grpc.StatusCode.RESOURCE_EXHAUSTED,
                                # gRPC ends connections when it has no memory for requests,
                                # and sometimes resets calls.
                                grpc.StatusCode.UNAVAILABLE,
                                grpc.StatusCode.INTERNAL})

    def test_batches_that_say_nothing_are_refused(self):
        """Refused before their first message, so that none of them is held."""
        end = threading.Event()
        self.addCleanup(end.set)
        for shown, channel in self.outside_channels().items():
            with self.showing(shown, channel):
                open_batch = channel.stream_stream(SERVICE + "BatchRead")
                for call in [open_batch(iter(end.wait, True), timeout=PATIENCE_SECONDS)
                             for _ in range(OPEN_STREAMS)]:
                    self.assert_refused(call.__next__, self.codes(shown))
        self.wait_until('quire_calls_in_flight{method="BatchRead"} 0\n')

    def test_calls_cancelled_at_once(self):
        request = self.requests()["a range"]
        for shown, channel in self.outside_channels().items():
            with self.showing(shown, channel):
                calls = [channel.unary_unary(SERVICE + "Read").future(request) for _ in range(500)]
                for call in calls:
                    call.cancel()
                for call in calls:
                    self.assertIn(call.code(), self.codes(shown) | {grpc.StatusCode.CANCELLED})
        self.wait_until('quire_calls_in_flight{method="Read"} 0\n')

    def test_connections_that_say_nothing_or_rubbish(self):
        host, port = self.server.address.rsplit(":", 1)
        with contextlib.ExitStack() as opened:
            connections = [opened.enter_context(socket.create_connection((host, int(port))))
                           for _ in range(IDLE_CONNECTIONS)]
            draw = random.Random(SEED)
            for number, connection in enumerate(connections):
                # A TLS handshake's first record without its end, HTTP/2's first bytes, and no
                # protocol at all.
                data = (b"\x16\x03\x01\x02\x00\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                        draw.randbytes(1_000), b"")[number % 4]
                with contextlib.suppress(OSError):
                    connection.sendall(data)
            for offset in range(0, 1_000_000, 200_000):
                self.assertEqual(self.read_range(offset, 1_000).data,
                                 self.text[offset:offset + 1_000])


class ScarceDescriptorsTest(HostileCase):
    """More connections than the server may have open files."""
    SERVER_COMMAND = ("prlimit", f"--nofile={DESCRIPTORS_MAX}:{DESCRIPTORS_MAX}")

    def connect_silently(self, opened, source):
        """Connects from an address of this machine; the server may close it at once."""
        host, port = self.server.address.rsplit(":", 1)
        return opened.enter_context(socket.create_connection(
            (host, int(port)), PATIENCE_SECONDS, (source, 0)))

    def check_that_all_is_well(self):
        self.assertTrue(self.server.is_ready())
        with self.honest_channel() as channel:
            pb = self.stubs.pb
            # A first connection may be refused, while gRPC closes those that were ended.
            response = self.stubs.rpc.ArchiveStub(channel).Read(pb.ReadRequest(
                archive="pages", range=pb.ByteRange(offset=7, size_bytes=1_000)),
                timeout=PATIENCE_SECONDS, wait_for_ready=True)
            self.assertEqual(response.data, self.text[7:1_007])

    def refused(self, reason):
        found = re.search(rf'quire_connections_refused_total{{reason="{reason}"}} (\d+)\n',
                          self.server.metrics())
        return int(found.group(1))

    def test_silent_connections_of_one_client(self):
        with contextlib.ExitStack() as opened:
            for _ in range(SILENT_CONNECTIONS):
                self.connect_silently(opened, "127.0.0.1")
            self.check_that_all_is_well()
        self.assertGreater(self.refused("silent"), 0)
        self.check_that_all_is_well()

    def test_silent_connections_of_many_clients(self):
        with contextlib.ExitStack() as opened:
            for number in range(SILENT_CONNECTIONS):
                self.connect_silently(opened, f"127.0.{number // 8}.{number % 8 + 1}")
            self.check_that_all_is_well()
        self.check_that_all_is_well()

    def test_connections_with_calls_keep_to_the_clients_share(self):
        """Others, and administration, still get descriptors."""
        def call_once(opened, source):
            """Waits for the answer, or the connection's end."""
            connection = self.connect_silently(opened, source)
            raw = RawConnection(self.server.address, connection=connection)
            raw.start_whole(SERVICE + "ListArchives", grpc_frame(b""))
            received = b""
            with contextlib.suppress(OSError):
                connection.sendall(raw.unsent)
                while b"grpc-status" not in received and (more := connection.recv(1 << 16)):
                    received += more

        with contextlib.ExitStack() as opened:
            for _ in range(SILENT_CONNECTIONS):
                call_once(opened, "127.0.0.2")
            self.check_that_all_is_well()
        self.assertGreater(self.refused("client"), 0)


class TokenServer:
    """With --access, and one token."""

    @classmethod
    def server_flags(cls):
        made = subprocess.run([cls.quired, "token", "new", "honest", "-o",
                               f"{cls.directory}/honest"], check=True, capture_output=True,
                              text=True)
        rules = pathlib.Path(cls.directory) / "access"
        rules.write_text(made.stdout)
        cls.token = pathlib.Path(f"{cls.directory}/honest").read_text().strip()
        return ["--access", rules]

    @classmethod
    def with_headers(cls, *headers):
        return grpc.intercept_channel(cls.server.channel(), WithHeaders(*headers))

    @classmethod
    def honest_channel(cls):
        return cls.with_headers(("authorization", f"Bearer {cls.token}"))


class NoTokenTest(OutsideCase, TokenServer, HostileCase):
    """Clients without a token, or with a wrong one."""
    CODES = {"else": {grpc.StatusCode.UNAUTHENTICATED},
             # gRPC resets the call, or ends the connection.
             "very long headers": {grpc.StatusCode.RESOURCE_EXHAUSTED,
                                   grpc.StatusCode.UNAVAILABLE}}

    @classmethod
    def outside_channels(cls):
        name, _, secret = cls.token.partition(".")
        other = secrets.token_urlsafe(32)
        bearer = lambda token: cls.with_headers(("authorization", f"Bearer {token}"))
        return {
            "nothing": cls.server.channel(),
            "an empty header": cls.with_headers(("authorization", "")),
            "another scheme": cls.with_headers(("authorization", f"Basic {cls.token}")),
            "an id alone": bearer(name),
            "a secret alone": bearer(f".{secret}"),
            "another secret": bearer(f"{name}.{other}"),
            "half of the secret": bearer(f"{name}.{secret[:len(secret) // 2]}"),
            "another id": bearer(f"somebody.{secret}"),
            "the token twice over": bearer(cls.token + cls.token),
            "two headers, the wrong one first": cls.with_headers(
                ("authorization", f"Bearer {name}.{other}"),
                ("authorization", f"Bearer {cls.token}")),
            "bytes": cls.with_headers(("authorization-bin", cls.token.encode())),
            "very long headers": cls.with_headers(
                ("authorization", "Bearer " + "x" * (2 * HEADERS_SIZE_MAX))),
        }

    def test_answers_that_nobody_takes(self):
        """Calls of connections that let the server send nothing hold no memory."""
        connections = [self.connect_raw(window=0) for _ in range(10)]
        for connection in connections:
            for name in ("Read", "ReadStream", "Scan", "BatchRead"):
                for request in ("a range", "the archive", "a batch"):
                    connection.start(SERVICE + name, grpc_frame(self.requests()[request]))
        while any([connection.pump(0.2) for connection in connections]):
            self.assertIn("quire_in_flight_bytes 0\n", self.server.metrics())

    def test_what_needs_no_credentials(self):
        """The server's health is visible, and no name of an archive."""
        self.assertEqual(self.server.check_health(self.stubs, ""), 1)
        for service in ("pages", "nobody", "quire.v1.Archive/pages"):
            with self.assertRaises(grpc.RpcError) as caught:
                self.server.check_health(self.stubs, service)
            self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        reflected = self.stubs.standard
        with self.server.channel() as channel:
            with self.assertRaises(grpc.RpcError):
                list(channel.stream_stream(
                    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                    request_serializer=reflected.ReflectionRequest.SerializeToString)(
                        iter([reflected.ReflectionRequest(list_services="")]),
                        timeout=PATIENCE_SECONDS))


class UnreadWithoutTokenTest(TokenServer, UnreadRequestsTest):
    """Requests that never arrive completely, of clients without a token."""


class WrongCertificateTest(OutsideCase, HostileCase):
    """A server that requires certificates of its authority (--tls-client-ca)."""
    CODES = {"else": {grpc.StatusCode.UNAVAILABLE}}

    @classmethod
    def server_flags(cls):
        directory = pathlib.Path(cls.directory)
        cls.authority = Authority(directory, "authority")
        cls.other = Authority(directory, "other")
        pem, key = cls.authority.sign("server")
        cls.client = cls.authority.sign("client", "URI:spiffe://example.org/client")
        cls.wrong = {
            "of another authority": cls.other.sign("stranger", "URI:spiffe://example.org/client"),
            "expired": cls.authority.sign("expired", "URI:spiffe://example.org/client", days=-1),
            "of an authority of this name": Authority(
                pathlib.Path(tempfile.mkdtemp(dir=cls.directory)), "authority").sign("client"),
        }
        return ["--tls-cert", pem, "--tls-key", key, "--tls-client-ca", cls.authority.pem]

    @classmethod
    def tls_channel(cls, certificate=None):
        pem, key = (path.read_bytes() for path in certificate) if certificate else (None, None)
        return grpc.secure_channel(
            cls.server.address,
            grpc.ssl_channel_credentials(cls.authority.pem.read_bytes(), key, pem),
            options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1)])

    @classmethod
    def honest_channel(cls):
        return cls.tls_channel(cls.client)

    def test_failed_handshakes_are_counted(self):
        for channel in self.outside_channels().values():
            with channel, self.assertRaises(grpc.RpcError):
                channel.unary_unary(SERVICE + "ListArchives")(b"", timeout=PATIENCE_SECONDS)
        metrics = self.server.metrics()
        for reason in "no_tls", "no_client_certificate", "client_certificate_refused":
            self.assertRegex(
                metrics, rf'quire_tls_handshake_failures_total{{reason="{reason}"}} [1-9]')
            self.assertTrue(any(f"handshakes failed ({reason})" in line
                                for line in self.server.messages), reason)

    @classmethod
    def outside_channels(cls):
        return {"no TLS": cls.server.channel(), "no certificate": cls.tls_channel(),
                **{name: cls.tls_channel(pair) for name, pair in cls.wrong.items()}}
