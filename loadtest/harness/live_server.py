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
import subprocess
import sys
import tarfile
import threading
import time
import types
import urllib.request

import grpc

from live_process import LiveProcess

ROOT = pathlib.Path(__file__).resolve().parents[2]
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


class LiveServer(LiveProcess):
    """A quired that serves archives on a free port of the loopback or another address."""

    def __init__(self, quired, archives, *flags, host="127.0.0.1", port=0, metrics_port=0,
                 command=()):
        """`command` precedes quired's own, such as one that changes to a network
        namespace, where `host` is an address."""
        super().__init__(
            "quired", [*command, quired, "serve", *archives, "--listen", f"{host}:{port}",
                       "--metrics", f"127.0.0.1:{metrics_port}", *flags], r"listening on (\S+:\d+)")

    def channel(self):
        return grpc.insecure_channel(
            self.address, options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1)])

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
