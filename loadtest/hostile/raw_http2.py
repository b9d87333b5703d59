#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A connection with as much HTTP/2 as a hostile gRPC client needs: it sends partial
requests, and reads as much of the answers as its test wants."""
import collections
import select
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
ACK = END_STREAM = 1
END_HEADERS = 4
INITIAL_WINDOW_SIZE = 4
WINDOW_DEFAULT = 65_535
FRAME_SIZE_MAX = 16_384


def grpc_frame(message):
    return struct.pack(">BI", 0, len(message)) + message


class RawConnection:
    """With `window` 0 the server may not send the data of any answer; with more than the
    default, as much over all calls."""

    def __init__(self, address, window=WINDOW_DEFAULT, connection=None):
        """Uses `connection`, or a new one."""
        host, port = address.rsplit(":", 1)
        self.socket = connection or socket.create_connection((host, int(port)))
        self.authority = address
        self.received = bytearray()
        self.unsent = bytearray()
        # Unsent rest of each stream's request.
        self.bodies = {}
        self.connection_window = WINDOW_DEFAULT
        self.initial_window = WINDOW_DEFAULT
        self.windows = collections.defaultdict(int)
        self.next_stream = 1
        self.is_open = True
        # Streams that the server has reset.
        self.reset = set()
        self.unsent += PREFACE
        self._frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))
        if window > WINDOW_DEFAULT:
            self._frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", window - WINDOW_DEFAULT))

    def close(self):
        self.socket.close()

    def _frame(self, kind, flags, stream, payload):
        self.unsent += struct.pack(">I", len(payload))[1:] + struct.pack(
            ">BBI", kind, flags, stream) + payload

    def start(self, path, body, indexed=()):
        """Begins a call; sends `body` of its request as flow control permits. The request
        has no end. The server keeps `indexed`, pairs of names and values, in its table of
        headers."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        block = bytearray()
        for name, value in ((":method", "POST"), (":scheme", "http"), (":path", path),
                            (":authority", self.authority), ("te", "trailers"),
                            ("content-type", "application/grpc")):
            # A literal that is not indexed; lengths under 127 take one byte.
            block += bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in indexed:
            block += bytes([0x40, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        self._frame(HEADERS, END_HEADERS, stream, bytes(block))
        self.windows[stream] = self.initial_window
        self.bodies[stream] = memoryview(body)
        return stream

    def start_whole(self, path, body, indexed=()):
        """Begins a call whose request is all of `body`, in one frame."""
        stream = self.start(path, b"", indexed)
        self._frame(DATA, END_STREAM, stream, body)

    def ping(self):
        self._frame(PING, 0, 0, bytes(8))

    def send_only(self):
        """Sends the frames of whole requests, and receives nothing."""
        self.socket.sendall(self.unsent)
        self.unsent.clear()

    def _send_bodies(self):
        for stream in list(self.bodies):
            body = self.bodies[stream]
            size = min(len(body), self.windows[stream], self.connection_window, FRAME_SIZE_MAX)
            if size > 0:
                self._frame(DATA, 0, stream, bytes(body[:size]))
                self.windows[stream] -= size
                self.connection_window -= size
                self.bodies[stream] = body = body[size:]
            if not body:
                del self.bodies[stream]

    def _take_frames(self):
        while len(self.received) >= 9:
            size = int.from_bytes(self.received[:3], "big")
            if len(self.received) < 9 + size:
                return
            kind, flags = self.received[3:5]
            stream = int.from_bytes(self.received[5:9], "big") & 0x7FFFFFFF
            payload = bytes(self.received[9:9 + size])
            del self.received[:9 + size]
            if kind == SETTINGS and not flags & ACK:
                for at in range(0, size, 6):
                    name, value = struct.unpack_from(">HI", payload, at)
                    if name == INITIAL_WINDOW_SIZE:
                        for other in self.windows:
                            self.windows[other] += value - self.initial_window
                        self.initial_window = value
                self._frame(SETTINGS, ACK, 0, b"")
            elif kind == PING and not flags & ACK:
                self._frame(PING, ACK, 0, payload)
            elif kind == WINDOW_UPDATE:
                increment = int.from_bytes(payload, "big")
                if stream == 0:
                    self.connection_window += increment
                else:
                    self.windows[stream] += increment
            elif kind == RST_STREAM or kind == HEADERS and flags & END_STREAM:
                self.reset.add(stream)
                self.bodies.pop(stream, None)
            elif kind == GOAWAY:
                self.is_open = False

    def receive(self):
        """Takes data that has arrived; returns True if there was any. BlockingIOError: none yet."""
        data = self.socket.recv(1 << 16, socket.MSG_DONTWAIT)
        self.is_open = bool(data)
        self.received += data
        self._take_frames()
        return bool(data)

    def pump(self, seconds):
        """Sends and receives for `seconds`; returns True if any data was sent or received."""
        until = time.monotonic() + seconds
        has_moved = False
        while self.is_open and (left := until - time.monotonic()) > 0:
            if len(self.unsent) < FRAME_SIZE_MAX:
                self._send_bodies()
            # poll() takes descriptors of any number, unlike select().
            waiting = select.poll()
            waiting.register(self.socket,
                             select.POLLIN | (select.POLLOUT if self.unsent else 0))
            events = dict(waiting.poll(left * 1_000)).get(self.socket.fileno(), 0)
            writable = events & select.POLLOUT
            readable = events & ~select.POLLOUT
            try:
                if writable:
                    sent = self.socket.send(self.unsent[:4 * FRAME_SIZE_MAX], socket.MSG_DONTWAIT)
                    del self.unsent[:sent]
                    has_moved = has_moved or sent > 0
                if readable:
                    has_moved = self.receive() or has_moved
            except BlockingIOError:
                pass
            except OSError:
                self.is_open = False
        return has_moved
