#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A year in an hour: appends the nightly crawl of a changing site to an archive that is
being served.

    loadtest/soak/growing_archive.py --build build/release --days 365

Each night changes some pages, captures them in a WARC, appends it, and waits until the
server has taken the new state up by itself (--reload-interval). Meanwhile readers read
documents by id, ranges of the present and of earlier states, and compare each byte with
the site's history; the server scrubs; some nights withdraw a page for good, or compact
the archive. In the end everything is read once more, by range and by `quired verify`.
A finding is a wrong byte, a call that fails without a reason, a page that was withdrawn
and is seen, or damage that was scrubbed up. Prints each finding, and a table of figures;
exit code 1 if there is a finding.
"""
import bisect
import gzip
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from live_server import LiveServer, error_of, make_stubs
from markdown_table import format_number, markdown

ARCHIVE = "site"
PATIENCE_SECONDS = 120
CALL_SECONDS_MAX = 60
DAY_SECONDS = 86_400
# 2026-01-01
FIRST_DAY_SECONDS = 1_767_225_600
RANGE_SIZE_MAX = 40_000
WORKING_SET = 40
LOOKUPS = 300
# A withdrawn page is confirmed once the server has said that it applied the file.
BLOCKED, EXCLUDED = "block", "exclude"


class Site:
    """Pages of words that change from night to night, and the WARCs of them."""

    def __init__(self, draw, page_count):
        self._draw = draw
        self._words = [bytes(draw.choices(b"etaoinshrdlucmfw", k=draw.randint(2, 9)))
                       for _ in range(2000)]
        self._pages = {}
        for number in range(page_count):
            self._pages[f"http://site.example/{number % 5}/page-{number:04}"] = self._page()

    def _page(self):
        return self._draw.choices(self._words, k=self._draw.randint(100, 1200))

    def night(self, day):
        """Changes the site; returns (id, record) of all captures of the night."""
        for url in list(self._pages):
            if self._draw.random() < 0.01:
                del self._pages[url]
                self._pages[f"{url.split('?')[0]}?v={day}"] = self._page()
        captures = []
        for url, words in self._pages.items():
            changes = self._draw.random() < 0.15
            if changes:
                words[self._draw.randrange(len(words))] = b"night-%d" % day
            # All pages in the first night, later also some that stay the same.
            if day == 0 or changes or self._draw.random() < 0.05:
                captures.append((url, self._record(url, day, b" ".join(words))))
        return captures

    @staticmethod
    def _record(url, day, text):
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ",
                             time.gmtime(FIRST_DAY_SECONDS + day * DAY_SECONDS))
        body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + text
        head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
                f"WARC-Date: {date}\r\nContent-Type: application/http; msgtype=response\r\n"
                f"Content-Length: {len(body)}\r\n\r\n")
        return head.encode() + body + b"\r\n\r\n"


class History:
    """Everything that was ever appended: what the server must answer. Thread-safe."""

    def __init__(self):
        self._lock = threading.Lock()
        self._text = bytearray()
        self._starts = []
        self._ids = []
        self._ordinals_of = {}
        # Id -> (form, confirmed).
        self._withdrawn = {}
        # (uuid, size, documents) of the states that the server has had.
        self._states = []

    def add(self, captures):
        with self._lock:
            for name, record in captures:
                self._ordinals_of.setdefault(name, []).append(len(self._starts))
                self._starts.append(len(self._text))
                self._ids.append(name)
                self._text += record

    def publish(self, uuid):
        with self._lock:
            self._states.append((uuid, len(self._text), len(self._starts)))

    def withdraw(self, name, form, is_confirmed):
        with self._lock:
            self._withdrawn[name] = (form, is_confirmed)

    def withdrawal(self, name):
        """Returns (form, confirmed), or None."""
        with self._lock:
            return self._withdrawn.get(name)

    def withdrawals(self):
        with self._lock:
            return {name: form for name, (form, _) in self._withdrawn.items()}

    def states(self):
        with self._lock:
            return list(self._states)

    def ids(self):
        with self._lock:
            return list(self._ordinals_of)

    def document_count(self):
        with self._lock:
            return len(self._starts)

    def document(self, ordinal):
        """Returns (id, text)."""
        with self._lock:
            end = self._starts[ordinal + 1] if ordinal + 1 < len(self._starts) else len(self._text)
            return self._ids[ordinal], bytes(self._text[self._starts[ordinal]:end])

    def newest(self, name, document_count):
        """Returns the last ordinal of an id in the first `document_count`, or None."""
        with self._lock:
            ordinals = self._ordinals_of[name]
            index = bisect.bisect_left(ordinals, document_count)
            return ordinals[index - 1] if index else None

    def is_range(self, offset, got, confirmed):
        """True if `got` is the text at `offset`, with zeros instead of withdrawn pages:
        those of `confirmed`, perhaps those of others."""
        with self._lock:
            first = bisect.bisect_right(self._starts, offset) - 1
            last = bisect.bisect_left(self._starts, offset + len(got))
            for ordinal in range(first, last):
                start = max(offset, self._starts[ordinal])
                end = min(offset + len(got), self._starts[ordinal + 1]
                          if ordinal + 1 < len(self._starts) else len(self._text))
                piece = got[start - offset:end - offset]
                name = self._ids[ordinal]
                is_right = piece == self._text[start:end] and name not in confirmed
                is_zero = name in self._withdrawn and not any(piece)
                if not is_right and not is_zero and piece:
                    return False
            return True


class Client:
    """Calls of the server, on one channel."""

    def __init__(self, stubs, server, history, findings):
        self._stubs, self._history, self._findings = stubs, history, findings
        self._channel = server.channel()
        self._rpc = stubs.rpc.ArchiveStub(self._channel)

    def close(self):
        self._channel.close()

    def describe(self):
        request = self._stubs.pb.GetArchiveRequest(archive=ARCHIVE)
        return self._rpc.GetArchive(request, timeout=CALL_SECONDS_MAX).archive

    def read(self, **target):
        request = self._stubs.pb.ReadRequest(archive=ARCHIVE, **target)
        return self._rpc.Read(request, timeout=CALL_SECONDS_MAX)

    def document_name(self, size_bytes=None, **name):
        """Returns a document by `id` or `ordinal`, or its first `size_bytes`."""
        found = self._stubs.pb.DocumentName(**name)
        if size_bytes is not None:
            found.range.size_bytes = size_bytes
        return found

    def check_id(self, name):
        """Reads the newest capture of an id."""
        document_count = self._history.states()[-1][2]
        oldest = self._history.newest(name, document_count)
        before = self._history.withdrawal(name)
        try:
            answer = self.read(document=self._stubs.pb.DocumentName(id=name.encode()))
        except grpc.RpcError as error:
            self._check_refusal(name, oldest, error)
            return
        found, text = self._history.document(answer.document.ordinal)
        if before is not None and before[1]:
            self._findings.append(f"{name}: was withdrawn and is read")
        if found != name or text != answer.data:
            self._findings.append(f"{name}: document {answer.document.ordinal} is another")
        if oldest is not None and answer.document.ordinal < oldest:
            self._findings.append(f"{name}: read document {answer.document.ordinal}, "
                                  f"but {oldest} was served before")

    def _check_refusal(self, name, oldest, error):
        _, reason, message, _ = error_of(self._stubs, error)
        withdrawal = self._history.withdrawal(name)
        expected = set()
        if oldest is None:
            expected.add("DOCUMENT_NOT_FOUND")
        if withdrawal is not None:
            expected.add("DOCUMENT_WITHDRAWN" if withdrawal[0] == BLOCKED else
                         "DOCUMENT_NOT_FOUND")
        if reason not in expected:
            self._findings.append(f"{name}: {reason}: {message}")

    def check_range(self, draw):
        """Reads a range of the present state or of an earlier one."""
        uuid, size, _ = draw.choice(self._history.states())
        offset = draw.randrange(size)
        length = min(size - offset, draw.randint(1, RANGE_SIZE_MAX))
        self.check_exact_range(offset, length, uuid)
        if draw.random() < 0.1:
            try:
                self.read(range=self._stubs.pb.ByteRange(offset=size, size_bytes=1),
                          archive_uuid=uuid)
                self._findings.append(f"state {uuid}: has text after its end")
            except grpc.RpcError as error:
                if error_of(self._stubs, error)[1] != "RANGE_PAST_END":
                    self._findings.append(f"state {uuid}: {error.details()}")

    def check_exact_range(self, offset, length, uuid):
        confirmed = {name for name in self._history.withdrawals()
                     if self._history.withdrawal(name)[1]}
        try:
            answer = self.read(
                range=self._stubs.pb.ByteRange(offset=offset, size_bytes=length),
                archive_uuid=uuid)
        except grpc.RpcError as error:
            self._findings.append(f"range {offset} of {length}: {error.details()}")
            return
        if len(answer.data) != length or not self._history.is_range(offset, answer.data,
                                                                    confirmed):
            self._findings.append(f"range {offset} of {length}: wrong bytes")


class Readers:
    """Threads that read until they are stopped, except while they are held."""

    def __init__(self, clients, history, findings):
        self._history, self._findings = history, findings
        self._stop = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._idle = [threading.Event() for _ in clients]
        self.right_count = 0
        self._threads = [threading.Thread(target=self._run, args=(client, idle, number), daemon=True)
                         for number, (client, idle) in enumerate(zip(clients, self._idle))]
        for thread in self._threads:
            thread.start()

    def _run(self, client, idle, number):
        draw = random.Random(number)
        while not self._stop.is_set():
            if not self._free.is_set():
                idle.set()
                self._free.wait()
                idle.clear()
            try:
                if draw.random() < 0.5:
                    client.check_id(draw.choice(self._history.ids()))
                else:
                    client.check_range(draw)
                self.right_count += 1
            except Exception as error:  # pylint: disable=broad-except
                # Otherwise the thread would end silently.
                self._findings.append(f"a reader: {error!r}")
                self._stop.wait(1)
        idle.set()

    def hold(self):
        self._free.clear()
        for idle in self._idle:
            idle.wait(PATIENCE_SECONDS)

    def release(self):
        self._free.set()

    def stop(self):
        self._stop.set()
        self.release()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)


def metric(server, name):
    """Returns the sum of a metric over its labels."""
    return sum(float(line.split()[-1]) for line in server.metrics().splitlines()
               if re.match(re.escape(name) + r"[ {]", line))


class Year:
    """The nights, and what was measured in them."""

    def __init__(self, arguments, directory):
        self._quired, = find_programs(arguments.build, "quired")
        self._arguments = arguments
        self._directory = directory
        self._draw = random.Random(arguments.seed)
        self._site = Site(self._draw, arguments.pages)
        self._history = History()
        self._withdrawn_file = directory / "withdrawn"
        self._withdrawn_file.write_text("# none\n")
        self._archive = directory / f"{ARCHIVE}.quire"
        self.findings = []
        # Shares of blocks found in the cache before and after a reload, of the same reads.
        self.hits_before, self.hits_after = [], []
        # Memory of the archive that a reload adds, and what the process grows meanwhile.
        self.added_memory, self.peak_growth = [], []
        # (segments, microseconds).
        self.lookups = []
        self.segment_counts = []
        self.compactions = 0

    def _run_quired(self, *words):
        result = subprocess.run([self._quired, *map(str, words)], capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            raise RuntimeError(f"quired {words[0]}: {result.stderr}")
        return result.stderr

    def _write_night(self, day):
        captures = self._site.night(day)
        path = self._directory / f"night-{day:03}.warc.gz"
        with open(path, "wb") as file:
            for _, record in captures:
                file.write(gzip.compress(record, 6, mtime=0))
        self._history.add(captures)
        return path

    def run(self):
        first = self._write_night(0)
        self._run_quired("build", "--quiet", "-o", self._archive, "--codec", "rlz:1",
                         "--block-size", "16KiB", "--dictionary-size", "256KiB", "--inflate", "off",
                         "--segment-size", self._arguments.segment_size, first)
        first.unlink()
        stubs = make_stubs(self._directory)
        with LiveServer(self._quired, [self._archive], "--memory", "512MiB", "--reload-interval",
                        "100ms", "--scrub-interval", "1s", "--scrub-rate", "20MiB",
                        "--withdrawn", self._withdrawn_file) as server:
            clients = [Client(stubs, server, self._history, self.findings) for _ in range(3)]
            self._history.publish(clients[0].describe().uuid)
            readers = Readers(clients[1:], self._history, self.findings)
            try:
                for day in range(1, self._arguments.days + 1):
                    self._night(day, server, clients[0], readers)
            finally:
                readers.stop()
            self._read_all(clients[0])
            self._check_scrubbing(server)
            for client in clients:
                client.close()
        self._run_quired("verify", "--quiet", self._archive)
        return readers.right_count

    def _night(self, day, server, client, readers):
        path = self._write_night(day)
        is_sampled = day % self._arguments.sample_every == 0
        if is_sampled:
            readers.hold()
            working_set = self._draw.sample(range(self._history.states()[-1][2]), WORKING_SET)
            self._hits_of(server, client, working_set)
            self.hits_before.append(self._hits_of(server, client, working_set))
            memory = metric(server, "quire_archive_memory_bytes")
            resident = server.resident_bytes()
            # Resets VmHWM, the peak.
            pathlib.Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
        self._run_quired("append", "--quiet", "--segment-size", self._arguments.segment_size,
                         self._archive, path)
        path.unlink()
        self._wait_for_state(client)
        if is_sampled:
            self.peak_growth.append(max(0, server.resident_peak_bytes() - resident))
            self.added_memory.append(metric(server, "quire_archive_memory_bytes") - memory)
            self.hits_after.append(self._hits_of(server, client, working_set))
            self._measure_lookups(client)
            readers.release()
        if day % self._arguments.compact_every == 0:
            self._run_quired("compact", "--quiet", "--reorder",
                             ("dedup", "off")[self.compactions % 2], "--segment-size",
                             self._arguments.segment_size, self._archive)
            self.compactions += 1
            self._wait_for_state(client)
        if day % self._arguments.withdraw_every == 0:
            self._withdraw(client, server)
        self.segment_counts.append(client.describe().segment_count)

    def _wait_for_state(self, client):
        """Waits until the server serves the archive's present state."""
        uuid = self._inspect()["uuid"]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (found := client.describe()).uuid != uuid:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the server does not take up {uuid}")
            time.sleep(0.01)
        if found.document_count != self._history.document_count():
            self.findings.append(f"the server has {found.document_count} documents, not "
                                 f"{self._history.document_count()}")
        if self._history.states()[-1][0] not in {state.uuid for state in found.history} | {uuid}:
            self.findings.append("the state of the night before is not part of the history")
        self._history.publish(uuid)

    def _hits_of(self, server, client, ordinals):
        """Reads documents; returns the share of blocks found in the cache."""
        def counts():
            return [metric(server, f"quire_cache_{kind}_total") for kind in ("hits", "misses")]
        before = counts()
        for ordinal in ordinals:
            name, _ = self._history.document(ordinal)
            if self._history.withdrawal(name) is None:
                client.read(document=client.document_name(ordinal=ordinal))
        hits, misses = (after - old for after, old in zip(counts(), before))
        return hits / max(1, hits + misses)

    def _measure_lookups(self, client):
        names = [name for name in self._draw.choices(self._history.ids(), k=LOOKUPS)
                 if self._history.withdrawal(name) is None]
        times = []
        for name in names:
            target = client.document_name(id=name.encode(), size_bytes=1)
            started = time.perf_counter()
            client.read(document=target)
            times.append(time.perf_counter() - started)
        self.lookups.append((client.describe().segment_count, statistics.median(times) * 1e6))

    def _withdraw(self, client, server):
        name = self._draw.choice([name for name in self._history.ids()
                                  if self._history.withdrawal(name) is None])
        form = (BLOCKED, EXCLUDED)[len(self._history.withdrawals()) % 2]
        self._history.withdraw(name, form, is_confirmed=False)
        lines = "".join(f"{ARCHIVE} id {other} {kind}\n"
                        for other, kind in self._history.withdrawals().items())
        aside = self._withdrawn_file.with_suffix(".new")
        aside.write_text(lines)
        aside.rename(self._withdrawn_file)
        server.process.send_signal(1)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                client.read(document=client.document_name(id=name.encode(), size_bytes=1))
            except grpc.RpcError:
                break
            time.sleep(0.01)
        self._history.withdraw(name, form, is_confirmed=True)
        client.check_id(name)

    def _read_all(self, client):
        uuid, size, _ = self._history.states()[-1]
        for offset in range(0, size, 1 << 19):
            client.check_exact_range(offset, min(1 << 19, size - offset), uuid)
        for name in self._history.ids():
            client.check_id(name)

    def _check_scrubbing(self, server):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not metric(server, "quire_scrubbed_bytes_total"):
            if time.monotonic() > deadline:
                self.findings.append("nothing was scrubbed")
                return
            time.sleep(0.05)
        if damaged := metric(server, "quire_scrub_damaged_blocks"):
            self.findings.append(f"scrubbing found {damaged:.0f} damaged blocks")

    def figures(self, seconds, right_count):
        sizes = self._inspect()["segment_size_bytes"]
        limit = self._limit_bytes()
        return {"days": self._arguments.days, "seconds": seconds, "answers": right_count,
                "documents": self._history.document_count(),
                "size_bytes": self._history.states()[-1][1],
                "segments": len(sizes),
                "segments_below_the_size": sum(size < limit for size in sizes),
                "segments_max": max(self.segment_counts),
                "compactions": self.compactions,
                "lookup_us_first": self.lookups[0], "lookup_us_last": self.lookups[-1],
                "hits_before_reload": statistics.mean(self.hits_before),
                "hits_after_reload": statistics.mean(self.hits_after),
                "added_memory_bytes": statistics.median(self.added_memory),
                "peak_growth_bytes": statistics.median(self.peak_growth)}

    def _limit_bytes(self):
        text = self._arguments.segment_size
        return int(text[:-3]) << {"KiB": 10, "MiB": 20, "GiB": 30}[text[-3:]]

    def _inspect(self):
        return json.loads(subprocess.run([self._quired, "inspect", "--json", self._archive],
                                         check=True, stdout=subprocess.PIPE).stdout)


def table_rows(figures):
    """Returns the rows of a table of `what` and `figure`."""
    def lookup(pair):
        return f"{pair[1]:.0f} µs with {pair[0]} segments"
    return [
        (f"{figures['days']} nights appended",
         f"{figures['documents']:,} documents, {figures['size_bytes'] / 1e6:.1f} MB in "
         f"{figures['seconds']:.0f} s; {figures['answers']:,} answers compared"),
        ("segments at the end / below the segment size / most at any time",
         f"{figures['segments']} / {figures['segments_below_the_size']} / "
         f"{figures['segments_max']}"),
        ("look-up by id over gRPC, first / last", f"{lookup(figures['lookup_us_first'])} / "
         f"{lookup(figures['lookup_us_last'])}"),
        ("blocks found in the cache, before / after a reload",
         f"{figures['hits_before_reload']:.1%} / {figures['hits_after_reload']:.1%}"),
        ("memory that a reload adds to the archive / growth of the process meanwhile, median",
         f"{format_number(figures['added_memory_bytes'] / 1024, 1)} KiB / "
         f"{format_number(figures['peak_growth_bytes'] / 1024)} KiB")]


def parse_arguments():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--days", type=int, default=365, metavar="N",
                        help="nights to append (default: %(default)s)")
    parser.add_argument("--pages", type=int, default=60, metavar="N",
                        help="pages of the site (default: %(default)s)")
    parser.add_argument("--segment-size", default="4MiB", metavar="SIZE",
                        help="of build, append and compact (default: %(default)s)")
    parser.add_argument("--sample-every", type=int, default=5, metavar="DAYS",
                        help="measure in each Nth night (default: %(default)s)")
    parser.add_argument("--withdraw-every", type=int, default=30, metavar="DAYS",
                        help="withdraw a page in each Nth night (default: %(default)s)")
    parser.add_argument("--compact-every", type=int, default=91, metavar="DAYS",
                        help="compact in each Nth night (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of the site's changes (default: %(default)s)")
    add_json_option(parser)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory(prefix="quire-growing-") as directory:
        year = Year(arguments, pathlib.Path(directory))
        started = time.monotonic()
        right_count = year.run()
        figures = year.figures(time.monotonic() - started, right_count)
        print_figures(arguments, figures, markdown(("what", "figure"), table_rows(figures)))
    for finding in year.findings:
        print(f"FINDING: {finding}", file=sys.stderr)
    sys.exit(1 if year.findings else 0)


if __name__ == "__main__":
    main()
