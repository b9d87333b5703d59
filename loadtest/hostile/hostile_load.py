#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the effect of one hostile client on others: p50 and p99 of an honest reader
alone, then next to a client that stops reading its streams, one that cancels 10,000
calls, one that opens 1,000 streams, while they begin and once they are only kept open;
and the memory of the server meanwhile.

    loadtest/hostile/hostile_load.py --build build/release

Every client is a process with its own address, by which the server distinguishes
clients: the honest one uses IPv4, the hostile one IPv6, so the server listens on all of
the machine's addresses. All share the machine's cores with the server. Controls in the
same run show effects that the server does not cause: a process that only burns CPU time;
the same calls, cancelled or read, made to another server with an empty handler; and the
hostile client at the kernel's lowest priority (SCHED_IDLE), which gets only idle time.
A hostile client with its own core shows the cost of one on another machine: the servers
and the honest reader have all other cores. A process that takes all it can of the core
that server and reader share shows the kernel's scheduling alone.
Each case is compared with an honest run alone right before it. Ends within ten minutes
on an idle machine.
"""
import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import (build_text_archive, empty_service, find_programs, machine_load,
                         make_parser)
from markdown_table import markdown
from live_server import (MESSAGE_SIZE_OPTIONS, LiveServer, make_documents, make_stubs,
                         raise_file_limit)

PROGRAMS = ("quired", "quire-loadtest", "empty_server")
ARCHIVE = "bench"
BURST = 100
READ_SIZE = 200_000
CANCELLED_CALLS = 10_000
OPEN_STREAMS = 1_000
# The server's limit for one connection.
STREAMS_PER_CONNECTION = 250
GREEDY_CONNECTIONS = 50
GREEDY_CALLS_PER_SECOND = 100
# Environment variable of a client's own token.
GREEDY_TOKEN = "QUIRE_GREEDY_TOKEN"


def connect(address):
    return grpc.insecure_channel(
        address, options=[*MESSAGE_SIZE_OPTIONS, ("grpc.use_local_subchannel_pool", 1)])


def tell_ready():
    print("ready", flush=True)


def wait_for_the_end():
    sys.stdin.read()


def play_stalled(stubs, address):
    """A scan and a batch of whose answers only the first is read."""
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
    """Makes 10,000 calls or more, 100 at a time; `end_call` ends each, true if refused."""
    pb = stubs.pb
    request = pb.ReadRequest(archive=ARCHIVE, range=pb.ByteRange(offset=0, size_bytes=READ_SIZE))
    os.set_blocking(sys.stdin.fileno(), False)
    with connect(address) as channel:
        archive = stubs.rpc.ArchiveStub(channel)
        archive.Read(request)
        tell_ready()
        count = refused = 0
        while sys.stdin.buffer.raw.read(1) is None or count < CANCELLED_CALLS:
            calls = [archive.Read.future(request) for _ in range(BURST)]
            refused += sum(map(end_call, calls))
            count += len(calls)
            # In bursts, so that its own cost does not dominate.
            time.sleep(0.02)
        print(f"{count:,} calls" + (f", {refused:,} refused" if refused else ""), flush=True)


def was_refused(call):
    error = call.exception()
    assert error is None or error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error
    return error is not None


def cancel(call):
    call.cancel()
    return False


def play_asking(stubs, address):
    """Control of play_cancelling(): the same calls, but all answers are read."""
    play_bursts(stubs, address, was_refused)


def play_cancelling(stubs, address):
    """Cancels each call at once."""
    play_bursts(stubs, address, cancel)


def play_opening(stubs, address, is_quiet=False):
    """Opens 1,000 streams that stay open, half of them scans that are not read further.
    Ready with the first answer of each, or once no more data arrives."""
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
    while is_quiet:
        before = time.process_time()
        time.sleep(0.2)
        is_quiet = time.process_time() - before > 0.02
    tell_ready()
    wait_for_the_end()
    print(f"{refused} of {OPEN_STREAMS} streams refused", flush=True)
    os._exit(0)  # 500 threads wait in iter_then_wait().


def play_holding(stubs, address):
    play_opening(stubs, address, is_quiet=True)


def iter_then_wait(first):
    yield first
    time.sleep(600)


def play_burning(_stubs, _address):
    """Takes all CPU time of one thread."""
    os.set_blocking(sys.stdin.fileno(), False)
    tell_ready()
    while sys.stdin.buffer.raw.read(1) is None:
        pass


def play_greedy(stubs, address):
    """Reads over 50 connections, four calls at a time on each, and retries at once when
    refused; with a token of a small quota."""
    pb = stubs.pb
    request = pb.ReadRequest(archive=ARCHIVE, range=pb.ByteRange(offset=0, size_bytes=READ_SIZE))
    metadata = [("authorization", f"Bearer {os.environ[GREEDY_TOKEN]}")]
    os.set_blocking(sys.stdin.fileno(), False)
    with contextlib.ExitStack() as stack:
        archives = [stubs.rpc.ArchiveStub(stack.enter_context(connect(address)))
                    for _ in range(GREEDY_CONNECTIONS)]
        tell_ready()
        count = refused = 0
        while sys.stdin.buffer.raw.read(1) is None:
            calls = [archive.Read.future(request, metadata=metadata)
                     for archive in archives for _ in range(4)]
            refused += sum(map(was_refused, calls))
            count += len(calls)
        print(f"{count:,} calls, {refused:,} refused", flush=True)


def play_control(_stubs, _address):
    """Takes a fifth of a core, like a client of many small calls."""
    os.set_blocking(sys.stdin.fileno(), False)
    tell_ready()
    while sys.stdin.buffer.raw.read(1) is None:
        until = time.process_time() + 0.005
        while time.process_time() < until:
            pass
        time.sleep(0.02)


PLAYS = {"control": play_control, "burning": play_burning, "stalled": play_stalled,
         "asking": play_asking, "cancelling": play_cancelling,
         "opening": play_opening, "holding": play_holding, "greedy": play_greedy}


@dataclasses.dataclass
class Case:
    """A hostile client next to an honest one."""
    title: str
    play: str
    # The hostile client's target: the `usual` server, the one with much memory (`roomy`), one
    # that requires tokens, with a quota (`limited`) or without (`open`), or the `empty` service;
    # in the last case the honest client reads from the usual one.
    target: str = "usual"
    is_idle: bool = False
    # True: servers and honest client have all cores but one, the hostile client has that core.
    is_apart: bool = False
    is_in_the_way: bool = False
    # Runs without and with it: (p50, p99) each.
    alone: list = dataclasses.field(default_factory=list)
    loaded: list = dataclasses.field(default_factory=list)
    said: str = ""
    resident: int = 0
    peak: int = 0


def make_cases():
    bursts = f"bursts of {BURST} calls, {READ_SIZE // 1000} kB each"
    asking, cancelling = f"a client that reads {bursts}", f"a client that cancels {bursts}"
    opening = f"a client that opens {OPEN_STREAMS:,} streams"
    holding = f"a client that keeps {OPEN_STREAMS:,} open streams"
    roomy = "of a server with much memory"
    return [Case("a process that burns CPU time", "control"),
            Case("a client that stops reading", "stalled"),
            Case(asking, "asking"),
            Case(f"{asking}, of an empty service", "asking", "empty"),
            Case(cancelling, "cancelling"),
            Case(f"{cancelling}, of an empty service", "cancelling", "empty"),
            Case(f"{cancelling}, at the lowest priority", "cancelling", is_idle=True),
            Case(f"{cancelling}, of an empty service, at the lowest priority", "cancelling",
                 "empty", is_idle=True),
            Case(opening, "opening"),
            Case(f"{opening}, of an empty service", "opening", "empty"),
            Case(f"{opening}, {roomy}", "opening", "roomy"),
            Case(f"{opening}, {roomy}, at the lowest priority", "opening", "roomy",
                 is_idle=True),
            Case(f"a client that reads {READ_SIZE // 1000} kB over {GREEDY_CONNECTIONS} connections",
                 "greedy", "open"),
            Case(f"the same, which may make {GREEDY_CALLS_PER_SECOND} calls a second", "greedy",
                 "limited"),
            Case(holding, "holding"),
            Case(f"{holding}, {roomy}", "holding", "roomy"),
            Case("a process that never sleeps, on the core of server and reader", "burning",
                 is_apart=True, is_in_the_way=True),
            *(Case(f"{title}, on a core of its own", play, target, is_apart=True)
              for title, play, target in (
                  (asking, "asking", "usual"),
                  (f"{asking}, of an empty service", "asking", "empty"),
                  (cancelling, "cancelling", "usual"),
                  (f"{cancelling}, of an empty service", "cancelling", "empty"),
                  (f"{opening}, {roomy}", "opening", "roomy")))]


def divide_cores(case):
    """Returns the cores of servers and honest reader, and those of the hostile client."""
    cores = sorted(os.sched_getaffinity(0))
    if not case.is_apart:
        return cores, cores
    # With a single core both have the same.
    others = cores[:-1] or cores
    return others, others if case.is_in_the_way else cores[-1:]


def keep_to(cores):
    """Returns the prefix of a command that may use only these cores."""
    return ["taskset", "--cpu-list", ",".join(map(str, cores))]


def move_to(cores, process_ids):
    for process_id in process_ids:
        for thread_id in os.listdir(f"/proc/{process_id}/task"):
            # Threads may end, too.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread_id), cores)


def at(host, server):
    """Returns the address of a server that listens on all of the machine's."""
    return f"{host}:{server.address.rpartition(':')[2]}"


def make_rules(quired, directory):
    """Writes files of access rules, without and with a quota for the greedy client, and
    the options of the honest one. Puts the greedy client's token into the environment."""
    lines = {}
    for name in ("honest", "greedy"):
        lines[name] = subprocess.run(
            [quired, "token", "new", name, "-o", f"{directory}/{name}"], check=True,
            stdout=subprocess.PIPE, text=True).stdout
    with open(f"{directory}/greedy", encoding="utf-8") as token:
        os.environ[GREEDY_TOKEN] = token.read().strip()
    quota = f" calls={GREEDY_CALLS_PER_SECOND}"
    for rules, greedy in (("open", lines["greedy"]),
                          ("limited", lines["greedy"].rstrip("\n") + quota + "\n")):
        with open(f"{directory}/{rules}", "w", encoding="utf-8") as out:
            out.write(lines["honest"] + greedy)
    return ["--token-file", f"{directory}/honest"]


def read_honestly(server, cores, loadtest, stem, arguments):
    """Returns (p50, p99) in milliseconds of 16 KiB ranges, each compared with the source."""
    result = subprocess.run(
        [*keep_to(cores), loadtest, ARCHIVE, "--server", at("127.0.0.1", server), "--source",
         f"{stem}.raw", *server.client_options, "--requests", str(arguments.requests), "--in-flight",
         str(arguments.in_flight), "--json"],
        stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    latency = json.loads(result.stdout)["latency_ms"]
    return latency["p50"], latency["p99"]


def run_case(case, address, server, read):
    """`read` is read_honestly() without its first two parameters."""
    cores, hostile_cores = divide_cores(case)
    case.alone.append(read(server, cores))
    command = [*keep_to(hostile_cores), *(["chrt", "--idle", "0"] if case.is_idle else []),
               sys.executable, __file__, "--play", case.play, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as hostile:
        assert hostile.stdout.readline() == "ready\n", case.title
        case.loaded.append(read(server, cores))
        case.resident = server.resident_bytes()
        case.said = hostile.communicate("\n", timeout=120)[0].strip()
    assert hostile.returncode == 0, case.title
    case.peak = server.resident_peak_bytes()


def measure(arguments, directory):
    quired, loadtest, empty_server = find_programs(arguments.build, *PROGRAMS)
    stem = f"{directory}/text"
    archive = build_text_archive(quired, stem, make_documents(arguments.documents, seed=11),
                                 ["--codec", "zstd"])
    cases = [case for case in make_cases() if re.search(arguments.only, case.title)]
    read = functools.partial(read_honestly, loadtest=loadtest, stem=stem, arguments=arguments)
    with contextlib.ExitStack() as stack:
        servers = {}
        honest_options = make_rules(quired, directory)
        for name, memory in (("usual", arguments.memory), ("roomy", arguments.much_memory),
                             ("open", arguments.memory), ("limited", arguments.memory)):
            has_rules = name in ("open", "limited")
            servers[name] = stack.enter_context(
                LiveServer(str(quired), [f"{ARCHIVE}={archive}"],
                           "--memory", memory, "--stall-timeout", "600",
                           *(["--access", f"{directory}/{name}"] if has_rules else []),
                           host="[::]"))
            servers[name].client_options = honest_options if has_rules else []
            read(servers[name], os.sched_getaffinity(0))
        empty_address, empty_id = stack.enter_context(
            empty_service(empty_server, "--range-size", str(READ_SIZE)))
        for _ in range(arguments.rounds):
            for case in cases:
                server = servers.get(case.target, servers["usual"])
                address = empty_address if case.target == "empty" else at("[::1]", server)
                move_to(divide_cores(case)[0],
                        [empty_id, *(each.process.pid for each in servers.values())])
                run_case(case, address, server, read)
    return cases


def row_of(case):
    """Returns medians over the rounds."""
    def median(runs, index):
        return statistics.median(run[index] for run in runs)

    return {"case": case.title, "said": case.said,
            "p50_alone_ms": median(case.alone, 0), "p50_loaded_ms": median(case.loaded, 0),
            "p99_alone_ms": median(case.alone, 1), "p99_loaded_ms": median(case.loaded, 1),
            "resident_bytes": case.resident, "resident_peak_bytes": case.peak}


def report(arguments, rows):
    """Returns lines of text and Markdown."""
    cells = [[f"reads next to {row['case']}" + (f" ({row['said']})" if row["said"] else ""),
              f"p99 {row['p99_loaded_ms']:.2f} ms, "
              f"{row['p99_loaded_ms'] / row['p99_alone_ms']:.2f} times that alone; p50 "
              f"{row['p50_loaded_ms']:.2f} and {row['p50_alone_ms']:.2f} ms; "
              f"{row['resident_peak_bytes'] >> 20} MiB resident at most"]
             for row in rows]
    return [f"{machine_load()}; {arguments.requests:,} honest reads of 16 KiB, "
            f"{arguments.in_flight} at a time; medians of {arguments.rounds} rounds; --memory "
            f"{arguments.memory}, or {arguments.much_memory} where there is to be memory for all",
            "",
            *markdown(["what", "figure"], cells)]


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--requests", type=int, default=30_000, help="of each honest run")
    parser.add_argument("--in-flight", type=int, default=4, help="honest calls at a time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--documents", type=int, default=1_000)
    parser.add_argument("--memory", default="256MiB", help="of the server")
    parser.add_argument("--much-memory", default="1GiB", help="of the server with memory for all")
    parser.add_argument("--only", default="", help="cases whose title this expression matches")
    add_json_option(parser)
    parser.add_argument("--play", nargs=2, metavar=("WHICH", "ADDRESS"),
                        help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    if arguments.play:
        raise_file_limit(4 * OPEN_STREAMS)
        name, address = arguments.play
        with tempfile.TemporaryDirectory() as directory:
            PLAYS[name](make_stubs(directory), address)
        return
    with tempfile.TemporaryDirectory() as directory:
        cases = measure(arguments, directory)
    rows = list(map(row_of, cases))
    print_figures(arguments, rows, report(arguments, rows))


if __name__ == "__main__":
    main()
