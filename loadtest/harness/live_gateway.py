#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A quire-http for tests and benchmarks, and HTTP as bytes on a socket."""
import re
import socket
import time
import urllib.request

from live_process import LiveProcess

# Only a hang takes this long.
PATIENCE_S = 60


class LiveGateway(LiveProcess):
    """A quire-http on a free port of the loopback address, or on `listen`."""

    def __init__(self, quire_http, server, *flags, listen="127.0.0.1:0"):
        super().__init__(
            "quire-http", [quire_http, "--server", server, "--listen", listen, "--admin",
                           "127.0.0.1:0", *flags], r"listening on (\S+)")

    @property
    def url(self):
        return f"http://{self.address}"

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def connect(self, **options):
        return RawConnection(("127.0.0.1", self.port), **options)

    def metric(self, name):
        with urllib.request.urlopen(self.metrics_url, timeout=PATIENCE_S) as page:
            text = page.read().decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else None

    def wait_for(self, name, value):
        """Waits until a metric has the value."""
        end = time.monotonic() + PATIENCE_S
        while (found := self.metric(name)) != value:
            if time.monotonic() > end:
                raise TimeoutError(f"{name} is {found}, not {value}")
            time.sleep(0.01)


class Reply:
    """Status, headers by lower-case name, and body of an answer."""

    def __init__(self, status, headers, body, is_complete):
        self.status = status
        self.headers = headers
        self.body = body
        self.is_complete = is_complete

    def __repr__(self):
        return f"{self.status} {self.headers} {self.body[:200]!r} complete={self.is_complete}"


class RawConnection:
    """A socket that sends any bytes and reads answers without interpreting paths."""

    def __init__(self, address, receive_buffer=None):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_S)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def _more(self):
        """False if the gateway has closed the connection."""
        try:
            data = self.socket.recv(1 << 20)
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)

    def is_closed(self):
        """Waits for the end of the connection; what comes before is in `buffer`."""
        while self._more():
            pass
        return True

    def take(self, size):
        """Up to `size` bytes; fewer at the end."""
        while len(self.buffer) < size and self._more():
            pass
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def read_head(self):
        """(status, headers); None at the end."""
        while b"\r\n\r\n" not in self.buffer:
            if not self._more():
                return None
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return int(lines[0].split()[1]), headers

    def _read_chunked(self):
        body = b""
        while True:
            while b"\r\n" not in self.buffer:
                if not self._more():
                    return body, False
            line, _, self.buffer = self.buffer.partition(b"\r\n")
            size = int(line, 16)
            piece = self.take(size + 2)
            if len(piece) < size + 2:
                return body + piece, False
            body += piece[:-2]
            if size == 0:
                return body, True

    def read_reply(self, is_head=False):
        """A Reply; None if the connection ends instead."""
        head = self.read_head()
        if head is None:
            return None
        status, headers = head
        if is_head or status in (204, 304):
            return Reply(status, headers, b"", True)
        if headers.get("transfer-encoding") == "chunked":
            return Reply(status, headers, *self._read_chunked())
        if "content-length" in headers:
            size = int(headers["content-length"])
            body = self.take(size)
            return Reply(status, headers, body, len(body) == size)
        self.is_closed()
        body, self.buffer = self.buffer, b""
        return Reply(status, headers, body, True)

    def ask(self, target, method="GET", **headers):
        """The reply to a request for a target, bytes or text, as it is."""
        raw = target if isinstance(target, bytes) else target.encode()
        lines = {"Host": "localhost", **{n.replace("_", "-"): v for n, v in headers.items()}}
        self.send(b"%s %s HTTP/1.1\r\n%s\r\n" % (
            method.encode(), raw,
            "".join(f"{name}: {value}\r\n" for name, value in lines.items()).encode()))
        return self.read_reply(is_head=method == "HEAD")
