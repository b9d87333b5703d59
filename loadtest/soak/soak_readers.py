# SPDX-License-Identifier: Apache-2.0
"""Clients of a soak: each reads without end, and compares each byte with the source."""
import collections
import random
import subprocess
import threading
import time

import grpc

from live_server import MESSAGE_SIZE_OPTIONS

CALL_SECONDS_MAX = 120
# Delay after which a fault may still cause errors, for example if a read joins another.
FAULT_TAIL_SECONDS = 3


class Faults:
    """Records when each fault was on. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._begun = {}
        self._ended = collections.deque(maxlen=1000)

    def begin(self, name):
        with self._lock:
            self._begun[name] = time.monotonic()

    def end(self, name):
        with self._lock:
            self._ended.append((name, time.monotonic() + FAULT_TAIL_SECONDS))
            del self._begun[name]

    def during(self, started):
        """Returns the faults that were on at some time since `started`."""
        with self._lock:
            return set(self._begun) | {name for name, end in self._ended if end >= started}


# Any call may fail with this: the server is busy and says so.
BUSY = grpc.StatusCode.RESOURCE_EXHAUSTED
BUSY_TEXT = "retry later"
# Errors that a call may have if one of these faults was on during it.
EXCUSES = {
    grpc.StatusCode.UNAVAILABLE: {"kill", "device errors"},
    grpc.StatusCode.CANCELLED: {"kill"},
}


class Reader:
    """A thread that calls `read_once` repeatedly."""

    def __init__(self, name, faults, findings, read_once):
        """`read_once(draw)` returns the text that it got and the permitted texts; raises
        grpc.RpcError, or ProgramFailed."""
        self.name = name
        self.right_count = 0
        self.excused_count = 0
        self.busy_count = 0
        self._faults = faults
        self._findings = findings
        self._read_once = read_once
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(random.Random(name),), daemon=True)
        self._thread.start()

    def _run(self, draw):
        while not self._stop.is_set():
            started = time.monotonic()
            try:
                got, right = self._call(draw)
            except ServerBusy:
                self.busy_count += 1
                self._stop.wait(0.1)
            except grpc.RpcError as error:
                self._excuse(started, EXCUSES.get(error.code(), set()),
                             f"{error.code()}: {error.details()}")
            except ProgramFailed as error:
                self._excuse(started, {"kill", "device errors"}, str(error))
            except Exception as error:  # pylint: disable=broad-except
                # Otherwise the thread would end silently.
                self._findings.append(f"{self.name}: {error!r}")
            else:
                if got in right:
                    self.right_count += 1
                else:
                    self._findings.append(f"{self.name}: wrong bytes, {len(got)} of them")

    def _call(self, draw):
        try:
            return self._read_once(draw)
        except grpc.RpcError as error:
            if error.code() == BUSY:
                raise ServerBusy from error
            raise
        except ProgramFailed as error:
            if BUSY_TEXT in str(error):
                raise ServerBusy from error
            raise

    def _excuse(self, started, excuses, text):
        if excuses & self._faults.during(started):
            self.excused_count += 1
            # Pause between calls to a server that is down.
            self._stop.wait(0.1)
        else:
            self._findings.append(f"{self.name}: failed without a reason: {text}")
            self._stop.wait(1)

    def stop(self):
        self._stop.set()
        self._thread.join(CALL_SECONDS_MAX + 60)
        if self._thread.is_alive():
            self._findings.append(f"{self.name}: a call does not end")


class ProgramFailed(Exception):
    pass


class ServerBusy(Exception):
    pass


class ArchiveReader:
    """Calls of one archive, on a channel of its own."""

    def __init__(self, stubs, target, credentials, name, versions):
        """`versions`: for each version that may be served, {id: bytes} in the archive's order."""
        self._stubs = stubs
        self._name = name
        self._versions = versions
        self._texts = [b"".join(version.values()) for version in versions]
        self._ids = list(versions[0])
        channel = grpc.secure_channel(
            target, credentials, options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1),
                                          ("grpc.max_reconnect_backoff_ms", 500)])
        self._rpc = stubs.rpc.ArchiveStub(channel)

    def read_range(self, draw):
        size = draw.randint(1, 200_000)
        offset = draw.randint(0, min(map(len, self._texts)) - size)
        request = self._stubs.pb.ReadRequest(archive=self._name)
        request.range.offset, request.range.size_bytes = offset, size
        answer = self._rpc.Read(request, timeout=CALL_SECONDS_MAX, wait_for_ready=True)
        return answer.data, [text[offset:offset + size] for text in self._texts]

    def read_document(self, draw):
        name = draw.choice(self._ids)
        request = self._stubs.pb.ReadRequest(archive=self._name)
        request.document.id = name.encode()
        stream = self._rpc.ReadStream(request, timeout=CALL_SECONDS_MAX, wait_for_ready=True)
        return (b"".join(answer.data for answer in stream),
                [version[name] for version in self._versions])

    def read_batch(self, draw):
        names = [draw.choice(self._ids) for _ in range(50)]
        request = self._stubs.pb.BatchReadRequest(archive=self._name)
        for tag, name in enumerate(names):
            request.items.add(tag=tag).document.id = name.encode()
        got = {}
        for answer in self._rpc.BatchRead(iter([request]), timeout=CALL_SECONDS_MAX,
                                          wait_for_ready=True):
            for result in answer.results:
                if result.HasField("status"):
                    raise BatchItemFailed(result.status)
                got[result.tag] = result.data
        return ([got.get(tag) for tag in range(len(names))],
                [[version[name] for name in names] for version in self._versions])


class BatchItemFailed(grpc.RpcError):
    def __init__(self, status):
        super().__init__()
        self._status = status

    def code(self):
        return next((code for code in grpc.StatusCode if code.value[0] == self._status.code),
                    grpc.StatusCode.UNKNOWN)

    def details(self):
        return f"an item of a batch: {self._status}"


def scan_with_program(quire, address, certificate, archive, text):
    """Returns a `read_once` of `quire scan`, which resumes by itself."""
    def read_once(_draw):
        run = subprocess.run(
            [quire, "--server", address, "--ca", certificate, "scan", archive],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=CALL_SECONDS_MAX, check=False)
        if run.returncode != 0:
            if not text.startswith(run.stdout):
                raise ValueError(f"wrong bytes before {run.stderr.decode()}")
            raise ProgramFailed(run.stderr.decode())
        return run.stdout, [text]
    return read_once
