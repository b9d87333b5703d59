#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads documents in a global shuffle from an archive and from the forms of other loaders: out of an
object store some milliseconds away with a cache of a tenth of the set, and from the local disk.

    python3 -m venv DIR && DIR/bin/pip install -r loadtest/bench/training_peers.txt grpcio protobuf xxhash
    loadtest/bench/training_peers.py --python DIR/bin/python --write

Without --python, Quire alone. Each loader reads in one process without workers until all documents were
read or --seconds have passed; webdataset, whose buffer has all documents, always reads all.
--write puts the table into docs/training.md. The store (ranged_store.py), server and loader share the
cores, so rates are those of this machine; CPU time is that of loader and server, without the store's.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import build_archive, find_programs, machine_load, make_parser
from live_server import LiveServer, write_corpus
from markdown_table import markdown
from training_loaders import make_documents

BENCH = pathlib.Path(__file__).resolve().parent
DOCUMENT = ROOT / "docs" / "training.md"
PEERS = {"quire": "Quire", "mds": "MDS (mosaicml-streaming)", "litdata": "LitData",
         "webdataset": "WebDataset, buffer of the set"}
SHARDS = 64
# Of a store's archive, indexes and dictionary stay in the cache: they are added to the tenth.
PINNED_BYTES = 3 << 20


class Loaders:
    """Runs training_loaders.py, with the package of this tree."""

    def __init__(self, arguments, directory):
        self.arguments = arguments
        self.directory = directory
        subprocess.run([ROOT / "client/python/build_wheel.sh", directory / "wheel"], check=True,
                       stdout=subprocess.DEVNULL)
        (wheel,) = (directory / "wheel").glob("*.whl")
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                        "--no-index", "--target", directory / "site", wheel], check=True,
                       env={**os.environ, "PIP_ROOT_USER_ACTION": "ignore"})

    def run(self, *words, **environment):
        print("training_peers.py:", *words[:3], file=sys.stderr)
        python = self.arguments.python or "/usr/bin/python3"
        output = subprocess.run(
            [python, BENCH / "training_loaders.py", *map(str, words)], check=True,
            stdout=subprocess.PIPE, text=True, cwd=self.directory,
            env={**os.environ, "PYTHONPATH": f"{self.directory}/site", **environment,
                 "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any",
                 "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}).stdout
        return json.loads(output.splitlines()[-1]) if output.strip() else None


class Store:
    """A running ranged_store.py."""

    def __init__(self, directory, delay_ms):
        self.process = subprocess.Popen(
            [sys.executable, BENCH / "ranged_store.py", directory, str(delay_ms)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()

    def counts(self):
        output = subprocess.run(["curl", "-s", f"{self.url}/.counts"], check=True,
                                stdout=subprocess.PIPE).stdout
        return {"gets": 0, "bytes": 0, **json.loads(output)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def size_of(path):
    path = pathlib.Path(path)
    return path.stat().st_size if path.is_file() else \
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def make_forms(arguments, directory, loaders):
    """Returns the stored bytes of each form, in directory/store."""
    store = directory / "store"
    store.mkdir()
    write_corpus(((f"{number:08}", document) for number, document in enumerate(
        make_documents(arguments.documents, arguments.document_bytes))), f"{directory}/text")
    build_archive(arguments.quired, store / "quire.quire", [f"{directory}/text.tar"],
                  ["--dictionary-size", "1MiB"])
    forms = [form for form in PEERS if form == "quire" or arguments.python]
    for form in forms[1:]:
        loaders.run("write", form, store / form, f"{directory}/text.raw", arguments.document_bytes,
                    arguments.documents * arguments.document_bytes // SHARDS)
    return {form: size_of(store / ("quire.quire" if form == "quire" else form))
            for form in forms}


def measure_quire(arguments, directory, loaders, source, flags):
    """Figures of one run, and of a second one with the same server, warm."""
    with LiveServer(arguments.quired, [f"quire={source}"], "--memory", arguments.memory,
                    *flags) as server:
        rounds = []
        for _ in range(2):
            cpu = server.cpu_seconds()
            figures = loaders.run("read", "quire", f"{server.address}/quire", arguments.documents,
                                  arguments.seconds, directory / "unused", 0)
            rounds.append({**figures, "server_cpu_seconds": server.cpu_seconds() - cpu})
        return rounds


def per_document(figures, before=None, after=None):
    count = figures["documents"]
    found = {"documents": count, "per_second": count / figures["seconds"],
             "client_us": 1e6 * figures["cpu_seconds"] / count,
             "server_us": 1e6 * figures.get("server_cpu_seconds", 0) / count}
    if after is not None:
        found |= {"gets": (after["gets"] - before["gets"]) / count,
                  "bytes": (after["bytes"] - before["bytes"]) / count}
    return found


def measure_store(arguments, directory, loaders, form, stored_bytes, store):
    cache_bytes = stored_bytes // 10
    cache = directory / f"cache-{form}"
    before = store.counts()
    if form == "quire":
        # Only the first run: the second finds the cache as the first left it.
        with LiveServer(arguments.quired, [f"quire={store.url}/quire.quire"], "--memory",
                        arguments.memory, "--store-cache",
                        f"{cache}:{(cache_bytes + PINNED_BYTES) >> 20}MiB") as server:
            opened = store.counts()
            cpu = server.cpu_seconds()
            figures = loaders.run("read", "quire", f"{server.address}/quire", arguments.documents,
                                  arguments.seconds, directory / "unused", 0)
            figures["server_cpu_seconds"] = server.cpu_seconds() - cpu
        return per_document(figures, opened, store.counts())
    shards = json.dumps(sorted(path.name for path in (directory / "store" / form).glob("*.gz")))
    figures = loaders.run("read", form, f"{store.url}/{form}", arguments.documents,
                          0 if form == "webdataset" else arguments.seconds, cache, cache_bytes,
                          WEBDATASET_SHARDS=shards)
    return per_document(figures, before, store.counts())


def measure(arguments, directory):
    loaders = Loaders(arguments, directory)
    sizes = make_forms(arguments, directory, loaders)
    rows = []
    with Store(directory / "store", arguments.delay_ms) as store:
        for form, stored_bytes in sizes.items():
            rows.append({"form": form, "from": "store", "stored_bytes": stored_bytes,
                         **measure_store(arguments, directory, loaders, form, stored_bytes,
                                         store)})
    for form, stored_bytes in sizes.items():
        source = directory / "store" / form
        if form == "quire":
            cold, warm = measure_quire(arguments, directory, loaders,
                                       f"{source}.quire", ())
            rows += [{"form": form, "from": name, "stored_bytes": stored_bytes,
                      **per_document(figures)}
                     for name, figures in (("disk", cold), ("disk, again", warm))]
            continue
        figures = loaders.run("read", form, source, arguments.documents,
                              0 if form == "webdataset" else arguments.seconds,
                              directory / "unused", 0)
        rows.append({"form": form, "from": "disk", "stored_bytes": stored_bytes,
                     **per_document(figures)})
    return {"documents": arguments.documents, "document_bytes": arguments.document_bytes,
            "delay_ms": arguments.delay_ms, "memory": arguments.memory,
            "load": machine_load(), "rows": rows}


def table(figures):
    def number(value):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    def cells(row):
        name = PEERS[row["form"]]
        return (name, row["from"], f"{row['stored_bytes'] / 1e6:.1f}", number(row["per_second"]),
                number(row["gets"]) if "gets" in row else "", number(row["bytes"]) if "bytes" in row
                else "", number(row["client_us"]),
                number(row["server_us"]) if row["form"] == "quire" else "")
    return markdown(("loader", "from", "MB", "documents/s", "GETs per document",
                     "bytes per document", "CPU of the loader, µs", "CPU of the server, µs"),
                    [cells(row) for row in figures["rows"]])


def write_document(figures):
    text = DOCUMENT.read_text(encoding="utf-8")
    about = (f"{figures['documents']:,} documents of {figures['document_bytes']:,} bytes in a global "
             f"shuffle, one process; store {figures['delay_ms']:g} ms away, a cache of a tenth of the "
             f"stored bytes; {figures['load']}.")
    text, count = re.subn(r"(<!-- begin -->\n).*(<!-- end -->)", lambda match: "".join(
        [match[1], about, "\n\n", "\n".join(table(figures)), "\n", match[2]]), text, flags=re.S)
    assert count == 1
    DOCUMENT.write_text(text, encoding="utf-8")


def main():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--python", metavar="PROGRAM",
                        help="Python with the modules of training_peers.txt; none: Quire alone")
    parser.add_argument("--documents", type=int, default=50_000, help="(default: %(default)s)")
    parser.add_argument("--document-bytes", type=int, default=2000, help="(default: %(default)s)")
    parser.add_argument("--delay-ms", type=float, default=30, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20,
                        help="time limit of a run (default: %(default)s)")
    parser.add_argument("--memory", default="330MiB", help="memory of the server, of which few "
                        "MiB are left for decoded blocks (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the table to docs/training.md")
    parser.add_argument("--smoke", action="store_true", help="a short run that measures nothing")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.documents, arguments.seconds, arguments.delay_ms = 2000, 2, 1
    (arguments.quired,) = find_programs(arguments.build, "quired")
    with tempfile.TemporaryDirectory(prefix="quire-training-") as directory:
        figures = measure(arguments, pathlib.Path(directory))
    print_figures(arguments, figures, table(figures))
    if arguments.write:
        write_document(figures)


if __name__ == "__main__":
    main()
