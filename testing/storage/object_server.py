# SPDX-License-Identifier: GPL-3.0-or-later
"""An object store for tests: serves ranges of files properly, and lies as asked.

Files below a directory are objects. Without lies it answers as nginx and S3 do: 206 with
Content-Range, 304, 404, 412, 416. Every request is recorded. It runs in a thread of the test, or
as a program:

usage: object_server.py DIRECTORY [--port N] [--delay-ms N]
"""
import argparse
import asyncio
import collections
import hashlib
import pathlib
import re
import threading
import time
import urllib.parse

Request = collections.namedtuple("Request", "path headers status sent time")
RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
BLOCK = 64 << 10


class Lies:
    """What the store does wrong from now on; each takes effect for requests that begin later.

    Numbers say how many of the next requests are affected; None: all of them."""
    NAMES = ("ignore_range", "ignore_if_match", "shift_range", "truncate", "stall", "status_503",
             "status_429", "status_500", "status_403", "swap", "no_etag", "wrong_length", "close",
             "wrong_total")

    def __init__(self):
        self.left = {name: 0 for name in self.NAMES}
        # Only requests for paths with this text are affected.
        self.path = ""

    def set(self, name, count=None, path=""):
        assert name in self.left, name
        self.left[name] = count
        self.path = path

    def clear(self):
        self.left = {name: 0 for name in self.NAMES}
        self.path = ""

    def take(self, name, path):
        left = self.left[name]
        if left == 0 or self.path not in path:
            return False
        if left is not None:
            self.left[name] = left - 1
        return True


class ObjectServer:
    """Serves `directory` on 127.0.0.1 until stop()."""

    def __init__(self, directory, port=0, delay_s=0.0, check=None):
        self.directory = pathlib.Path(directory)
        self.delay_s = delay_s
        # Called with method, path and headers; returns a status to refuse with, or None.
        self.check = check
        self.lies = Lies()
        self.requests = []
        self.connections = 0
        self._etags = {}
        self._loop = asyncio.new_event_loop()
        self._writers = set()
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", port, backlog=1024))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def stop(self):
        """Closes the port and all connections."""
        if self._thread is None:
            return

        async def end():
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            for task in asyncio.all_tasks(self._loop) - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join()
        self._thread = None
        self._loop.close()

    def clear(self):
        self.requests.clear()

    def gets(self, text=""):
        """Returns the requests for paths with this text."""
        return [request for request in self.requests if text in request.path]

    def _etag(self, path, status):
        key = (path, status.st_mtime_ns, status.st_size, status.st_ino)
        if key not in self._etags:
            self._etags[key] = '"' + hashlib.md5(repr(key[1:]).encode()).hexdigest() + '"'
        return self._etags[key]

    async def _serve(self, reader, writer):
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {}
                for line in head[1:]:
                    name, _, value = line.partition(":")
                    headers[name.strip().lower()] = value.strip()
                method, path, _ = head[0].split(" ")
                await self._answer(method, path, headers, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, method, path, headers, writer):
        begun = time.monotonic()
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        lies = self.lies

        async def send(status, extra=(), body=b"", length=None, recorded=None):
            length = len(body) if length is None else length
            # Before the client can see the answer: a test looks for it then.
            self.requests.append(Request(path, headers, status, len(body), begun))
            lines = [f"HTTP/1.1 {status} X", f"Content-Length: {length}", *extra]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
            writer.write(body)
            await writer.drain()

        for name, status in (("status_503", 503), ("status_429", 429), ("status_500", 500),
                             ("status_403", 403)):
            if lies.take(name, path):
                return await send(status, body=b"<Error><Code>SlowDown</Code></Error>")
        if lies.take("close", path):
            self.requests.append(Request(path, headers, 0, 0, begun))
            raise ConnectionError
        refused = self.check(method, path, headers) if self.check else None
        if refused:
            return await send(refused, body=b"<Error><Code>AccessDenied</Code></Error>")
        file = self.directory / urllib.parse.unquote(path).lstrip("/")
        if lies.take("swap", path):
            file = file.with_name(file.name + ".swapped")
        try:
            status = file.stat()
            if not file.is_file():
                raise FileNotFoundError
        except OSError:
            return await send(404, body=b"<Error><Code>NoSuchKey</Code></Error>")
        etag = self._etag(file, status)
        size = status.st_size
        tags = [] if lies.take("no_etag", path) else [f"ETag: {etag}"]
        wanted = headers.get("if-match")
        if wanted not in (None, etag) and not lies.take("ignore_if_match", path):
            return await send(412, tags)
        if headers.get("if-none-match") == etag:
            return await send(304, tags)
        found = RANGE.match(headers.get("range", ""))
        first, last, code = 0, size - 1, 200
        if found and not lies.take("ignore_range", path):
            code = 206
            if found[1]:
                first, last = int(found[1]), min(int(found[2] or size), size - 1)
            else:
                first = max(0, size - int(found[2]))
            if first > last:
                return await send(416, [f"Content-Range: bytes */{size}"])
        if lies.take("shift_range", path):
            # As a store that takes a range for a suffix.
            first, last = size - (last - first + 1), size - 1
        with file.open("rb") as opened:
            opened.seek(first)
            body = opened.read(last - first + 1)
        extra = list(tags)
        if code == 206:
            total = size + 1 if lies.take("wrong_total", path) else size
            extra.append(f"Content-Range: bytes {first}-{last}/{total}")
        if lies.take("wrong_length", path):
            return await send(code, extra, body[:-1])
        if lies.take("truncate", path):
            await send(code, extra, body[:len(body) // 2], len(body))
            raise ConnectionError
        if lies.take("stall", path):
            await send(code, extra, body[:len(body) // 2], len(body))
            await asyncio.sleep(3600)
        return await send(code, extra, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay-ms", type=float, default=0)
    arguments = parser.parse_args()
    server = ObjectServer(arguments.directory, arguments.port, arguments.delay_ms / 1000)
    print(server.url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
