#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http: limits, slow and absent peers, probes, draining, damaged archives.

usage: http_limit_test.py QUIRED QUIRE_HTTP
"""
import contextlib
import gzip
import json
import os
import pathlib
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import GatewayCase, PROGRAMS, build, response, run_tests
from live_gateway import PATIENCE_S, LiveGateway, RawConnection
from live_server import LiveServer


class LimitTest(GatewayCase):
    def start(self, *flags, **options):
        return self.enterContext(LiveGateway(PROGRAMS.quire_http, self.server.address, *flags, **options))

    def test_slow_headers(self):
        gateway = self.start("--header-timeout", "500ms")
        silent = self.enterContext(gateway.connect())
        drip = self.enterContext(gateway.connect())
        stop = threading.Event()

        def send_slowly():
            for byte in b"GET /v1/docs HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000:
                if stop.wait(0.05):
                    return
                try:
                    drip.send(bytes([byte]))
                except OSError:
                    return

        sender = threading.Thread(target=send_slowly)
        sender.start()
        self.assertTrue(silent.is_closed())
        self.assertTrue(drip.is_closed())
        stop.set()
        sender.join()
        gateway.wait_for('quire_http_refused_connections_total{reason="header_timeout"}', 2)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def read(self, gateway, target, **headers):
        with gateway.connect() as connection:
            return connection.ask(target, **headers)

    def test_a_reader_that_takes_nothing(self):
        gateway = self.start("--idle-timeout", "1s")
        with gateway.connect(receive_buffer=4096) as connection:
            connection.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.read_head()
            end = time.monotonic() + PATIENCE_S
            while gateway.metric("quire_http_cut_answers_total") == 0:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.05)
        # The connection of the request for the metrics.
        gateway.wait_for("quire_http_connections", 1)

    def test_connections(self):
        gateway = self.start("--connections", "3", "--connections-per-address", "2")
        first, second = (self.enterContext(gateway.connect()) for _ in range(2))
        self.assertEqual(first.ask("/v1/docs").status, 200)
        self.assertEqual(second.ask("/v1/docs").status, 200)
        with gateway.connect() as third:
            reply = third.read_reply()
            self.assertTrue(reply is None or reply.status == 429, reply)
        self.assertEqual(
            gateway.metric('quire_http_refused_connections_total{reason="address_connections"}'),
            1)
        first.socket.close()
        gateway.wait_for("quire_http_connections", 2)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def test_it_raises_the_limit_of_descriptors(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        gateway = self.start()
        self.assertEqual(resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE),
                         (hard, hard))

    def test_without_descriptors(self):
        if b"__ubsan" in pathlib.Path(PROGRAMS.quire_http).read_bytes():
            self.skipTest("the sanitizer's check of virtual calls needs descriptors itself")
        gateway = self.start()
        # Those that it has, and few more.
        open_count = len(os.listdir(f"/proc/{gateway.process.pid}/fd"))
        subprocess.run(["prlimit", "--pid", str(gateway.process.pid),
                        f"--nofile={open_count + 5}"], check=True)
        held = [self.enterContext(gateway.connect()) for _ in range(20)]
        before = gateway.cpu_seconds()
        time.sleep(2)
        # It waits, and does not spin.
        self.assertLess(gateway.cpu_seconds() - before, 0.5)
        for connection in held:
            connection.socket.close()
        # 503 until gRPC, which also lacked descriptors, connects again.
        deadline = time.monotonic() + 60
        while (status := self.read(gateway, "/v1/docs").status) == 503:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        self.assertEqual(status, 200)

    def test_slow_readers_share_the_memory(self):
        gateway = self.start("--memory", "96MiB")
        with contextlib.ExitStack() as stack:
            readers = [stack.enter_context(gateway.connect(receive_buffer=4096))
                       for _ in range(500)]
            for reader in readers:
                reader.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            statuses = [reader.read_head()[0] for reader in readers]
            # Each is served or told to come back, and nothing is cut.
            self.assertEqual(set(statuses) - {200, 503}, set())
            self.assertGreater(statuses.count(200), 200)
            for reader, status in zip(readers, statuses):
                if status == 200:
                    self.assertEqual(len(reader.take(20_000)), 20_000)
            self.assertLessEqual(gateway.metric("quire_http_memory_bytes"),
                                 gateway.metric("quire_http_memory_limit_bytes"))
        gateway.wait_for("quire_http_connections", 1)
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)

    def test_a_spool_directory_that_is_missing(self):
        run = subprocess.run([PROGRAMS.quire_http, "--spool-dir", self.directory / "absent"],
                             capture_output=True, check=False, timeout=60)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertIn(b"absent: no files can be created there: No such file", run.stderr)

    def test_a_page_larger_than_the_spool(self):
        directory = self.directory / "large"
        directory.mkdir()
        body = b"all alike\n" * 2_000_000
        warc = directory / "large.warc"
        warc.write_bytes(response("http://a/", "2021-01-01T00:00:00Z", gzip.compress(body),
                                  "Content-Encoding: gzip"))
        subprocess.run([PROGRAMS.quired, "build", "--quiet", "-o", directory / "a.quire", warc],
                       check=True, capture_output=True)
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"a={directory}/a.quire"]))
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address, "--spool-size",
                                                "16MiB"))
        reply = self.read(gateway, "/v1/a/page/http://a/")
        self.assertEqual(reply.status, 503)
        self.assertIn(b"--spool-size", reply.body)
        self.assertEqual(gateway.metric("quire_http_spool_bytes"), 0)

    def test_probes(self):
        gateway = self.start()
        port = int(gateway.metrics_url.split(":")[2].split("/")[0])
        with RawConnection(("127.0.0.1", port)) as admin:
            for target, status in ("/healthz", 200), ("/readyz", 200), ("/v1/docs", 404):
                self.assertEqual(admin.ask(target).status, status, target)
            # Probes are not requests of clients.
            self.assertEqual(gateway.metric("quire_http_requests_in_flight"), 0)
            self.assertEqual(gateway.metric("quire_http_request_seconds_count"), 0)
            self.assertEqual(self.read(gateway, "/metrics").status, 404)
            while (count := gateway.metric("quire_http_request_seconds_count")) == 0:
                time.sleep(0.01)
            self.assertEqual(count, 1)
            self.assertEqual(gateway.metric('quire_http_requests_total{status="404"}'), 1)
            self.assertIsNone(gateway.metric('quire_http_requests_total{status="200"}'))

    def test_durations_are_in_buckets(self):
        name = "quire_http_request_seconds"
        gateway = self.start()
        for _ in range(3):
            self.assertEqual(self.read(gateway, "/v1/docs").status, 200)
        while gateway.metric(f"{name}_count") < 3:
            time.sleep(0.01)
        buckets = [gateway.metric(f'{name}_bucket{{le="{bound}"}}')
                   for bound in ("0.001", "0.0025", "0.5", "10", "+Inf")]
        self.assertEqual(buckets, sorted(buckets))
        self.assertGreaterEqual(buckets[-1], 3)
        self.assertGreater(gateway.metric(f"{name}_sum"), 0)
        self.assertGreater(gateway.metric("process_resident_memory_bytes"), 1 << 20)

    def test_a_server_that_is_away(self):
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, "127.0.0.1:1", "--timeout", "1s"))
        reply = self.read(gateway, "/v1/docs/doc/a")
        self.assertIn(reply.status, (503, 504))
        if reply.status == 503:
            self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        port = int(gateway.metrics_url.split(":")[2].split("/")[0])
        with RawConnection(("127.0.0.1", port)) as admin:
            self.assertEqual(admin.ask("/readyz").status, 503)
            self.assertEqual(admin.ask("/healthz").status, 200)
        end = time.monotonic() + PATIENCE_S
        while not any("the server 127.0.0.1:1 (--server) does not answer" in line
                      for line in gateway.messages):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_a_server_that_has_gone_holds_no_threads_for_long(self):
        server = LiveServer(PROGRAMS.quired, [f"docs={self.directory}/docs.quire"])
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address,
                                                "--timeout", "10m"))
        self.assertEqual(self.read(gateway, "/v1/docs").status, 200)
        server.process.kill()
        server.process.wait()
        # With --timeout as the limit, these would wait longer than the client does.
        self.assertEqual(self.read(gateway, "/v1/docs/doc/a").status, 503)
        port = int(gateway.metrics_url.split(":")[2].split("/")[0])
        with RawConnection(("127.0.0.1", port)) as admin:
            self.assertEqual(admin.ask("/readyz").status, 503)

    def test_it_drains(self):
        gateway = LiveGateway(PROGRAMS.quire_http, self.server.address)
        with gateway:
            reading = self.enterContext(gateway.connect(receive_buffer=4096))
            idle = self.enterContext(gateway.connect())
            self.assertEqual(idle.ask("/v1/docs").status, 200)
            reading.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, headers = reading.read_head()
            gateway.process.send_signal(signal.SIGTERM)
            self.assertTrue(idle.is_closed())
            with self.assertRaises(OSError):
                gateway.connect()
            body = reading.take(int(headers["content-length"]))
            self.assertEqual(status, 200)
            self.assertTrue(body == b"".join(self.documents.values()))

    def test_a_drain_that_takes_too_long(self):
        gateway = LiveGateway(PROGRAMS.quire_http, self.server.address, "--drain-timeout", "200ms")
        with gateway:
            reading = self.enterContext(gateway.connect(receive_buffer=4096))
            reading.send(b"GET /v1/docs/space HTTP/1.1\r\nHost: localhost\r\n\r\n")
            reading.read_head()

    def test_it_stops_while_a_silent_server_is_asked_at_the_start(self):
        listening = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        gateway = LiveGateway(PROGRAMS.quire_http, f"127.0.0.1:{listening.getsockname()[1]}",
                              "--timeout", "10m")
        with gateway:
            listening.settimeout(PATIENCE_S)
            connection, _ = listening.accept()
            with connection:
                # An empty SETTINGS frame of HTTP/2: the connection is ready for calls.
                connection.sendall(bytes.fromhex("000000040000000000"))
                connection.settimeout(PATIENCE_S)
                while b"ListArchives" not in connection.recv(1 << 16):
                    pass
                started = time.monotonic()
                gateway.process.send_signal(signal.SIGTERM)
                self.assertEqual(gateway.process.wait(PATIENCE_S), 0)
                self.assertLess(time.monotonic() - started, 20)

    def test_command_line(self):
        for flags, word in ((["--listen", "0.0.0.0:0"], "--behind-tls"),
                            (["--listen", "nonsense"], "HOST:PORT"),
                            (["--memory", "1MiB"], "--memory"),
                            (["--header-timeout", "0"], "--header-timeout")):
            run = subprocess.run([PROGRAMS.quire_http, *flags], capture_output=True, text=True,
                                 timeout=PATIENCE_S, check=False)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(word, run.stderr)

    def test_unix_socket(self):
        path = self.directory / "http.sock"
        self.start(listen=f"unix:{path}")
        with RawConnection(str(path)) as connection:
            self.assertEqual(connection.ask("/v1/docs").status, 200)


class AccessLogTest(unittest.TestCase):
    def test_a_pipe_without_a_reader_is_refused(self):
        directory = self.enterContext(tempfile.TemporaryDirectory(prefix="quire-http-log-"))
        os.mkfifo(f"{directory}/log")
        gateway = subprocess.run(
            [PROGRAMS.quire_http, "--listen", f"unix:{directory}/s", "--access-log",
             f"{directory}/log"],
            stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(gateway.returncode, 1)
        self.assertIn("cannot open the access log", gateway.stderr)


class DamagedTest(unittest.TestCase):
    def test_damage_is_a_502_or_a_cut(self):
        directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-http-damaged-")))
        data = random.Random(23).randbytes(2_000_000)
        build(PROGRAMS.quired, directory / "docs.quire", {"a": data})
        segment, = (directory / "docs.quire").glob("segment-*")
        stored = bytearray(segment.read_bytes())
        stored[len(stored) // 2] ^= 1
        segment.write_bytes(stored)
        server = self.enterContext(LiveServer(PROGRAMS.quired, [f"docs={directory}/docs.quire"]))
        log = directory / "access.log"
        gateway = self.enterContext(LiveGateway(PROGRAMS.quire_http, server.address, "--access-log", log))
        with gateway.connect() as connection:
            reply = connection.ask("/v1/docs/doc/a")
            self.assertEqual(reply.status, 200)
            self.assertFalse(reply.is_complete)
            self.assertTrue(reply.body == data[:len(reply.body)])
        end = time.monotonic() + PATIENCE_S
        while not (text := log.read_text()).endswith("\n"):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        line = json.loads(text)
        self.assertTrue(line["cut"])
        self.assertIn("is damaged", line["error"])
        statuses = set()
        with gateway.connect() as connection:
            for first in range(0, len(data), 50_000):
                reply = connection.ask("/v1/docs/doc/a", Range=f"bytes={first}-{first + 99}")
                statuses.add(reply.status)
                if reply.status == 206:
                    self.assertEqual(reply.body, data[first:first + 100])
        self.assertEqual(statuses, {206, 502})
        gateway.wait_for("quire_http_requests_in_flight", 0)


if __name__ == "__main__":
    run_tests()
