#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Functions shared by the scripts of loadtest: documents for archives, a real quired that
serves one, and Python stubs generated from the protos alone."""
import contextlib
import importlib
import io
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import tarfile
import threading
import time
import types
import urllib.request

import grpc

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60
MESSAGE_SIZE_OPTIONS = [("grpc.max_receive_message_length", -1),
                        ("grpc.max_send_message_length", -1)]


def make_stubs(directory):
    """Runs protoc over the protos of the repository, into `directory`.

    Returns a namespace: `pb` and `rpc` (messages and stubs of the Archive service),
    `details` (error details), `standard` (health and reflection).
    """
    protos = ["quire/v1/archive.proto", "quire/v1/error_details.proto",
              "quire/v1/wire_encoding.proto", "loadtest/harness/standard_services.proto"]
    subprocess.run(
        ["protoc", f"-I{ROOT}/proto", f"-I{ROOT}", f"--python_out={directory}",
         f"--grpc_python_out={directory}",
         "--plugin=protoc-gen-grpc_python=/usr/bin/grpc_python_plugin", *protos], check=True)
    sys.path.insert(0, str(directory))
    return types.SimpleNamespace(
        pb=importlib.import_module("quire.v1.archive_pb2"),
        rpc=importlib.import_module("quire.v1.archive_pb2_grpc"),
        details=importlib.import_module("quire.v1.error_details_pb2"),
        standard=importlib.import_module("loadtest.harness.standard_services_pb2"))


def make_documents(count, seed, size_max=40_000):
    """Returns (id, bytes) of `count` documents of words that repeat, as in text."""
    draw = random.Random(seed)
    words = [bytes(draw.choices(b"etaoinshrdlucmfw", k=draw.randint(2, 9)))
             for _ in range(3000)]
    documents = []
    for number in range(count):
        text = b" ".join(draw.choices(words, k=draw.randint(0, size_max // 6)))
        documents.append((f"site-{number % 7}/page-{number:05}.html", text))
    # In the order in which a tar of them is read.
    return sorted(documents)


def write_corpus(documents, stem):
    """Writes STEM.tar, STEM.raw (all bytes) and STEM.tsv (offset, size, id)."""
    offset = 0
    with tarfile.open(f"{stem}.tar", "w", format=tarfile.PAX_FORMAT) as tar, \
            open(f"{stem}.raw", "wb") as raw, open(f"{stem}.tsv", "w") as index:
        for name, data in documents:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
            raw.write(data)
            index.write(f"{offset}\t{len(data)}\t{name}\n")
            offset += len(data)


def parse_size(text):
    """Returns the bytes of "16KiB", "4MiB", "1GiB"."""
    return int(text[:-3]) << {"KIB": 10, "MIB": 20, "GIB": 30}[text[-3:].upper()]


def run_measured(command, standard_output=None):
    """Returns (seconds, CPU seconds, peak resident bytes, standard output).

    With `standard_output`, a path, the output goes there instead.
    """
    started = time.monotonic()
    target = open(standard_output, "wb") if standard_output else subprocess.PIPE
    with subprocess.Popen(list(map(str, command)), stdout=target) as process:
        if standard_output:
            target.close()
        output = b"" if standard_output else process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit code {process.returncode}")
    return (time.monotonic() - started, usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss * 1024, output)


def raise_file_limit(wanted):
    """Raises the limit on open files of this process and its children to `wanted`, if possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


class LiveServer:
    """A quired that serves archives on a free port of the loopback or another address.

    A context manager; on a clean exit it asserts that the server drains on SIGTERM and
    ends with code 0.
    """

    def __init__(self, quired, archives, *flags, host="127.0.0.1", port=0, command=()):
        """`command` precedes quired's own, such as one that changes to a network
        namespace, where `host` is an address."""
        self.process = subprocess.Popen(
            [*command, quired, "serve", *map(str, archives), "--listen", f"{host}:{port}",
             "--metrics", "127.0.0.1:0", *map(str, flags)],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.messages = []
        self.address = None
        self.metrics_url = None
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read_messages, daemon=True)
        self._reader.start()
        if not self._listening.wait(START_SECONDS_MAX) or self.address is None:
            self.process.kill()
            raise RuntimeError("quired did not start:\n" + "".join(self.messages))

    def _read_messages(self):
        for line in self.process.stderr:
            self.messages.append(line)
            match = re.search(r"metrics on (http://\S+)", line)
            if match:
                self.metrics_url = match.group(1)
            # The last line of the start.
            match = re.search(r"listening on (\S+:\d+)", line)
            if match and self.address is None:
                self.address = match.group(1)
                self._listening.set()
        self._listening.set()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.process.kill()
            print("".join(["the server said:\n", *self.messages[-40:]]), file=sys.stderr)
        else:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"none {STOP_SECONDS_MAX} s after SIGTERM"
        self._reader.join()
        self.process.stderr.close()
        if kind is None and code != 0:
            raise RuntimeError(f"quired: exit code {code}; it said:\n" + "".join(self.messages))

    def channel(self):
        return grpc.insecure_channel(
            self.address, options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1)])

    def _memory(self, field):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE).group(1)) * 1024

    def resident_bytes(self):
        return self._memory("VmRSS")

    def resident_peak_bytes(self):
        return self._memory("VmHWM")

    def cpu_seconds(self):
        """Returns the server's processor time so far, to the nanosecond."""
        # By clock_getcpuclockid(3).
        return time.clock_gettime((~self.process.pid << 3) | 2)

    @contextlib.contextmanager
    def resident_samples(self, interval_seconds=0.005):
        """Returns a list that gets the resident bytes once per interval until the block
        ends, starting at its begin."""
        samples = [self.resident_bytes()]
        ended = threading.Event()

        def sample():
            while not ended.wait(interval_seconds):
                samples.append(self.resident_bytes())

        thread = threading.Thread(target=sample, daemon=True)
        thread.start()
        try:
            yield samples
        finally:
            ended.set()
            thread.join()
            samples.append(self.resident_bytes())

    def metrics(self):
        """Returns the text of /metrics."""
        with urllib.request.urlopen(self.metrics_url, timeout=30) as response:
            return response.read().decode()

    def is_ready(self):
        """Returns True if /readyz succeeds: it makes a call through the socket of clients."""
        url = self.metrics_url.removesuffix("/metrics") + "/readyz"
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status == 200

    def check_health(self, stubs, service, timeout=30):
        """Returns the status of a service by the standard health service; 1 is SERVING."""
        with self.channel() as channel:
            call = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=stubs.standard.HealthRequest.SerializeToString,
                response_deserializer=stubs.standard.HealthResponse.FromString)
            return call(stubs.standard.HealthRequest(service=service), timeout=timeout,
                        wait_for_ready=True).status


def error_of(stubs, error):
    """Returns (code, reason, message, has RetryInfo) of a grpc.RpcError."""
    reason, retry = None, False
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in stubs.details.RpcStatus.FromString(value).details:
                if detail.type_url.endswith("/google.rpc.ErrorInfo"):
                    info = stubs.details.RpcErrorInfo.FromString(detail.value)
                    reason = info.reason if info.domain == "quire" else None
                retry = retry or detail.type_url.endswith("/google.rpc.RetryInfo")
    return error.code(), reason, error.details(), retry
