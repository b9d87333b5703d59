#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads documents in a global shuffle from an archive and from the forms of other loaders: out of an
object store some milliseconds away with a cache of a tenth of the set, and from the local disk.

    loadtest/bench/training_peers.py --setup DIR
    loadtest/bench/training_peers.py --python DIR/bin/python --write

The first makes an environment with the modules of training_peers.txt, 4.7 GB. Without --python only
Quire is measured. Each loader reads in one process without workers until all documents were read or
--seconds have passed; a loader that fills a buffer with all documents always reads all. --write puts
the table into docs/training.md. The store (ranged_store.py), server and loader share the cores, so
rates are those of this machine; CPU time is that of loader and server, without the store's.

From a store one epoch is read, with empty caches. From disk two are, the first after the files were
dropped from the page cache. Caches are a tenth of the stored bytes of a form; the server of the
store has few MB of decoded blocks, too (--store-memory).
"""
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
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


@dataclasses.dataclass(frozen=True)
class Loader:
    """A row of the table; the key is the name for training_loaders.py."""
    title: str
    form: str
    resumes: str
    # Nothing is returned before all was read.
    fills_buffer: bool = False


LOADERS = {
    "quire": Loader("Quire", "quire", "yes"),
    "quire-set": Loader("Quire, reads the set ahead", "quire", "yes"),
    "mds": Loader("MDS (mosaicml-streaming), naive shuffle", "mds", "yes"),
    "mds-buffer": Loader("MDS, buffer of the set", "mds", "no", True),
    "litdata": Loader("LitData, by index", "litdata", "no"),
    "litdata-buffer": Loader("LitData, buffer of the set", "litdata", "no", True),
    "webdataset": Loader("WebDataset, buffer of the set", "webdataset", "no", True)}
# Text of a shard: MDS needs a cache of four shards, with and without compression; WebDataset has no
# cache of shards.
SHARDS = {"mds": 160, "litdata": 160, "webdataset": 16}
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

    def _start(self, words, environment, **options):
        print("training_peers.py:", *words[:3], file=sys.stderr, flush=True)
        return subprocess.Popen(
            [self.arguments.python or "/usr/bin/python3", BENCH / "training_loaders.py",
             *map(str, words)], text=True, cwd=self.directory, **options,
            env={**os.environ, "PYTHONPATH": f"{self.directory}/site", **environment,
                 "AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any",
                 "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"})

    def write(self, *words):
        if self._start(("write", *words), {}).wait() != 0:
            raise RuntimeError(f"training_loaders.py write {words[0]} failed")

    def read(self, name, source, cache, cache_bytes, epochs=1, note=lambda: None, **environment):
        """The figures of each epoch; `note` is called before and after each."""
        seconds = 0 if LOADERS[name].fills_buffer else self.arguments.seconds
        words = ("read", name, source, self.arguments.documents, seconds, cache, cache_bytes, epochs)
        found = []
        with self._start(words, environment, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE) as process:
            note()
            for line in process.stdout:
                # Some peers print other lines.
                if line.startswith('{"documents":'):
                    found.append(json.loads(line))
                    note()
                    if len(found) < epochs:
                        with contextlib.suppress(BrokenPipeError):
                            process.stdin.write("\n")
                            process.stdin.flush()
        if process.returncode != 0 or not found:
            raise RuntimeError(f"training_loaders.py read {name} failed")
        return found


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


def forget(path):
    """Drops the files from the page cache."""
    os.sync()
    files = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    for file in files:
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def make_forms(arguments, directory, loaders):
    """Returns the stored bytes of each form, in directory/store."""
    store = directory / "store"
    store.mkdir()
    write_corpus(((f"{number:08}", document) for number, document in enumerate(
        make_documents(arguments.documents, arguments.document_bytes))), f"{directory}/text")
    build_archive(arguments.quired, store / "quire", [f"{directory}/text.tar"],
                  ["--dictionary-size", "1MiB"])
    forms = ["quire", *(SHARDS if arguments.python else ())]
    for form in forms[1:]:
        loaders.write(form, store / form, f"{directory}/text.raw", arguments.document_bytes,
                      arguments.documents * arguments.document_bytes // SHARDS[form])
    return {form: size_of(store / form) for form in forms}


def per_document(figures):
    """Quotients of the figures of an epoch."""
    count = figures["documents"]
    found = {"documents": count, "per_second": count / figures["seconds"],
             "first_seconds": figures["first_seconds"],
             "client_us": 1e6 * figures["cpu_seconds"] / count,
             "memory_bytes": figures["memory_bytes"]}
    if "server_cpu_seconds" in figures:
        found["server_us"] = 1e6 * figures["server_cpu_seconds"] / count
    return found


def read_quire(arguments, directory, loaders, name, source, memory, flags, epochs):
    """The figures of each epoch, and the counts of the store when the first begins."""
    server_cpu = []
    with LiveServer(arguments.quired, [f"quire={source}"], "--memory", memory, *flags) as server:
        # From here on: opening is not measured.
        yield None
        found = loaders.read(name, f"{server.address}/quire", directory / "unused", 0, epochs,
                             lambda: server_cpu.append(server.cpu_seconds()))
    for number, figures in enumerate(found):
        yield {**figures, "server_cpu_seconds": server_cpu[number + 1] - server_cpu[number]}


def measure_store(arguments, directory, loaders, name, stored_bytes, store):
    form = LOADERS[name].form
    cache_bytes = stored_bytes // 10
    cache = directory / f"cache-{name}"
    if form == "quire":
        epochs = read_quire(
            arguments, directory, loaders, name, f"{store.url}/quire", arguments.store_memory,
            ("--store-cache", f"{cache}:{(cache_bytes + PINNED_BYTES) >> 20}MiB"), 1)
        next(epochs)
        before = store.counts()
        (figures,) = epochs
    else:
        shards = json.dumps(sorted(path.name for path in (directory / "store" / form).glob("*.gz")))
        before = store.counts()
        (figures,) = loaders.read(name, f"{store.url}/{form}", cache, cache_bytes,
                                  WEBDATASET_SHARDS=shards)
    after = store.counts()
    shutil.rmtree(cache, ignore_errors=True)
    return {**per_document(figures),
            **{what: (after[what] - before[what]) / figures["documents"]
               for what in ("gets", "bytes")}}


def measure_disk(arguments, directory, loaders, name):
    """Rows of a first epoch and a second one."""
    source = directory / "store" / LOADERS[name].form
    forget(source)
    if name == "quire":
        found = list(read_quire(arguments, directory, loaders, name, source, arguments.memory,
                                (), 2))[1:]
    else:
        found = loaders.read(name, source, directory / "unused", 0, 2)
    return [{"from": place, **per_document(figures)}
            for place, figures in zip(("disk, cold", "disk, warm"), found)]


def measure(arguments, directory):
    loaders = Loaders(arguments, directory)
    sizes = make_forms(arguments, directory, loaders)
    names = [name for name, loader in LOADERS.items() if loader.form in sizes]
    rows = []

    def add(name, row):
        rows.append({"loader": name, "stored_bytes": sizes[LOADERS[name].form], **row})
        print("training_peers.py:", json.dumps(rows[-1]), file=sys.stderr, flush=True)
    with Store(directory / "store", arguments.delay_ms) as store:
        for name in names:
            add(name, {"from": "store", **measure_store(
                arguments, directory, loaders, name, sizes[LOADERS[name].form], store)})
    for name in ("quire", "mds", "litdata", "webdataset"):
        if name in names:
            for row in measure_disk(arguments, directory, loaders, name):
                add(name, row)
    return {"documents": arguments.documents, "document_bytes": arguments.document_bytes,
            "delay_ms": arguments.delay_ms, "memory": arguments.memory,
            "store_memory": arguments.store_memory, "load": machine_load(), "rows": rows}


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(figures):
    def cells(row):
        loader = LOADERS[row["loader"]]
        return (loader.title, row["from"], f"{row['stored_bytes'] / 1e6:.1f}",
                number(row["per_second"]), number(row["first_seconds"]),
                *(number(row[what]) if what in row else ""
                  for what in ("gets", "bytes", "client_us", "server_us")),
                number(row["memory_bytes"] / 1e6), loader.resumes)
    return markdown(("loader", "from", "MB", "documents/s", "first document, s",
                     "GETs per document", "bytes per document", "CPU of the loader, \u00b5s",
                     "CPU of the server, \u00b5s", "memory of the loader, MB", "resumes"),
                    [cells(row) for row in figures["rows"]])


def brief_table(figures):
    """The same as two columns, for results.py."""
    def cells(row):
        found = [f"{number(row['per_second'])}/s", f"first after {number(row['first_seconds'])} s"]
        if "gets" in row:
            found.append(f"{number(row['gets'])} GETs and {number(row['bytes'])} bytes each")
        found.append(f"{number(row['client_us'])} \u00b5s of CPU each"
                     + (f", server {number(row['server_us'])} \u00b5s" if "server_us" in row else ""))
        return (f"global shuffle, {LOADERS[row['loader']].title}, {row['from']}", ", ".join(found))
    return markdown(("what", "figure"), [cells(row) for row in figures["rows"]])


def write_document(figures):
    text = DOCUMENT.read_text(encoding="utf-8")
    about = (f"{figures['documents']:,} documents of {figures['document_bytes']:,} bytes in a global "
             f"shuffle, one process; store {figures['delay_ms']:g} ms away, a cache of a tenth of the "
             f"stored bytes; server with --memory {figures['store_memory']}, from disk "
             f"{figures['memory']}; {figures['load']}.")
    text, count = re.subn(r"(<!-- begin -->\n).*(<!-- end -->)", lambda match: "".join(
        [match[1], about, "\n\n", "\n".join(table(figures)), "\n", match[2]]), text, flags=re.S)
    assert count == 1
    DOCUMENT.write_text(text, encoding="utf-8")


def set_up(directory):
    """Makes an environment with the modules of the peers. Equal arguments, equal modules."""
    subprocess.run(["/usr/bin/python3", "-m", "venv", directory], check=True)
    subprocess.run([pathlib.Path(directory) / "bin" / "python", "-m", "pip", "install", "--quiet",
                    "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                    "--requirement", BENCH / "training_peers.txt"], check=True)


def main():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--setup", metavar="DIR",
                        help="only make an environment with the modules of training_peers.txt")
    parser.add_argument("--python", metavar="PROGRAM",
                        help="Python with these modules; none: Quire alone")
    parser.add_argument("--documents", type=int, default=50_000, help="(default: %(default)s)")
    parser.add_argument("--document-bytes", type=int, default=2000, help="(default: %(default)s)")
    parser.add_argument("--delay-ms", type=float, default=30, help="(default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=20,
                        help="time limit of an epoch (default: %(default)s)")
    parser.add_argument("--memory", default="1GiB",
                        help="memory of the server that reads from disk (default: %(default)s)")
    parser.add_argument("--store-memory", default="160MiB", help="memory of the server that reads "
                        "from the store; 9 MB are left for decoded blocks (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="write the table to docs/training.md")
    parser.add_argument("--brief", action="store_true", help="print a table of two columns")
    parser.add_argument("--smoke", action="store_true", help="a short run that measures nothing")
    add_json_option(parser)
    arguments = parser.parse_args()
    if arguments.setup:
        set_up(arguments.setup)
        return
    if arguments.smoke:
        arguments.documents, arguments.seconds, arguments.delay_ms = 2000, 2, 1
    (arguments.quired,) = find_programs(arguments.build, "quired")
    with tempfile.TemporaryDirectory(prefix="quire-training-") as directory:
        figures = measure(arguments, pathlib.Path(directory))
    print_figures(arguments, figures, (brief_table if arguments.brief else table)(figures))
    if arguments.write:
        write_document(figures)


if __name__ == "__main__":
    main()
