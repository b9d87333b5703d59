#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What one hostile client costs the others: p50 and p99 of an honest reader alone,
then beside a client that stops reading its streams, one that cancels 10,000 calls,
one that opens 1,000 streams; and what memory the server takes meanwhile.

    loadtest/hostile_load.py --build build/release

Every client is a process of its own, and all share the machine's cores with the
server: beside a process that only burns CPU time, the `control`, one sees what is
not the server's doing; the client that cancels bursts of calls is to be held against
one that makes the same calls and reads the answers. Each case has an honest run
without company right before it, which its figures are compared with. Ends within four minutes.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import grpc

from live_server import (MESSAGE_SIZE_OPTIONS, LiveServer, make_documents, make_stubs,
                         raise_file_limit, write_corpus)

ARCHIVE = "bench"
CANCELLED_CALLS = 10_000
OPEN_STREAMS = 1_000
# The server's limit for one connection.
STREAMS_PER_CONNECTION = 250
AIM = 2.0


def connect(address):
    return grpc.insecure_channel(
        address, options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1)])


def tell_ready():
    print("ready", flush=True)


def wait_for_the_end():
    sys.stdin.read()


def play_stalled(stubs, address):
    """A scan and a batch of whose answers nothing is read but the first."""
    pb = stubs.pb
    with connect(address) as channel:
        archive = stubs.rpc.ArchiveStub(channel)
        item = pb.BatchItem(tag=1, range=pb.ByteRange(offset=0, size_bytes=500_000))
        message = pb.BatchReadRequest(archive=ARCHIVE, items=[item] * 100)
        streams = [archive.Scan(pb.ScanRequest(archive=ARCHIVE)),
                   archive.BatchRead(message for _ in range(1_000))]
        for stream in streams:
            next(stream)
        tell_ready()
        wait_for_the_end()


def play_bursts(stubs, address, end_call):
    """10,000 calls and more, 100 at a time; `end_call` ends each."""
    pb = stubs.pb
    request = pb.ReadRequest(archive=ARCHIVE, range=pb.ByteRange(offset=0, size_bytes=200_000))
    os.set_blocking(sys.stdin.fileno(), False)
    with connect(address) as channel:
        archive = stubs.rpc.ArchiveStub(channel)
        archive.Read(request)
        tell_ready()
        count = 0
        while sys.stdin.buffer.raw.read(1) is None or count < CANCELLED_CALLS:
            calls = [archive.Read.future(request) for _ in range(100)]
            for call in calls:
                end_call(call)
            count += len(calls)
            # In bursts, so that what it costs itself is not all that is seen.
            time.sleep(0.02)
        print(f"{count:,} calls", flush=True)


def play_asking(stubs, address):
    """The control of play_cancelling(): the same calls, but all are answered."""
    play_bursts(stubs, address, lambda call: call.result())


def play_cancelling(stubs, address):
    """Each call is cancelled at once."""
    play_bursts(stubs, address, lambda call: call.cancel())


def play_opening(stubs, address):
    """1,000 streams that stay open, half of them scans that are not read on."""
    pb = stubs.pb
    channels = [connect(address) for _ in range(OPEN_STREAMS // STREAMS_PER_CONNECTION)]
    streams, refused = [], 0
    for number in range(OPEN_STREAMS):
        archive = stubs.rpc.ArchiveStub(channels[number // STREAMS_PER_CONNECTION])
        if number % 2:
            streams.append(archive.Scan(pb.ScanRequest(archive=ARCHIVE)))
        else:
            first = pb.BatchReadRequest(archive=ARCHIVE, items=[
                pb.BatchItem(tag=1, range=pb.ByteRange(offset=0, size_bytes=100))])
            streams.append(archive.BatchRead(iter_then_wait(first)))
    for stream in streams:
        try:
            next(stream)
        except grpc.RpcError:
            refused += 1
    tell_ready()
    wait_for_the_end()
    print(f"{refused} of {OPEN_STREAMS} streams refused", flush=True)
    os._exit(0)  # 500 threads wait in iter_then_wait().


def iter_then_wait(first):
    yield first
    time.sleep(600)


def play_control(_stubs, _address):
    """Burns a fifth of a core, as a client of many small calls does."""
    os.set_blocking(sys.stdin.fileno(), False)
    tell_ready()
    while sys.stdin.buffer.raw.read(1) is None:
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        time.sleep(0.02)


PLAYS = {"control": play_control, "stalled": play_stalled, "asking": play_asking,
         "cancelling": play_cancelling, "opening": play_opening}
TITLES = {"control": "a process that burns CPU time",
          "stalled": "a client that stops reading",
          "asking": "a client that makes bursts of 100 calls, 200 kB each, and reads all",
          "cancelling": f"a client that cancels {CANCELLED_CALLS:,} calls and more",
          "opening": f"a client with {OPEN_STREAMS:,} open streams"}


def read_honestly(build, server, stem, arguments):
    """(p50, p99) in milliseconds of 16 KiB ranges, each compared with the source."""
    result = subprocess.run(
        [build / "bin" / "quire-loadtest", ARCHIVE, "--server", server.address, "--source",
         f"{stem}.raw", "--requests", str(arguments.requests), "--in-flight",
         str(arguments.in_flight), "--json", "-"],
        stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    latency = json.loads(result.stdout)["latency_ms"]
    return latency["p50"], latency["p99"]


def measure(arguments, build, folder):
    stem = f"{folder}/text"
    write_corpus(make_documents(arguments.documents, seed=11), stem)
    subprocess.run([build / "bin" / "quired", "build", "-o", f"{stem}.quire", "--codec", "zstd",
                    f"{stem}.tar"], check=True, stdout=subprocess.DEVNULL)
    rows = []
    with LiveServer(str(build / "bin" / "quired"), [f"{ARCHIVE}={stem}.quire"],
                    "--memory", arguments.memory, "--stall-timeout", "600") as server:
        read_honestly(build, server, stem, arguments)
        for name in PLAYS:
            alone, beside, said = [], [], ""
            for _ in range(arguments.rounds):
                alone.append(read_honestly(build, server, stem, arguments))
                with subprocess.Popen(
                        [sys.executable, __file__, "--play", name, server.address],
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hostile:
                    assert hostile.stdout.readline() == "ready\n", name
                    beside.append(read_honestly(build, server, stem, arguments))
                    said = hostile.communicate("\n", timeout=60)[0].strip()
            rows.append((name, alone, beside, said, server.resident_bytes(),
                         server.resident_peak_bytes()))
    return rows


def print_report(arguments, rows):
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; {arguments.requests:,} "
          f"honest reads of 16 KiB, {arguments.in_flight} at a time; medians of "
          f"{arguments.rounds} rounds; --memory {arguments.memory}\n")
    print("| beside | p50 alone, ms | p50 beside | p99 alone, ms | p99 beside | ratio of p99 "
          "| RSS, MiB | RSS at most |")
    print("|---|---|---|---|---|---|---|---|")
    for name, alone, beside, said, resident, peak in rows:
        p50, p99 = (statistics.median(run[i] for run in alone) for i in (0, 1))
        p50_beside, p99_beside = (statistics.median(run[i] for run in beside) for i in (0, 1))
        title = TITLES[name] + (f" ({said})" if said else "")
        print(f"| {title} | {p50:.2f} | {p50_beside:.2f} | {p99:.2f} | {p99_beside:.2f} "
              f"| {p99_beside / p99:.2f} | {resident >> 20} | {peak >> 20} |")
    print(f"\nAim: p99 within {AIM} times, memory within --memory.")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build/release",
                        help="build folder with quired and quire-loadtest")
    parser.add_argument("--requests", type=int, default=30_000, help="of each honest run")
    parser.add_argument("--in-flight", type=int, default=4, help="honest calls at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--memory", default="256MiB", help="of the server")
    parser.add_argument("--play", nargs=2, metavar=("WHICH", "ADDRESS"),
                        help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if arguments.play:
        raise_file_limit(4 * OPEN_STREAMS)
        name, address = arguments.play
        with tempfile.TemporaryDirectory() as folder:
            PLAYS[name](make_stubs(folder), address)
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(arguments, arguments.build.resolve(), folder)
    print_report(arguments, rows)


if __name__ == "__main__":
    main()
