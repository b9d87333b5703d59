#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests how clients leave a server: connections that grow old, SIGTERM with and without a
delay for load balancers, and a second SIGTERM.

usage: drain_test.py QUIRED
"""
import contextlib
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_server import LiveServer, make_stubs

# Only a hang takes this long.
PATIENCE_S = 120
SERVING, NOT_SERVING = 1, 2
TEXT = b"the only document\n" * 5000


class OpenBatch:
    """A batch that stays open: the server has a call in flight until it is closed."""

    def __init__(self, channel):
        self.items = queue.SimpleQueue()
        self.call = STUBS.rpc.ArchiveStub(channel).BatchRead(iter(self.items.get, None))

    def read(self, offset, size):
        request = STUBS.pb.BatchReadRequest(archive="docs")
        item = request.items.add(tag=offset)
        item.range.offset, item.range.size_bytes = offset, size
        self.items.put(request)
        for response in self.call:
            for result in response.results:
                return result.data
        return None

    def await_end(self):
        """Returns the status with which the server ends it."""
        try:
            for _ in self.call:
                pass
        except grpc.RpcError:
            pass
        self.items.put(None)
        return self.call.code()

    def close(self):
        self.items.put(None)
        return self.await_end()


class DrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-drain-")))
        (cls.directory / "document").write_bytes(TEXT)
        cls.archive = cls.directory / "docs.quire"
        subprocess.run([QUIRED, "build", "--quiet", "-o", cls.archive,
                        cls.directory / "document"], check=True)

    @contextlib.contextmanager
    def serve(self, *flags):
        """Serves during the block, which must stop the server."""
        server = LiveServer(QUIRED, [self.archive], *flags)
        self.addCleanup(server.process.kill)
        yield server
        self.assertEqual(server.process.wait(PATIENCE_S), 0, "".join(server.messages))

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    def await_line(self, server, text):
        self.wait_for(lambda: any(text in line for line in server.messages), text)

    def is_ready(self, server):
        address = urllib.parse.urlparse(server.metrics_url).netloc
        try:
            with urllib.request.urlopen(f"http://{address}/readyz", timeout=PATIENCE_S) as page:
                return page.status == 200
        except urllib.error.HTTPError as error:
            error.close()
            self.assertEqual(error.code, 503)
            return False

    def expect_read(self, channel):
        request = STUBS.pb.ReadRequest(archive="docs")
        request.range.offset, request.range.size_bytes = 5, 1000
        answer = STUBS.rpc.ArchiveStub(channel).Read(request, timeout=PATIENCE_S)
        self.assertEqual(answer.data, TEXT[5:1005])

    def test_answers_while_load_balancers_look_elsewhere(self):
        with self.serve("--drain-delay", "24h", "--drain-timeout", "24h") as server:
            for service in "", "quire.v1.Archive", "quire.v1.Archive/docs":
                self.assertEqual(server.check_health(STUBS, service), SERVING)
            self.assertTrue(self.is_ready(server))
            server.process.send_signal(signal.SIGTERM)
            for service in "", "quire.v1.Archive", "quire.v1.Archive/docs":
                self.wait_for(lambda s=service: server.check_health(STUBS, s) == NOT_SERVING,
                              service)
            self.assertFalse(self.is_ready(server))
            # Both for a client that connects only now.
            with server.channel() as channel:
                self.expect_read(channel)
                batch = OpenBatch(channel)
                self.assertEqual(batch.read(0, 100), TEXT[:100])
                # A reload would make it look alive again.
                server.process.send_signal(signal.SIGHUP)
                self.await_line(server, "SIGHUP: ignored")
                self.assertEqual(server.check_health(STUBS, ""), NOT_SERVING)
                # The call must not last a day.
                server.process.send_signal(signal.SIGTERM)
                self.assertIn(batch.await_end(), (grpc.StatusCode.UNAVAILABLE,
                                                  grpc.StatusCode.CANCELLED))
        self.assertIn("a second signal", "".join(server.messages))

    def test_stops_after_the_delay(self):
        with self.serve("--drain-delay", "300ms") as server, server.channel() as channel:
            batch = OpenBatch(channel)
            self.assertEqual(batch.read(0, 100), TEXT[:100])
            server.process.send_signal(signal.SIGTERM)
            self.await_line(server, "answered for 300ms")
            self.assertEqual(batch.read(50, 100), TEXT[50:150])
            self.assertEqual(batch.close(), grpc.StatusCode.OK)

    def test_a_second_signal_ends_the_drain(self):
        with self.serve("--drain-timeout", "24h") as server, server.channel() as channel:
            batch = OpenBatch(channel)
            self.assertEqual(batch.read(0, 100), TEXT[:100])
            server.process.send_signal(signal.SIGTERM)
            self.await_line(server, "stopping")
            # The call in flight continues.
            self.assertEqual(batch.read(100, 100), TEXT[100:200])
            server.process.send_signal(signal.SIGTERM)
            self.assertIn(batch.await_end(), (grpc.StatusCode.UNAVAILABLE,
                                              grpc.StatusCode.CANCELLED))

    def test_an_old_connection_gets_no_new_calls_and_loses_none(self):
        with self.serve("--connection-age", "1s") as server, server.channel() as channel:
            states = queue.SimpleQueue()
            channel.subscribe(states.put, try_to_connect=True)
            batch = OpenBatch(channel)
            self.assertEqual(batch.read(0, 100), TEXT[:100])
            while states.get(timeout=PATIENCE_S) != grpc.ChannelConnectivity.READY:
                pass
            while states.get(timeout=PATIENCE_S) == grpc.ChannelConnectivity.READY:
                pass
            self.assertEqual(batch.read(200, 100), TEXT[200:300])
            self.expect_read(channel)
            self.assertEqual(batch.close(), grpc.StatusCode.OK)
            channel.unsubscribe(states.put)
            server.process.send_signal(signal.SIGTERM)

    def test_refuses_ages_that_make_no_sense(self):
        for flag, value, reason in (
                ("--connection-age", "10ms", "must be a time from 1s to 24h"),
                ("--connection-age", "0", "must be a time from 1s to 24h"),
                ("--connection-age", "soon", "must be a time from 1s to 24h"),
                ("--drain-delay", "-1s", "must be a time from 0 to 24h")):
            refused = subprocess.run([QUIRED, "serve", self.archive, flag, value],
                                     capture_output=True, text=True, timeout=PATIENCE_S)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"{flag}: {reason}", refused.stderr)


if __name__ == "__main__":
    QUIRED, = sys.argv[1:2]
    with tempfile.TemporaryDirectory(prefix="quire-drain-stubs-") as stubs:
        STUBS = make_stubs(stubs)
        unittest.main(argv=sys.argv[:1])
