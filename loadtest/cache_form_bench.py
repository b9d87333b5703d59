#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the two forms of the block cache are worth: hit rate, and the server's CPU
time for an answer, which other load on the machine changes little.

usage: cache_form_bench.py QUIRED ARCHIVE [--memory SIZE]... [--requests N]

Reads documents whose demand falls with their rank (Zipf), once to warm the
cache and once measured; prints a Markdown table.
"""
import argparse
import bisect
import collections
import itertools
import random
import re
import tempfile

from bench_json import add_json_option, print_figures
from codec_table import markdown
from live_server import LiveServer, make_stubs

SEED = 20261123
IN_FLIGHT = 32


def draw_ordinals(count, document_count, exponent):
    """Ordinals in Zipf's proportions, ranks spread over the archive by chance."""
    draw = random.Random(SEED)
    ranked = list(range(document_count))
    draw.shuffle(ranked)
    shares = list(itertools.accumulate(
        rank ** -exponent for rank in range(1, document_count + 1)))
    return [ranked[bisect.bisect(shares, draw.random() * shares[-1])] for _ in range(count)]


def counter(text, name):
    return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))


def read_all(stubs, archive, ordinals, encoding):
    """Bytes of text and of data."""
    pb = stubs.pb
    decoded = wire = 0
    waiting = collections.deque()
    for ordinal in [*ordinals, *[None] * IN_FLIGHT]:
        if len(waiting) == IN_FLIGHT or ordinal is None:
            if waiting:
                response = waiting.popleft().result()
                decoded += response.range.size_bytes
                wire += len(response.data)
        if ordinal is not None:
            waiting.append(archive.Read.future(pb.ReadRequest(
                archive="bench", document=pb.DocumentName(ordinal=ordinal),
                accepted_encodings=[encoding])))
    return decoded, wire


def measure(stubs, arguments, form, memory, encoding):
    with LiveServer(arguments.quired, [f"bench={arguments.archive}"], "--memory", memory,
                    "--cache-form", form) as server, server.channel() as channel:
        archive = stubs.rpc.ArchiveStub(channel)
        pb = stubs.pb
        listing = archive.ListArchives(pb.ListArchivesRequest())
        limit = listing.limits.read_size_bytes_max
        ordinals = draw_ordinals(2 * arguments.requests, listing.archives[0].document_count,
                                 arguments.exponent)
        sizes = {}
        for ordinal in set(ordinals):
            request = pb.DocumentName(ordinal=ordinal, range=pb.ByteRange(size_bytes=0))
            sizes[ordinal] = archive.Read(pb.ReadRequest(
                archive="bench", document=request)).document.range.size_bytes
        ordinals = [o for o in ordinals if sizes[o] <= limit]
        half = len(ordinals) // 2
        number = getattr(pb, f"WIRE_ENCODING_{encoding.upper()}")
        read_all(stubs, archive, ordinals[:half], number)
        before, cpu = server.metrics(), server.cpu_seconds()
        decoded, wire = read_all(stubs, archive, ordinals[half:], number)
        cpu = server.cpu_seconds() - cpu
        after = server.metrics()
        hits, misses, blocks = (
            counter(after, name) - counter(before, name) if name.endswith("total")
            else counter(after, name)
            for name in ("quire_cache_hits_total", "quire_cache_misses_total",
                         "quire_cache_blocks"))
        count = len(ordinals) - half
        return {"memory": memory, "form": form, "encoding": encoding, "blocks": int(blocks),
                "hits_percent": round(100 * hits / (hits + misses), 1),
                "cpu_us": round(1e6 * cpu / count), "text_bytes": round(decoded / count),
                "sent_bytes": round(wire / count)}


def table(rows):
    """Markdown lines."""
    return markdown(
        ["--memory", "cache form", "answers in", "blocks cached", "hits", "CPU an answer",
         "KiB of text", "KiB sent"],
        [[row["memory"], row["form"], row["encoding"], f"{row['blocks']:,}",
          f"{row['hits_percent']} %", f"{row['cpu_us']} µs", f"{row['text_bytes'] / 1024:.1f}",
          f"{row['sent_bytes'] / 1024:.1f}"] for row in rows])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("quired")
    parser.add_argument("archive")
    parser.add_argument("--memory", action="append")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--exponent", type=float, default=0.8)
    add_json_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        stubs = make_stubs(directory)
        rows = [measure(stubs, arguments, form, memory, encoding)
                for memory in arguments.memory or ["256MiB", "2GiB"]
                for encoding in ("identity", "fsst") for form in ("identity", "fsst")]
    print_figures(arguments, rows, table(rows))


if __name__ == "__main__":
    main()
