#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of TLS, tokens and the access log: cached reads with and without them.

    loadtest/bench/security_bench.py --build build/release

Five servers serve one archive at the same time: plain, with tokens, with tokens and an
access log, with TLS, and with TLS and tokens. In each round quire-loadtest reads from
each of them in turn, unary and in batches. Ratios are of neighbours in one round, so
that other load on the machine affects all.
"""
import contextlib
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_text_archive, find_programs, machine_load, make_parser
from certificates import Authority
from markdown_table import markdown
from live_server import LiveServer, make_documents

MODES = {"random": ["--mode", "random", "--in-flight", "32"],
         "batch": ["--mode", "batch", "--batch-size", "1000", "--in-flight", "4"]}
KINDS = ("tokens", "tokens and log", "TLS", "TLS and tokens")


def make_token(quired, directory):
    token, rules = directory / "bench.token", directory / "access"
    made = subprocess.run([quired, "token", "new", "bench", "-o", token], check=True,
                          capture_output=True, text=True)
    rules.write_text(made.stdout)
    return token, rules


def measure(arguments, loadtest, server, client_options, mode, size):
    """Returns the CPU time of the server per request, and requests per second."""
    before = server.cpu_seconds()
    run = subprocess.run(
        [loadtest, "bench", "--server", server.address, *map(str, client_options), *MODES[mode],
         "--range-size", size, "--requests", str(arguments.requests), "--json"],
        check=True, capture_output=True, text=True)
    cpu = server.cpu_seconds() - before
    report = json.loads(run.stdout)
    return {"cpu_us": 1e6 * cpu / arguments.requests,
            "requests_per_second": report["requests_per_second"]}


def run_rounds(arguments, directory):
    quired, loadtest = find_programs(arguments.build, "quired", "quire-loadtest")
    archive = build_text_archive(
        quired, str(directory / "bench"), make_documents(arguments.documents, seed=5),
        ["--dictionary-size", "256KiB"])
    authority = Authority(directory, "authority")
    certificate, key = authority.sign("server")
    token, rules = make_token(quired, directory)
    tls = ["--tls-cert", certificate, "--tls-key", key], ["--ca", authority.pem]
    tokens = ["--access", rules], ["--token-file", token]
    log = ["--access-log", directory / "access.log"]
    kinds = {"plain": ([], []), "tokens": tokens, "tokens and log": (tokens[0] + log, tokens[1]),
             "TLS": tls,
             "TLS and tokens": (tls[0] + tokens[0], tls[1] + tokens[1])}
    rounds = []
    with contextlib.ExitStack() as stack:
        servers = {kind: stack.enter_context(LiveServer(
            quired, [f"bench={archive}"], "--memory", "512MiB", *map(str, server_options)))
                   for kind, (server_options, _) in kinds.items()}
        for mode in MODES:
            for size in arguments.sizes.split(","):
                # The first round fills the caches.
                for number in range(arguments.rounds + 1):
                    # Alternates the order, so that none is always the first.
                    order = list(kinds)[::-1 if number % 2 else 1]
                    figures = {kind: measure(arguments, loadtest, servers[kind], kinds[kind][1],
                                             mode, size) for kind in order}
                    if number > 0:
                        rounds.append({"mode": mode, "size": size, "figures": figures})
    return rounds


def ratios(rounds, mode, size, kind, name):
    """Returns the ratios of one kind and plain calls, in each round."""
    return [each["figures"][kind][name] / each["figures"]["plain"][name]
            for each in rounds if (each["mode"], each["size"]) == (mode, size)]


def summarise(rounds):
    rows = []
    for mode, size in dict.fromkeys((each["mode"], each["size"]) for each in rounds):
        for kind in KINDS:
            cpu = ratios(rounds, mode, size, kind, "cpu_us")
            rate = ratios(rounds, mode, size, kind, "requests_per_second")
            rows.append({"mode": mode, "size": size, "kind": kind,
                         "cpu_ratio": statistics.median(cpu), "cpu_ratio_min": min(cpu),
                         "cpu_ratio_max": max(cpu), "rate_ratio": statistics.median(rate)})
    return rows


def table(rows):
    """Returns Markdown lines."""
    return markdown(
        ["what", "figure"],
        [[f"{row['kind']}: {row['mode']} reads of {row['size']}, compared with plain ones",
          f"server CPU {row['cpu_ratio']:.2f} ({row['cpu_ratio_min']:.2f} to "
          f"{row['cpu_ratio_max']:.2f}), rate {row['rate_ratio']:.2f}"] for row in rows])


def main():
    parser = make_parser(__doc__, "quired", "quire-loadtest")
    parser.add_argument("--requests", type=int, default=10_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--sizes", default="256B,16KiB", help="of the ranges")
    parser.add_argument("--documents", type=int, default=1_000)
    add_json_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = summarise(run_rounds(arguments, pathlib.Path(directory)))
    print_figures(arguments, rows, [machine_load(), "", *table(rows)])


if __name__ == "__main__":
    main()
