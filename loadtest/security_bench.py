#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What TLS and tokens cost: cached reads with and without them.

    loadtest/security_bench.py --build build/release

Four servers serve one archive: plain, with tokens, with TLS, and with both. In each
round quire-loadtest reads from each of them in turn, unary and in batches; ratios are
of neighbours in one round, so that what else the machine does counts for all.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

from bench_json import add_json_option, print_figures
from bench_setup import build_text_archive, find_programs, machine_load, make_parser
from codec_table import markdown
from live_server import LiveServer, make_documents

MODES = {"random": ["--mode", "random", "--in-flight", "32"],
         "batch": ["--mode", "batch", "--batch-size", "1000", "--streams", "4"]}


def make_certificate(directory):
    certificate, key = directory / "server.pem", directory / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=bench",
         "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


def make_token(quired, directory):
    token, rules = directory / "bench.token", directory / "access"
    made = subprocess.run([quired, "token", "new", "bench", "-o", token], check=True,
                          capture_output=True, text=True)
    rules.write_text(made.stdout)
    return token, rules


def measure(arguments, loadtest, server, client_options, mode, size):
    """CPU time of the server for a request, and requests a second."""
    before = server.cpu_seconds()
    run = subprocess.run(
        [loadtest, "bench", "--server", server.address, *map(str, client_options), *MODES[mode],
         "--range-size", size, "--requests", str(arguments.requests), "--json", "-"],
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
    certificate, key = make_certificate(directory)
    token, rules = make_token(quired, directory)
    tls = ["--tls-cert", certificate, "--tls-key", key], ["--ca", certificate]
    tokens = ["--access", rules], ["--token-file", token]
    kinds = {"plain": ([], []), "tokens": tokens, "TLS": tls,
             "TLS and tokens": (tls[0] + tokens[0], tls[1] + tokens[1])}
    rounds = []
    for mode in MODES:
        for size in arguments.sizes.split(","):
            for _ in range(arguments.rounds):
                figures = {}
                for kind, (server_options, client_options) in kinds.items():
                    with LiveServer(quired, [f"bench={archive}"], "--memory", "512MiB",
                                    *map(str, server_options)) as server:
                        # Once for the cache.
                        measure(arguments, loadtest, server, client_options, mode, size)
                        figures[kind] = measure(arguments, loadtest, server, client_options,
                                                mode, size)
                rounds.append({"mode": mode, "size": size, "figures": figures})
    return rounds


def ratios(rounds, mode, size, kind, name):
    """Of one kind and plain calls, in each round."""
    return [each["figures"][kind][name] / each["figures"]["plain"][name]
            for each in rounds if (each["mode"], each["size"]) == (mode, size)]


def summarise(rounds):
    rows = []
    for mode, size in dict.fromkeys((each["mode"], each["size"]) for each in rounds):
        for kind in ("tokens", "TLS", "TLS and tokens"):
            cpu = ratios(rounds, mode, size, kind, "cpu_us")
            rate = ratios(rounds, mode, size, kind, "requests_per_second")
            rows.append({"mode": mode, "size": size, "kind": kind,
                         "cpu_ratio": statistics.median(cpu), "cpu_ratio_min": min(cpu),
                         "cpu_ratio_max": max(cpu), "rate_ratio": statistics.median(rate)})
    return rows


def table(rows):
    """Markdown lines."""
    return markdown(
        ["calls", "ranges of", "with", "server CPU, ratio to plain", "lowest to highest",
         "requests a second, ratio"],
        [[row["mode"], row["size"], row["kind"], f"{row['cpu_ratio']:.2f}",
          f"{row['cpu_ratio_min']:.2f} to {row['cpu_ratio_max']:.2f}", f"{row['rate_ratio']:.2f}"]
         for row in rows])


def main():
    parser = make_parser(__doc__, "quired", "quire-loadtest")
    parser.add_argument("--requests", type=int, default=100_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sizes", default="256B,16KiB", help="of the ranges")
    parser.add_argument("--documents", type=int, default=1_000)
    add_json_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rows = summarise(run_rounds(arguments, pathlib.Path(directory)))
    print_figures(arguments, rows, [machine_load(), "", *table(rows)])


if __name__ == "__main__":
    main()
