#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds one peer of archive_bench.py or short_documents.py that has a Python package,
compares what it reads with the text, and measures random reads.

usage: python_peers.py zim TEXT DOCUMENTS.tsv OUT SECONDS
       python_peers.py indexed_gzip|rapidgzip TEXT DOCUMENTS.tsv OUT SECONDS
       python_peers.py duckdb|lance|lance-zstd TEXT DOCUMENTS.tsv OUT SECONDS

Prints one JSON object; times are CPU times of this process and its children. zim reads whole
documents, two read ranges of 16 KiB of TEXT.gz, which `gzip -9` makes; their caches hold little
more than one cluster, so that reads decode. The last three read 2,000 documents at a time from a
column of strings, by row number.
"""
import json
import pathlib
import random
import resource
import shutil
import subprocess
import sys

RANGE_BYTES = 16 << 10
BATCH_SIZE = 2_000
ROUNDS = 3


def cpu_seconds():
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def best_rate(seconds, read):
    """Returns the best rate of rounds, in calls of `read` per CPU second."""
    best = 0
    for _ in range(ROUNDS):
        count, started = 0, cpu_seconds()
        while (elapsed := cpu_seconds() - started) < seconds:
            read()
            count += 1
        best = max(best, count / elapsed)
    return best


def expect(is_right):
    if not is_right:
        sys.exit("python_peers.py: what was read differs from the text")


def read_rows(path):
    with open(path, encoding="utf-8", errors="surrogateescape") as index:
        return [tuple(map(int, line.split("\t", 2)[:2])) for line in index]


def measure_zim(text, rows, out, seconds):
    from libzim.reader import (Archive,  # pylint: disable=import-outside-toplevel
                               set_cluster_cache_max_size)
    from libzim.writer import (Creator, Hint, Item,  # pylint: disable=import-outside-toplevel
                               StringProvider)

    class Page(Item):
        """One document."""

        def __init__(self, number, data):
            super().__init__()
            self.number, self.data = number, data

        def get_path(self):
            return f"{self.number:08}"

        def get_title(self):
            return self.get_path()

        def get_mimetype(self):
            return "text/html"

        def get_contentprovider(self):
            return StringProvider(self.data)

        def get_hints(self):
            # Others are not compressed, or indexed for searching.
            return {Hint.COMPRESS: True, Hint.FRONT_ARTICLE: False}

    started = cpu_seconds()
    with Creator(out).config_indexing(False, "eng").config_nbworkers(1) as creator:
        for number, (offset, size) in enumerate(rows):
            creator.add_item(Page(number, text[offset:offset + size]))
    build = cpu_seconds() - started
    archive = Archive(out)

    def read(number):
        return bytes(archive.get_entry_by_path(f"{number:08}").get_item().content)

    for number, (offset, size) in enumerate(rows):
        expect(read(number) == text[offset:offset + size])
    draw = random.Random(1)
    set_cluster_cache_max_size(1)
    return out.stat().st_size, build, best_rate(
        seconds, lambda: read(draw.randrange(len(rows))))


def measure_gzip(module, text_path, text, out, seconds):
    packed, index = out.with_suffix(".gz"), out.with_suffix(".index")
    started = cpu_seconds()
    with open(packed, "wb") as file:
        subprocess.run(["gzip", "-9", "-c", text_path], check=True, stdout=file)
    if module == "indexed_gzip":
        import indexed_gzip  # pylint: disable=import-outside-toplevel
        with indexed_gzip.IndexedGzipFile(str(packed)) as file:
            file.build_full_index()
            file.export_index(str(index))
        opened = indexed_gzip.IndexedGzipFile(str(packed), index_file=str(index))
    else:
        import rapidgzip  # pylint: disable=import-outside-toplevel
        with rapidgzip.open(str(packed), parallelization=1) as file:
            while file.read(1 << 22):
                pass
            file.export_index(str(index))
        opened = rapidgzip.open(str(packed), parallelization=1)
        opened.import_index(str(index))
    build = cpu_seconds() - started
    draw = random.Random(1)

    def read():
        offset = draw.randrange(len(text) - RANGE_BYTES + 1)
        opened.seek(offset)
        return offset, opened.read(RANGE_BYTES)

    for _ in range(200):
        offset, data = read()
        expect(data == text[offset:offset + RANGE_BYTES])
    return packed.stat().st_size + index.stat().st_size, build, best_rate(seconds, read)


def open_duckdb(column, out):
    """Returns the stored bytes, and a function that reads rows by number."""
    import duckdb  # pylint: disable=import-outside-toplevel
    import pyarrow  # pylint: disable=import-outside-toplevel
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    # The newest format has the newest compression.
    connection.execute(f"ATTACH '{out}' AS file (STORAGE_VERSION 'latest')")
    connection.register("documents", column)
    connection.execute("CREATE TABLE file.documents AS SELECT text FROM documents")
    connection.execute("CHECKPOINT file")
    connection.execute("DETACH file")
    connection.execute(f"ATTACH '{out}' AS file (READ_ONLY)")

    def read(numbers):
        connection.register("wanted", pyarrow.table({"number": numbers}))
        return connection.sql(
            "SELECT text FROM file.documents AS d JOIN wanted ON d.rowid = wanted.number "
            "ORDER BY d.rowid").to_arrow_table().column(0).to_pylist()

    return lambda: out.stat().st_size, read


def open_lance(column, out, compression):
    """As open_duckdb(); without `compression` Lance chooses."""
    import lance  # pylint: disable=import-outside-toplevel
    import pyarrow  # pylint: disable=import-outside-toplevel
    metadata = {"lance-encoding:compression": compression} if compression else None
    schema = pyarrow.schema([pyarrow.field("text", pyarrow.string(), metadata=metadata)])
    lance.write_dataset(pyarrow.table(column.columns, schema=schema), out)
    dataset = lance.dataset(out)
    return (lambda: sum(file.stat().st_size for file in out.rglob("*") if file.is_file()),
            lambda numbers: dataset.take(numbers, columns=["text"]).column(0).to_pylist())


def measure_column(peer, text, rows, out, seconds):
    import pyarrow  # pylint: disable=import-outside-toplevel
    documents = [text[offset:offset + size].decode() for offset, size in rows]
    column = pyarrow.table({"text": pyarrow.array(documents)})
    started = cpu_seconds()
    if peer == "duckdb":
        stored_bytes, read = open_duckdb(column, out)
    else:
        stored_bytes, read = open_lance(column, out, peer.partition("-")[2])
    build = cpu_seconds() - started
    for first in range(0, len(documents), BATCH_SIZE):
        expected = documents[first:first + BATCH_SIZE]
        expect(read(list(range(first, first + len(expected)))) == expected)
    draw = random.Random(1)
    size = min(BATCH_SIZE, len(documents))
    batches = best_rate(seconds, lambda: read(sorted(draw.sample(range(len(documents)), size))))
    return stored_bytes(), build, batches * size


def main():
    peers = ("zim", "indexed_gzip", "rapidgzip", "duckdb", "lance", "lance-zstd")
    if len(sys.argv) != 6 or sys.argv[1] not in peers:
        sys.exit(__doc__)
    peer, text_path, rows_path, out, seconds = sys.argv[1:]
    out = pathlib.Path(out)
    text = pathlib.Path(text_path).read_bytes()
    if peer == "zim":
        stored, build, rate = measure_zim(text, read_rows(rows_path), out, float(seconds))
    elif peer in peers[3:]:
        stored, build, rate = measure_column(peer, text, read_rows(rows_path), out,
                                             float(seconds))
    else:
        if not shutil.which("gzip"):
            sys.exit("python_peers.py: no gzip")
        stored, build, rate = measure_gzip(peer, text_path, text, out, float(seconds))
    print(json.dumps({"stored_bytes": stored, "build_cpu_seconds": round(build, 3),
                      "reads_per_second": round(rate, 1)}))


if __name__ == "__main__":
    main()
