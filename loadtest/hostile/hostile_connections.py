#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""More connections than --memory permits, each with one call and a full table of HPACK: the
server refuses and counts those beyond its limit, keeps the others, and its memory.

usage: hostile_connections.py QUIRED CONNECTIONS MEMORY_MIB [--measured]
--measured compares resident memory with MEMORY_MIB.
"""
import pathlib
import re
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from hostile_case import REQUEST_SIZE_MAX, HostileCase
from live_server import raise_file_limit
from raw_http2 import PING, RawConnection, grpc_frame

PATIENCE_SECONDS = 60
# No address has more than its share.
ADDRESS_COUNT = 50
# Entries of 34 bytes each; the table has 4,096.
TABLE_ENTRIES = [(f"x{n:02}", "") for n in range(110)]
FILES_MAX = 19_000


class ManyConnectionsTest(HostileCase):
    CONNECTION_COUNT = 0
    MEMORY_MIB = 0

    @classmethod
    def setUpClass(cls):
        raise_file_limit(FILES_MAX)
        super().setUpClass()

    @classmethod
    def make_documents(cls):
        return super().make_documents()[:200]

    def metric(self, name):
        return int(re.search(rf"^{re.escape(name)} (\d+)$", self.server.metrics(),
                             re.MULTILINE).group(1))

    def connect(self, number):
        host, port = self.server.address.rsplit(":", 1)
        source = (f"127.0.1.{number % ADDRESS_COUNT + 1}", 0)
        return socket.create_connection((host, int(port)), PATIENCE_SECONDS, source)

    def open_one(self, number):
        """Returns a connection after its call, or None if the server has closed it."""
        raw = RawConnection(self.server.address, connection=self.connect(number))
        self.raw_connections.append(raw)
        raw.start_whole("/quire.v1.Archive/ListArchives", grpc_frame(b""),
                        indexed=TABLE_ENTRIES)
        return raw if self.answered(raw, lambda data: b"grpc-status" in data) else None

    def answered(self, raw, is_answer):
        """Sends what is unsent, and returns True if the answer came before the end."""
        received = b""
        try:
            raw.send_only()
            while not is_answer(received):
                if not (more := raw.socket.recv(1 << 16)):
                    return False
                received += more
        except ConnectionError:
            return False
        return True

    def test_connections_beyond_the_limit_are_refused_and_counted(self):
        limit = min(self.metric(f'quire_connections_limit{{resource="{resource}"}}')
                    for resource in ("memory", "descriptors"))
        opened = [raw for number in range(self.CONNECTION_COUNT)
                  if (raw := self.open_one(number))]
        # The channel of this test has one as well.
        wanted = min(limit - 1, self.CONNECTION_COUNT)
        self.assertAlmostEqual(len(opened), wanted, delta=1)
        self.assertEqual(self.metric('quire_connections_refused_total{reason="memory"}'),
                         self.CONNECTION_COUNT - len(opened))
        # gRPC has ended none, and all are served.
        self.assertEqual(self.metric('quire_connections_refused_total{reason="requests"}'), 0)
        for raw in opened:
            raw.ping()
            self.assertTrue(self.answered(raw, lambda data: bytes([0, 0, 8, PING, 1]) in data))
        self.assertEqual(self.metric("quire_connections"), len(opened) + 1)
        print(f"{len(opened)} connections of at most {limit}, "
              f"{self.server.resident_peak_bytes() >> 20} MiB of {self.memory_mib}")
        # The memory is free again.
        while self.raw_connections:
            self.raw_connections.pop().close()
        self.wait_until("quire_connections 1\n")

    def test_idle_connections_that_give_way_to_requests_are_counted(self):
        """Partly received requests take the memory of gRPC, which then ends idle connections."""
        idle = [self.open_one(number) for number in range(20)]
        self.assertTrue(all(idle))
        counter = 'quire_connections_refused_total{reason="requests"}'
        before = self.metric(counter)
        body = struct.pack(">BI", 0, REQUEST_SIZE_MAX) + bytes(REQUEST_SIZE_MAX - 1)
        # 80 MiB of requests fill a server of 130 MiB.
        senders = [self.connect_raw() for _ in range(4 * max(1, self.MEMORY_MIB // 130))]
        for sender in senders:
            for _ in range(20):
                sender.start("/quire.v1.Archive/Read", body)
        until = time.monotonic() + PATIENCE_SECONDS
        while self.metric(counter) == before:
            self.assertLess(time.monotonic(), until)
            for sender in senders:
                sender.pump(0.02)


if __name__ == "__main__":
    HostileCase.quired = sys.argv[1]
    ManyConnectionsTest.CONNECTION_COUNT = int(sys.argv[2])
    ManyConnectionsTest.MEMORY_MIB = int(sys.argv[3])
    if "--measured" in sys.argv:
        HostileCase.asserted_memory_mib = int(sys.argv[3])
    del sys.argv[1:]
    unittest.main(verbosity=2)
