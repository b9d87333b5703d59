#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the calls that fail while something of two servers behind HAProxy fails: the object store is
killed, or slow, or refuses one server's credentials, a server is restarted meanwhile, a cache's disk
is full, an archive is broken, 10,000 connections are idle, or a client may make one call per second.

    loadtest/hostile/operating_faults.py --build build/release --json new.json
    loadtest/hostile/operating_faults.py --compare old.json new.json

Clients are the Python package and the routing of this tree, and the programs of --build; older ones
are measured by this script in their own tree. All have their usual options: 30 s for a call. Each fault
lasts some seconds; a call that fails is not counted again when its reader makes the next one. The
processes listen on the loopback and end with the script. Exit code 1 if a call gave wrong bytes.

--compare OLD NEW prints the table of two runs; --before OLD adds an earlier run to that of this one.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, machine_load, make_parser
from fault_load import WRONG, Load, Once, Picks, Tally, command_runs, reasons_text
from fault_site import ARCHIVES, Site, fill_disk, load_package, open_files_max, own_disk
from live_server import raise_file_limit
from markdown_table import markdown

PROGRAMS = ("quired", "quire", "quire-http")
DELAY_MS = 150
COPIES = 160
# Clients give up after 30 s, so no read of other text outlasts a longer outage.
OUTAGE_SECONDS_MAX = 20
IDLE_CONNECTIONS = 10_000
# Descriptors of a server and of HAProxy for anything else.
OTHER_DESCRIPTORS = 1_500
DISK_SIZE = "64m"
# For the small files of an archive, but not for its indexes.
DISK_LEFT_BYTES = 32 << 10
# Part of an archive's documents that is in the caches; the next ones are not read.
WARM_PART = 0.5
COLD_PART = 0.6
READS = "reads"


class NotMeasured(Exception):
    """What this machine does not permit."""


def both_servers(trial, names=ARCHIVES):
    """Starts the store, two servers of it, and what is in front of them."""
    trial.start_store()
    for number in (1, 2):
        trial.start_server(number, *trial.remote(number, names))
    trial.start_proxy()


def no_fault(trial):
    both_servers(trial)
    trial.warm(ARCHIVES)
    with Load(trial) as load:
        load.read(READS, Picks(trial.site.documents, ARCHIVES))
        time.sleep(trial.seconds)
    return load.tallies


def store_killed(trial):
    both_servers(trial)
    trial.warm(ARCHIVES, WARM_PART)
    documents = trial.site.documents
    with Load(trial) as load:
        load.read("reads of text in the cache", Picks(documents, ARCHIVES, 0, WARM_PART))
        load.read("reads of other text", Picks(documents, ARCHIVES, COLD_PART, 1), python=1,
                  command=0, gateway=0)
        time.sleep(0.1 * trial.seconds)
        trial.kill_store()
        time.sleep(min(0.6 * trial.seconds, OUTAGE_SECONDS_MAX))
        trial.start_store()
        time.sleep(0.3 * trial.seconds)
    return load.tallies


def restart_in_an_outage(trial):
    both_servers(trial)
    for number in (1, 2):
        trial.warm(ARCHIVES, WARM_PART, trial.direct(number))
    with Load(trial) as load:
        load.read("reads of text in both caches",
                  Picks(trial.site.documents, ARCHIVES, 0, WARM_PART))
        time.sleep(0.1 * trial.seconds)
        trial.kill_store()
        end = time.monotonic() + 0.7 * trial.seconds
        trial.restart_server(1, *trial.remote(1, ARCHIVES), until=end)
        time.sleep(max(0.4 * trial.seconds, end - time.monotonic()))
        trial.start_store()
        time.sleep(0.2 * trial.seconds)
    return load.tallies


def slow_store(trial):
    names = trial.site.add_copies(COPIES if trial.seconds > 5 else 12)
    trial.start_store(DELAY_MS)
    for number in (1, 2):
        trial.start_server(number, *trial.remote(number, [*ARCHIVES, *names]))
    trial.start_proxy()
    is_open = ARCHIVES[:2]
    trial.warm(is_open)
    documents = trial.site.documents
    with Load(trial) as load:
        load.read("reads of open archives", Picks(documents, is_open), 1, 0, 0)
        with Load(trial) as first:
            # Each client has archives of its own, or those that fail soon would take most of them.
            for client in range(3):
                once = Once((name, *documents[name][0]) for name in names[client::3])
                threads = [3 * (number == client) for number in range(3)]
                first.read("first reads of archives", once, *threads)
            first.end_when_read(2 * trial.seconds)
    return {**first.tallies, **load.tallies}


def wrong_credentials(trial):
    trial.start_store()
    trial.start_server(1, *trial.remote(1, ARCHIVES))
    trial.start_server(2, *trial.remote(2, ARCHIVES, endpoint=trial.refusing_url()))
    trial.start_proxy()
    with Load(trial) as load:
        load.read(READS, Picks(trial.site.documents, ARCHIVES))
        time.sleep(trial.seconds)
    return load.tallies


def full_disk(trial):
    prefix = own_disk(trial.cache(1), DISK_SIZE)
    if prefix is None:
        raise NotMeasured("this machine permits no file system of its own for a cache")
    homes = trial.site.homes()
    # At the server whose disk is full.
    here = [name for name in ARCHIVES if homes[name] == 1]
    busy, idle, opened = here[:1], here[1:-1], here[-1:]
    trial.start_store()
    trial.start_server(1, *trial.remote(1, ARCHIVES), prefix=prefix)
    trial.start_server(2, *trial.remote(2, ARCHIVES))
    trial.start_proxy()
    trial.warm([*busy, *idle], WARM_PART)
    documents = trial.site.documents
    with Load(trial) as load:
        load.read("reads of an open archive", Picks(documents, busy, 0, WARM_PART))
        # The server may close archives that are seldom read.
        load.read("reads of other open archives, one each 3 s", Picks(documents, idle, 0, WARM_PART),
                  1, 1, 1, 3)
        time.sleep(0.1 * trial.seconds)
        fill_disk(trial.cache(1), trial.servers[1].process, DISK_LEFT_BYTES)
        time.sleep(0.1 * trial.seconds)
        load.read("reads of an archive opened then", Picks(documents, opened))
        time.sleep(0.8 * trial.seconds)
    return load.tallies


def broken_archive(trial):
    site, homes = trial.site, trial.site.homes()
    broken = next(name for name in ARCHIVES if homes[name] == 2)
    path = trial.scratch / f"{broken}.quire"
    path.mkdir()
    for file in site.path(broken).iterdir():
        data = file.read_bytes()
        # A copy that has not ended.
        (path / file.name).write_bytes(data[:len(data) // 2] if file.name.startswith("segment-")
                                       else data)
    trial.start_server(1, *site.local())
    trial.start_server(2, *(f"{broken}={path}" if argument.startswith(f"{broken}=") else argument
                            for argument in site.local()), "--skip-broken")
    trial.start_proxy()
    with Load(trial) as load:
        load.read("reads of that archive", Picks(site.documents, [broken]), 1, 1, 1)
        load.read("reads of others", Picks(
            site.documents, [name for name in ARCHIVES if name != broken]), 1, 0, 0)
        time.sleep(trial.seconds)
    return load.tallies


def idle_connections(trial):
    """All are at the first server, past the proxy."""
    wanted = IDLE_CONNECTIONS if trial.seconds > 5 else 300
    count = min(wanted, (open_files_max() - OTHER_DESCRIPTORS))
    for number in (1, 2):
        trial.start_server(number, *trial.site.local(), memory="1GiB")
    trial.start_proxy()
    trial.warm(ARCHIVES)
    with Load(trial) as load:
        load.read(READS, Picks(trial.site.documents, ARCHIVES))
        with subprocess.Popen(
                [sys.executable, HERE / "idle_connections.py", trial.direct(1), str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
            holder.stdout.readline()
            time.sleep(trial.seconds)
            held = json.loads(holder.communicate("\n", timeout=60)[0])
        peak = trial.servers[1].resident_peak_bytes()
    kept = Tally(calls=wanted)
    for reason, missing in (("closed or GOAWAY", held["refused"]), ("without an answer", held["silent"]),
                            ("not accepted", held["failed"]),
                            ("over this machine's descriptors", wanted - count)):
        if missing:
            kept.failed[reason] = missing
    return {**load.tallies, f"connections ({peak >> 20} MiB resident)": {"HTTP/2": kept}}


def quota(trial):
    """Each subcommand has a client of its own, as they run at the same time."""
    archive = ARCHIVES[0]
    runs = command_runs(trial.quire, trial.address, archive, trial.site.documents[archive])
    rules, options = trial.scratch / "access", {}
    with rules.open("w") as out:
        for number, name in enumerate(runs):
            token = trial.scratch / f"token-{number}"
            line = subprocess.run([trial.site.quired, "token", "new", f"client-{number}", "-o", token],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout
            out.write(line.rstrip("\n") + " calls=1\n")
            options[name] = ["--token-file", token]
    rules.chmod(0o600)
    for number in (1, 2):
        trial.start_server(number, *trial.site.local(), "--access", rules)
    trial.start_proxy()
    with Load(trial) as load:
        for name, run in runs.items():
            load.add("runs of each subcommand", f"`{name}`",
                     lambda run=run, name=name: run(options[name]))
        time.sleep(1.5 * trial.seconds)
    return load.tallies


FAULTS = {
    "no fault": no_fault,
    "store killed": store_killed,
    "server restarted while the store is down": restart_in_an_outage,
    f"store {DELAY_MS} ms slower, archives opened on first use": slow_store,
    "wrong credentials at one server": wrong_credentials,
    "cache's disk full at one server": full_disk,
    "archive broken at one server": broken_archive,
    f"{IDLE_CONNECTIONS:,} idle connections": idle_connections,
    "quota of 1 call/s": quota,
}


def rows_of(fault, tallies):
    return [{"fault": fault, "calls": kind,
             "clients": {client: tally.figures() for client, tally in clients.items()}}
            for kind, clients in tallies.items()]


def measure(arguments, directory):
    programs = find_programs(arguments.build, *PROGRAMS)
    site = Site(programs, load_package(f"{directory}/package"), directory)
    rows = []
    for fault, function in FAULTS.items():
        if not re.search(arguments.only, fault):
            continue
        print(f"{time.strftime('%H:%M:%S')} {fault}", file=sys.stderr, flush=True)
        site.homes()
        try:
            with site.start(arguments.seconds) as trial:
                tallies = function(trial)
                found = rows_of(fault, tallies)
        except NotMeasured as error:
            rows.append({"fault": fault, "calls": f"not measured: {error}", "clients": {}})
            continue
        rows += found
        describe(found, tallies)
    return {"load": machine_load(), "seconds": arguments.seconds, "rows": rows}


def describe(rows, tallies):
    """Prints the rows, and the first message of each reason."""
    for row in rows:
        print(f"  {row['calls']}: {figure_text(row)}", file=sys.stderr)
        for client, tally in tallies[row["calls"]].items():
            for reason, message in tally.messages.items():
                print(f"    {client}, {reason}: {message}", file=sys.stderr)
    sys.stderr.flush()


def failed_of(row):
    """Returns calls and failed calls of all clients."""
    clients = row["clients"].values()
    return (sum(client["calls"] for client in clients),
            sum(sum(client["failed"].values()) for client in clients))


def figure_text(row):
    """A figure such as "3 of 100 failed (Python: DEVICE_FAILED 3), worst 1.2 s"."""
    calls, failed = failed_of(row)
    worst = max((client["worst_s"] for client in row["clients"].values()), default=0)
    reasons = "; ".join(f"{name}: {reasons_text(client['failed'])}"
                        for name, client in row["clients"].items() if client["failed"])
    return (f"{failed:,} of {calls:,} failed" + (f" ({reasons})" if reasons else "")
            + (f", worst {worst:.2f} s" if worst else ""))


def title_of(row):
    # Names of rows are compared without what is measured.
    return f"{row['fault']}: {re.sub(r' [(].*', '', row['calls'])}"


def table(figures, before):
    """Returns lines of text and Markdown."""
    earlier = {title_of(row): row for row in before["rows"]} if before else {}
    cells = []
    for row in figures["rows"]:
        text = figure_text(row) if row["clients"] else ""
        title = title_of(row)
        if title in earlier:
            text += f"; before {figure_text(earlier[title])}"
        cells.append([f"{row['fault']}: {row['calls']}", text])
    return [f"{figures['load']}; {figures['seconds']:g} s for each fault", "",
            *markdown(["what", "figure"], cells)]


def read_figures(path):
    return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))


def parse_arguments():
    parser = make_parser(__doc__, *PROGRAMS)
    parser.add_argument("--seconds", type=float, default=12, help="of each fault (default: %(default)s)")
    parser.add_argument("--only", default="", help="faults whose name this expression matches")
    parser.add_argument("--before", metavar="OLD", help="earlier figures, for the table")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"),
                        help="only print the table of the figures of two runs")
    parser.add_argument("--smoke", action="store_true", help="a moment of each")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.seconds = 2
    return arguments


def main():
    arguments = parse_arguments()
    if arguments.compare:
        before, figures = map(read_figures, arguments.compare)
        print("\n".join(table(figures, before)))
        return
    before = read_figures(arguments.before) if arguments.before else None
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    raise_file_limit(2 * IDLE_CONNECTIONS)
    with tempfile.TemporaryDirectory(prefix="quire-faults-", dir="/var/tmp") as directory:
        figures = measure(arguments, directory)
    print_figures(arguments, figures, table(figures, before))
    wrong = [title_of(row) for row in figures["rows"] for client in row["clients"].values()
             if WRONG in client["failed"]]
    if wrong:
        sys.exit(f"operating_faults.py: wrong bytes: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
