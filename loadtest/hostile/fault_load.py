#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Clients that read through a proxy while something fails: threads with the Python client, the program
`quire` and quire-http. Counts calls, failures by their reason, and the longest call."""
import collections
import dataclasses
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

# A thread makes its next call so much later than one that failed.
PAUSE_S = 0.05
# Only a hang takes this long.
PATIENCE_S = 120
# Ends a program whose --timeout does not.
COMMAND_SECONDS_MAX = 90


@dataclasses.dataclass
class Tally:
    """Calls of one client."""
    calls: int = 0
    worst_s: float = 0.0
    # Reason -> failed calls.
    failed: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    # Reason -> the first message.
    messages: dict = dataclasses.field(default_factory=dict)

    def add(self, seconds, reason=None, message=""):
        self.calls += 1
        self.worst_s = max(self.worst_s, seconds)
        if reason is not None:
            self.failed[reason] += 1
            self.messages.setdefault(reason, " ".join(str(message).split())[:300])

    def merge(self, other):
        self.calls += other.calls
        self.worst_s = max(self.worst_s, other.worst_s)
        self.failed.update(other.failed)
        self.messages = {**other.messages, **self.messages}

    def figures(self):
        return {"calls": self.calls, "worst_s": round(self.worst_s, 3),
                "failed": dict(self.failed)}


class CallFailed(Exception):
    """A call that failed: reason and message."""


WRONG = "wrong bytes"


def compare(got, expected):
    if got != expected:
        raise CallFailed(WRONG, f"{len(got)} bytes, not the {len(expected)} expected ones")


def run_program(command, data=None):
    """Returns standard output. Raises CallFailed."""
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, input=data or b"",
                              timeout=COMMAND_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise CallFailed(f"no end in {COMMAND_SECONDS_MAX} s", command) from error
    if done.returncode != 0:
        raise CallFailed(f"exit code {done.returncode}", done.stderr.decode(errors="replace"))
    return done.stdout


class PythonReader:
    """Reads by the Python package, by a connection of its own."""
    name = "Python"

    def __init__(self, trial, address):
        self._errors = trial.quire_archive.QuireError
        self._client = trial.quire_archive.connect(address)

    def read(self, archive, key, expected):
        try:
            compare(self._client[archive].read(key), expected)
        except self._errors as error:
            raise CallFailed(error.reason or error.code, error) from error

    def close(self):
        self._client.close()


class CommandReader:
    """Runs `quire get`."""
    name = "`quire`"

    def __init__(self, trial, address):
        self._command = [trial.quire, "--server", address, "--cache-dir", "-", "-q", "get"]

    def read(self, archive, key, expected):
        compare(run_program([*self._command, archive, key]), expected)

    def close(self):
        pass


class GatewayReader:
    """Makes GET requests to a quire-http."""
    name = "`quire-http`"

    def __init__(self, _trial, url):
        self._url = url

    def read(self, archive, key, expected):
        url = f"{self._url}/v1/{archive}/doc/{urllib.parse.quote(key)}"
        try:
            with urllib.request.urlopen(url, timeout=COMMAND_SECONDS_MAX) as answer:
                compare(answer.read(), expected)
        except urllib.error.HTTPError as error:
            with error:
                raise CallFailed(f"HTTP {error.code}", error.read()[:300]) from error
        except OSError as error:
            raise CallFailed(type(error).__name__, error) from error

    def close(self):
        pass


class Load:
    """Threads that read until the end of the block; a context manager.

    `tallies` has the sum of each kind of calls by client, after the block.
    """

    def __init__(self, trial):
        self._trial = trial
        self._threads = []
        self._found = []
        self._ends = threading.Event()
        self._faults = []
        self.tallies = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self._ends.set()
        end = time.monotonic() + PATIENCE_S
        for thread in self._threads:
            thread.join(max(0, end - time.monotonic()))
        if kind is None and any(thread.is_alive() for thread in self._threads):
            raise RuntimeError("a reader does not end")
        if kind is None and self._faults:
            raise self._faults[0]
        for name, client, tally in self._found:
            self.tallies.setdefault(name, {}).setdefault(client, Tally()).merge(tally)

    def _run(self, action, close, tally, pause_s):
        """Calls action() until the end; StopIteration ends it, too."""
        while not self._ends.is_set():
            begun = time.monotonic()
            try:
                action()
                tally.add(time.monotonic() - begun)
                self._ends.wait(pause_s)
            except StopIteration:
                break
            except CallFailed as error:
                tally.add(time.monotonic() - begun, *error.args)
                self._ends.wait(max(pause_s, PAUSE_S))
            except Exception as error:  # pylint: disable=broad-exception-caught
                # Of this script; raised at the end.
                self._faults.append(error)
                break
        close()

    def add(self, kind, client, action, close=lambda: None, pause_s=0):
        """Repeats action(), which makes a call of this kind, in a thread."""
        tally = Tally()
        self._found.append((kind, client, tally))
        thread = threading.Thread(target=self._run, args=(action, close, tally, pause_s),
                                  daemon=True)
        self._threads.append(thread)
        thread.start()

    def read(self, kind, pick, python=2, command=1, gateway=1, pause_s=0):
        """Reads what pick() returns: archive, key and bytes. The numbers are of threads, the pause is
        that of each between its calls."""
        for reader, address, count in ((PythonReader, self._trial.address, python),
                                       (CommandReader, self._trial.address, command),
                                       (GatewayReader, self._trial.gateway_url, gateway)):
            for _ in range(count):
                made = reader(self._trial, address)
                self.add(kind, made.name, lambda made=made: made.read(*pick()), made.close,
                         pause_s)

    def end_when_read(self, seconds):
        """Waits until all threads have ended by themselves, for at most `seconds`."""
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0, end - time.monotonic()))


class Picks:
    """Draws documents; thread-safe."""

    def __init__(self, documents, archives, first=0.0, last=1.0):
        """Draws from that part of each archive's documents."""
        self._documents = documents
        self._archives = list(archives)
        self._part = first, last
        self._draw = random.Random(7)

    def __call__(self):
        archive = self._draw.choice(self._archives)
        documents = self._documents[archive]
        first, last = (int(part * len(documents)) for part in self._part)
        return archive, *documents[self._draw.randrange(first, last)]


class Once:
    """Gives each item once; thread-safe."""

    def __init__(self, items):
        self._items = iter(list(items))
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            return next(self._items)


def command_runs(quire, address, archive, documents):
    """Returns subcommand -> a function that runs it with further options, and checks what it prints."""
    ids = [key for key, _ in documents]
    data = dict(documents)
    text = b"".join(data.values())
    some = ids[3::len(ids) // 5][:5]
    half = len(text) // 2

    def run(*words, expected=None, standard_input=None):
        def action(options):
            got = run_program([quire, "--server", address, "--cache-dir", "-", "-q", *options, *words],
                              standard_input)
            if expected is not None:
                compare(got, expected)
        return action

    def export(options):
        with tempfile.TemporaryDirectory() as directory:
            run("export", archive, "--output-dir", directory)(options)
            files = sum(path.is_file() for path in pathlib.Path(directory).rglob("*"))
            if files != len(ids):
                raise CallFailed(WRONG, f"{files} files, not {len(ids)}")

    return {
        "archives": run("archives"),
        "info": run("info", archive),
        "ls": run("ls", archive, expected="".join(f"{key}\n" for key in ids).encode()),
        "ls --delimiter": run("ls", archive, "--delimiter", "/"),
        "get": run("get", archive, ids[1], expected=data[ids[1]]),
        "get of 5 ids": run("get", archive, *some, expected=b"".join(data[key] for key in some)),
        "get --range": run("get", archive, ids[2], "--range", "10:100", expected=data[ids[2]][10:110]),
        "range": run("range", archive, half, 100_000, expected=text[half:half + 100_000]),
        "scan": run("scan", archive, expected=text),
        "batch": run("batch", archive, standard_input="\n".join(ids[::7]).encode(),
                     expected=b"".join(data[key] for key in ids[::7])),
        "batch --ranges": run("batch", archive, "--ranges", standard_input=b"0 10\n1000 20\n",
                              expected=text[:10] + text[1000:1020]),
        "export --tar": run("export", archive, "--tar", "-"),
        "export --output-dir": export,
    }


def reasons_text(failed):
    """Names the reasons, the most frequent first."""
    return ", ".join(f"{re.sub(r'^exit code', 'exit', reason)} {count:,}"
                     for reason, count in sorted(failed.items(), key=lambda item: -item[1]))
