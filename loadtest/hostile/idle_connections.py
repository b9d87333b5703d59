#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds idle HTTP/2 connections to a server until standard input ends.

usage: idle_connections.py ADDRESS COUNT

They come from many addresses of the loopback, as a server admits a share of its connections from
each client. Prints a line once all have been answered, refused or closed, and one at the end: the
connections that are open, those that got a GOAWAY or were closed, and those not made.
"""
import json
import select
import socket
import sys
import time

from raw_http2 import RawConnection

PER_ADDRESS = 500
# The least that a server must need for all answers; the rest counts as open.
SETTLE_SECONDS = 10
# Connections begun before their answers are looked at: fewer than a listener's backlog.
BURST = 100


class Holder:
    def __init__(self, address):
        self.address = address
        host, port = address.rsplit(":", 1)
        self._to = host, int(port)
        self._poll = select.epoll()
        self._open = {}
        # Connections whose server has sent its settings, or anything.
        self._answered = set()
        self.refused = 0
        self.failed = 0

    def connect(self, number):
        source = f"127.0.{1 + number // PER_ADDRESS // 250}.{1 + number // PER_ADDRESS % 250}"
        try:
            made = socket.create_connection(self._to, 10, source_address=(source, 0))
        except OSError:
            self.failed += 1
            return
        made.settimeout(None)
        connection = RawConnection(self.address, connection=made)
        self._open[made.fileno()] = connection
        self._send(connection)
        self._poll.register(made.fileno(), select.EPOLLIN)

    def _send(self, connection):
        try:
            connection.send_only()
        except OSError:
            connection.is_open = False

    def take(self, seconds):
        """Takes what arrives within that time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            for descriptor, _ in self._poll.poll(left, 1000):
                self._take(descriptor)

    def _take(self, descriptor):
        connection = self._open[descriptor]
        try:
            connection.receive()
            if connection.is_open:
                self._send(connection)
        except BlockingIOError:
            return
        except OSError:
            connection.is_open = False
        self._answered.add(descriptor)
        if not connection.is_open:
            self._poll.unregister(descriptor)
            del self._open[descriptor]
            self._answered.discard(descriptor)
            connection.close()
            self.refused += 1

    def figures(self):
        return {"open": len(self._answered), "silent": len(self._open) - len(self._answered),
                "refused": self.refused, "failed": self.failed}


def main():
    address, count = sys.argv[1], int(sys.argv[2])
    holder = Holder(address)
    for number in range(count):
        holder.connect(number)
        if number % BURST == BURST - 1:
            holder.take(0.01)
    end = time.monotonic() + SETTLE_SECONDS
    while holder.figures()["silent"] and time.monotonic() < end:
        holder.take(0.1)
    print(json.dumps(holder.figures()), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        holder.take(0.2)
    print(json.dumps(holder.figures()), flush=True)


if __name__ == "__main__":
    main()
