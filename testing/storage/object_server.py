# SPDX-License-Identifier: GPL-3.0-or-later
"""An object store for tests: serves ranges of files properly, and lies as asked.

Files below a directory are objects. Without lies it answers as nginx and S3 do: 206 with
Content-Range, 304, 404, 412, 416. It takes objects as S3 does, also in parts and under the
conditions If-Match and If-None-Match. Every request is recorded. It runs in a thread of the test, or
as a program:

usage: object_server.py DIRECTORY [--port N] [--delay-ms N]
"""
import argparse
import asyncio
import collections
import email.utils
import hashlib
import html
import pathlib
import re
import threading
import time
import urllib.parse

Request = collections.namedtuple("Request", "path headers status sent time method body")
RANGE = re.compile(r"bytes=(\d*)-(\d*)$")
BLOCK = 64 << 10


class Lies:
    """What the store does wrong from now on; each takes effect for requests that begin later.

    Numbers say how many of the next requests are affected; None: all of them."""
    NAMES = ("ignore_range", "ignore_if_match", "shift_range", "truncate", "stall", "status_503",
             "status_429", "status_500", "status_403", "swap", "no_etag", "wrong_length", "close",
             "wrong_total", "lost_answer", "complete_error", "complete_late_500",
             "complete_taken_over", "stall_part", "no_time")

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
        # Of unfinished uploads, by id: the path, and parts by number.
        self.uploads = {}
        self._upload_count = 0
        # Objects in one answer of a list.
        self.list_page = 1000
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
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self._answer(method, path, headers, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _name(self, path):
        return self.directory / urllib.parse.unquote(path).lstrip("/")

    def _write(self, file, body):
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(file.name + ".writing")
        new.write_bytes(body)
        new.rename(file)
        return [f"ETag: {self._etag(file, file.stat())}"]

    def _list_objects(self, path, query):
        root = self._name(path)
        names = sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())
        names = [name for name in names if name.startswith(query["prefix"]) and
                 name > query.get("continuation-token", "")]
        found = "".join(
            f"<Contents><Key>{html.escape(name)}</Key><LastModified>"
            f"{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime((root / name).stat().st_mtime))}"
            f"</LastModified></Contents>" for name in names[:self.list_page])
        if len(names) > self.list_page:
            found += ("<NextContinuationToken>" + html.escape(names[self.list_page - 1]) +
                      "</NextContinuationToken>")
        return f"<ListBucketResult>{found}</ListBucketResult>".encode()

    def _list(self, path, prefix):
        found = "".join(
            f"<Upload><Key>{html.escape(key)}</Key><UploadId>{number}</UploadId></Upload>"
            for number, (name, _) in sorted(self.uploads.items())
            for key in [urllib.parse.unquote(name)[len(path):]] if key.startswith(prefix))
        return f"<ListMultipartUploadsResult>{found}</ListMultipartUploadsResult>".encode()

    def _change(self, method, path, query, headers, body):
        """Does what S3 does; returns status, headers and body, or None for a read."""
        if method == "POST" and "uploads" in query:
            self._upload_count += 1
            number = f"upload{self._upload_count}"
            self.uploads[number] = (path, {})
            return 200, [], (f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId>"
                             "</InitiateMultipartUploadResult>").encode()
        if method == "GET" and "uploads" in query:
            return 200, [], self._list(path, query["prefix"])
        if method == "GET" and query.get("list-type") == "2":
            return 200, [], self._list_objects(path, query)
        if "uploadId" in query:
            if query["uploadId"] not in self.uploads:
                return 404, [], b"<Error><Code>NoSuchUpload</Code></Error>"
            _, parts = self.uploads[query["uploadId"]]
            if method == "PUT":
                etag = '"' + hashlib.md5(body).hexdigest() + '"'
                parts[int(query["partNumber"])] = (etag, body)
                return 200, [f"ETag: {etag}"], b""
            if method == "POST" and self.lies.take("complete_error", path):
                return 200, [], (b"  <?xml version='1.0'?><Error><Code>InternalError</Code>"
                                 b"<Message>try again</Message></Error>")
            if method == "POST":
                named = re.findall("<PartNumber>(.*?)</PartNumber><ETag>(.*?)</ETag>",
                                   body.decode())
                if [(int(n), html.unescape(e)) for n, e in named] != [
                        (n, etag) for n, (etag, _) in sorted(parts.items())]:
                    return 400, [], b"<Error><Code>InvalidPart</Code></Error>"
                if headers.get("if-none-match") == "*" and self._name(path).is_file():
                    return 412, [], b"<Error><Code>PreconditionFailed</Code></Error>"
                self._write(self._name(path), b"".join(b for _, (_, b) in sorted(parts.items())))
                if self.lies.take("complete_taken_over", path):
                    self._write(self._name(path), bytes(self._name(path).stat().st_size))
            del self.uploads[query["uploadId"]]
            if method == "POST" and self.lies.take("complete_late_500", path):
                return 500, [], b"<Error><Code>InternalError</Code></Error>"
            return (204, [], b"") if method == "DELETE" else (
                200, [], b"<CompleteMultipartUploadResult/>")
        file = self._name(path)
        if method == "PUT":
            etag = self._etag(file, file.stat()) if file.is_file() else None
            if (headers.get("if-none-match") == "*" and etag) or (
                    headers.get("if-match", etag) != etag):
                return 412, [], b"<Error><Code>PreconditionFailed</Code></Error>"
            return 200, self._write(file, body), b""
        if method == "DELETE":
            file.unlink(missing_ok=True)
            return 204, [], b""
        return None

    async def _answer(self, method, target, headers, body_in, writer):
        path, _, query_text = target.partition("?")
        query = dict(urllib.parse.parse_qsl(query_text, keep_blank_values=True))
        begun = time.monotonic()
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        lies = self.lies

        async def send(status, extra=(), body=b"", length=None, recorded=None):
            length = len(body) if length is None else length
            # Before the client can see the answer: a test looks for it then.
            self.requests.append(
                Request(target, headers, status, len(body), begun, method, body_in))
            lines = [f"HTTP/1.1 {status} X", f"Content-Length: {length}", *extra]
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
            writer.write(b"" if method == "HEAD" else body)
            await writer.drain()

        for name, status in (("status_503", 503), ("status_429", 429), ("status_500", 500),
                             ("status_403", 403)):
            if lies.take(name, path):
                return await send(status, body=b"<Error><Code>SlowDown</Code></Error>")
        if lies.take("close", path):
            self.requests.append(Request(target, headers, 0, 0, begun, method, body_in))
            raise ConnectionError
        refused = self.check(method, path, headers) if self.check else None
        if refused:
            return await send(refused, body=b"<Error><Code>AccessDenied</Code></Error>")
        if "partNumber" in query and lies.take("stall_part", path):
            self.requests.append(Request(target, headers, 0, 0, begun, method, body_in))
            await asyncio.sleep(3600)
        changed = self._change(method, path, query, headers, body_in)
        if changed is not None:
            if lies.take("lost_answer", path):
                self.requests.append(Request(target, headers, 0, 0, begun, method, body_in))
                raise ConnectionError
            return await send(*changed)
        file = self._name(path)
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
        if not lies.take("no_time", path):
            extra.append("Last-Modified: " + email.utils.formatdate(status.st_mtime, usegmt=True))
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
