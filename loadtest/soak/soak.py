#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a server under mixed load for hours, with continuous faults.

    loadtest/soak/soak.py --build build/release --hours 8

Readers of several kinds compare each answer with the source, over TLS. Meanwhile, in
turn: reads of the device fail (EIO), disks of outputs are full (ENOSPC), archives are
replaced and reloaded, certificates are renewed, half-written ones are left behind, and
in the first half the server is killed and restarted. A finding is: a wrong byte, a
call that fails without a fault to excuse it, a reader that gets no answer once a fault
has ended, memory over --memory, and in the second half memory or open files that grow.
Prints each step and each finding; exit code 1 if there is a finding.
"""
import itertools
import pathlib
import random
import signal
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_setup import build_text_archive, find_programs, make_parser
from certificates import Authority
from live_server import LiveServer, make_documents, make_stubs, parse_size
from soak_readers import BUSY_TEXT, ArchiveReader, Faults, Reader, scan_with_program

RECOVERY_SECONDS_MAX = 120
# Permitted variation of memory and open files without a leak.
MEMORY_GROWTH_MAX = 1.05
MEMORY_GROWTH_BYTES_MAX = 16 << 20
FILE_GROWTH_MAX = 30


def free_port():
    """Returns a port below those that the kernel assigns: it is free again after a kill."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as attempt:
            try:
                attempt.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Certificates:
    """An authority, and the certificates it signs for the server."""

    def __init__(self, directory):
        self._authority = Authority(directory, "ca")
        self.ca = self._authority.pem
        self.pem, self.key = directory / "server.pem", directory / "server.key"
        self.renew()

    def renew(self):
        """Replaces the pair by a new one."""
        pem, key = self._authority.sign("new")
        key.rename(self.key)
        pem.rename(self.pem)

    def served(self, address):
        """Returns the certificate that a server shows, as PEM."""
        context = ssl.create_default_context(cafile=self.ca)
        context.set_alpn_protocols(["h2"])
        host, _, port = address.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=RECOVERY_SECONDS_MAX) as plain, \
                context.wrap_socket(plain, server_hostname=host) as connection:
            return ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True)).strip()


class Soak:
    def __init__(self, arguments, directory):
        self.directory = directory
        self.memory_bytes_max = parse_size(arguments.memory)
        self.quired, self.quire = find_programs(arguments.build, "quired", "quire")
        library = pathlib.Path(arguments.build).resolve() / "lib" / "libfaulty_io.so"
        if not library.is_file():
            sys.exit(f"no {library}; build it first: cmake --build {arguments.build} --target "
                     "faulty_io")
        self.fault_file = directory / "server-faults"
        # The library replaces pread(), which io_uring would not call.
        self.command = ["env", f"LD_PRELOAD={library}", f"FAULTY_IO={self.fault_file}",
                        "QUIRED_EXPERIMENT_ENGINE=pread"]
        self.full_disk = directory / "full-disk"
        self.full_disk.write_text("write\n")
        self.with_full_disk = ["env", f"LD_PRELOAD={library}", f"FAULTY_IO={self.full_disk}"]
        self.findings = []
        self.faults = Faults()
        self.done = {}
        self.memory_samples = []
        self.kills_until = 0.0
        self.certificates = Certificates(directory)
        self.make_archives(arguments)
        self.flags = ["--memory", arguments.memory, "--tls-cert", self.certificates.pem,
                      "--tls-key", self.certificates.key]
        self.port = free_port()
        self.start_server()
        self.start_readers(make_stubs(directory))

    def make_archives(self, arguments):
        docs = make_documents(arguments.documents, arguments.seed)
        self.docs = dict(docs)
        build_text_archive(self.quired, str(self.directory / "docs"), docs,
                           ["--dictionary-size", "256KiB"])
        self.versions = []
        for number in range(2):
            texts = make_documents(arguments.documents // 10, arguments.seed + 1 + number)
            stem = self.directory / f"version-{number}"
            build_text_archive(self.quired, str(stem), texts, ["--dictionary-size", "64KiB"])
            self.versions.append(dict(texts))
        self.turning = self.directory / "turning.quire"
        (self.directory / "version-0.quire").rename(self.turning)
        self.spare = self.directory / "version-1.quire"

    def start_server(self):
        self.server = LiveServer(self.quired, [f"docs={self.directory}/docs.quire",
                                               f"turning={self.turning}"],
                                 *self.flags, port=self.port, command=self.command)

    def start_readers(self, stubs):
        credentials = grpc.ssl_channel_credentials(self.certificates.ca.read_bytes())
        docs, turning = (
            ArchiveReader(stubs, self.server.address, credentials, name, versions)
            for name, versions in (("docs", [self.docs]), ("turning", self.versions)))
        scan = scan_with_program(self.quire, self.server.address, self.certificates.ca, "docs",
                                 b"".join(self.docs.values()))
        self.readers = [
            Reader(name, self.faults, self.findings, read_once) for name, read_once in (
                ("ranges", docs.read_range), ("documents", docs.read_document),
                ("batches", docs.read_batch), ("scans", scan),
                ("ranges of a replaced archive", turning.read_range),
                ("documents of a replaced archive", turning.read_document))]

    def find(self, text):
        self.findings.append(text)
        print(f"FINDING: {text}", flush=True)

    def expect(self, condition, text):
        if not condition:
            self.find(text)

    def pause(self, seconds):
        """Samples memory meanwhile."""
        end = time.monotonic() + seconds
        while True:
            resident = self.server.resident_bytes()
            self.memory_samples.append(resident)
            self.expect(resident <= self.memory_bytes_max,
                        f"{resident >> 20} MiB are resident, --memory is "
                        f"{self.memory_bytes_max >> 20} MiB")
            if time.monotonic() >= end:
                return
            time.sleep(0.2)

    def await_log(self, text, since):
        end = time.monotonic() + RECOVERY_SECONDS_MAX
        while not any(text in line for line in self.server.messages[since:]):
            if time.monotonic() > end:
                self.find(f"the server did not say '{text}'")
                return
            time.sleep(0.02)

    def await_answers(self, after):
        """Waits until each reader has got one more right answer: no data is lost for good."""
        before = [reader.right_count for reader in self.readers]
        end = time.monotonic() + RECOVERY_SECONDS_MAX
        for reader, count in zip(self.readers, before):
            while reader.right_count == count:
                if time.monotonic() > end:
                    self.find(f"{reader.name}: no answer after {after}")
                    break
                self.pause(0.1)

    # Each of these is one fault, from its begin to its end.

    def device_errors(self, draw):
        self.faults.begin("device errors")
        self.fault_file.write_text(f"read {draw.choice([1, 2, 5, 50])}\n")
        self.pause(1)
        self.fault_file.unlink()
        self.faults.end("device errors")

    @staticmethod
    def run_unless_busy(command, stdout):
        end = time.monotonic() + RECOVERY_SECONDS_MAX
        while True:
            run = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout,
                                 stderr=subprocess.PIPE, text=True, check=False)
            if BUSY_TEXT not in run.stderr or time.monotonic() > end:
                return run

    def full_outputs(self, _draw):
        """A program without space reports it, and leaves no file that looks complete."""
        client = [self.quire, "--server", self.server.address, "--ca", self.certificates.ca]
        out = self.directory / "out"
        for command in ([self.quired, "build", "-q", "-o", out, f"{self.directory}/version-1.tar"],
                        [*client, "export", "turning", "--tar", out],
                        [*client, "range", "docs", "0", "1MiB", "-o", out]):
            run = self.run_unless_busy([*self.with_full_disk, *map(str, command)],
                                       stdout=subprocess.DEVNULL)
            self.expect(run.returncode != 0 and "No space left" in run.stderr and not out.exists(),
                        f"{command[1:]} on a full disk: {run.returncode}, {run.stderr}")
            self.pause(0)
        with open("/dev/full", "wb") as full:
            run = self.run_unless_busy([*client, "scan", "turning"], stdout=full)
        self.expect(run.returncode != 0 and "No space left" in run.stderr,
                    f"scan to a full disk: {run.returncode}, {run.stderr}")

    def kill(self, draw):
        self.faults.begin("kill")
        self.server.process.kill()
        self.server.process.wait()
        self.server.process.stderr.close()
        time.sleep(draw.random())
        self.start_server()
        self.faults.end("kill")

    def reload(self, _draw):
        since = len(self.server.messages)
        aside = self.directory / "aside.quire"
        self.turning.rename(aside)
        self.spare.rename(self.turning)
        aside.rename(self.spare)
        self.server.process.send_signal(signal.SIGHUP)
        self.await_log("archive turning", since)

    def await_certificate(self, since):
        self.server.process.send_signal(signal.SIGHUP)
        self.await_log("certificate", since)

    def renew_certificate(self, _draw):
        since = len(self.server.messages)
        self.certificates.renew()
        self.await_certificate(since)
        self.expect_certificate(self.certificates.pem.read_text().strip())

    def half_a_certificate(self, draw):
        since = len(self.server.messages)
        whole = self.certificates.pem.read_bytes()
        self.certificates.pem.write_bytes(whole[:draw.randrange(len(whole) * 3 // 4)])
        self.await_certificate(since)
        self.expect_certificate(whole.decode().strip())
        self.certificates.pem.write_bytes(whole)

    def expect_certificate(self, pem):
        self.expect(self.certificates.served(self.server.address) == pem,
                    "another certificate than expected is served")

    def run(self, seconds, draw):
        kinds = [self.device_errors, self.full_outputs, self.reload, self.renew_certificate,
                 self.half_a_certificate]
        self.await_answers("the start")
        middle = time.monotonic() + seconds / 2
        self.turns(itertools.cycle([self.kill, *kinds]), middle, draw)
        self.memory_samples.clear()
        open_files = self.open_files()
        self.turns(itertools.cycle(kinds), middle + seconds / 2, draw)
        self.check_growth(open_files)
        for reader in self.readers:
            reader.stop()
        # Findings of single readers were not printed yet.
        with self.server:
            pass

    def turns(self, kinds, end, draw):
        # Each kind at least once, however short the time.
        for number, kind in enumerate(kinds):
            if time.monotonic() > end and number >= 6:
                return
            kind(draw)
            self.done[kind.__name__] = self.done.get(kind.__name__, 0) + 1
            self.await_answers(kind.__name__)
            self.pause(0.5)

    def open_files(self):
        return len(list(pathlib.Path(f"/proc/{self.server.process.pid}/fd").iterdir()))

    def check_growth(self, files_before):
        """Checks the second half, in which one process served; its first third warms up."""
        third = len(self.memory_samples) // 3
        before = statistics.median(self.memory_samples[third:2 * third])
        after = statistics.median(self.memory_samples[2 * third:])
        self.expect(after <= before * MEMORY_GROWTH_MAX + MEMORY_GROWTH_BYTES_MAX,
                    f"memory grew from {before / 2**20:.0f} to {after / 2**20:.0f} MiB")
        files = self.open_files()
        self.expect(files <= files_before + FILE_GROWTH_MAX,
                    f"open files grew from {files_before} to {files}")
        self.growth = (f"memory {before / 2**20:.0f} MiB, then {after / 2**20:.0f}; open files "
                       f"{files_before}, then {files}")

    def report(self):
        print("faults:", ", ".join(f"{name} {count}" for name, count in self.done.items()))
        for reader in self.readers:
            print(f"{reader.name}: {reader.right_count} right, "
                  f"{reader.excused_count} failed while a fault was on, "
                  f"{reader.busy_count} refused by a busy server")
        print(self.growth)
        for finding in self.findings[:50]:
            print(f"FINDING: {finding}")
        print(f"{len(self.findings)} findings")


def main():
    parser = make_parser(__doc__, "quired", "quire")
    parser.add_argument("--hours", type=float, default=0.05, help="(default: %(default)s)")
    parser.add_argument("--memory", default="128MiB",
                        help="of the server; less than the text, so that the device is read "
                             "(default: %(default)s)")
    parser.add_argument("--documents", type=int, default=2000,
                        help="of 20 KB on average (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of texts and faults")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quire-soak-") as directory:
        soak = Soak(arguments, pathlib.Path(directory))
        try:
            soak.run(arguments.hours * 3600, random.Random(arguments.seed))
        finally:
            soak.server.process.kill()
        soak.report()
    return 1 if soak.findings else 0


if __name__ == "__main__":
    sys.exit(main())
