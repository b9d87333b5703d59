#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one form of documents for training_peers.py, or reads it in a global shuffle.

usage: training_loaders.py write FORM DIRECTORY TEXT BYTES SHARD_BYTES
       training_loaders.py read LOADER SOURCE DOCUMENTS SECONDS CACHE CACHE_BYTES EPOCHS

FORM is mds, litdata or webdataset. `write` makes DIRECTORY of the file TEXT, each BYTES of which are
a document, in shards of about SHARD_BYTES of text. `read` reads the documents of SOURCE, a
directory or URL, in a shuffled order: all, or as many as are read in SECONDS; with SECONDS = 0 all.
CACHE is a directory for local copies of at most CACHE_BYTES. Prints a JSON object per epoch: the
documents, seconds and CPU seconds from the first call to the last document, seconds to the first
document, and by how many bytes the most resident memory has grown. Waits for a line before each
epoch after the first; an epoch that was cut by SECONDS is the last.

LOADER is a form, or one of
  quire          64 MiB of documents are read ahead, the default
  quire-set      as much as the set is read ahead
  mds            shuffle_algo="naive", its only global shuffle
  litdata        by index: its own shuffle is one of chunks and within chunks
  mds-buffer, litdata-buffer, webdataset
                 in the order of the shards, into a buffer of all documents, which is shuffled
"""
import itertools
import json
import os
import pathlib
import random
import resource
import sys
import time

# Each peer and torch must be imported before the clock starts.
# pylint: disable=import-outside-toplevel


def make_documents(count, size):
    """`count` documents of `size` bytes of words, frequent and rare ones, which begin with their number."""
    draw = random.Random(1)
    words = [bytes(draw.choices(b"etaoinshrdlucmfw", k=draw.randint(2, 9))) for _ in range(20_000)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(words) + 1)))
    for number in range(count):
        text = b" ".join(draw.choices(words, cum_weights=weights, k=size // 5))
        yield (b"%08d " % number + text)[:size].ljust(size)


def write_mds(directory, documents, shard_bytes):
    from streaming import MDSWriter
    with MDSWriter(out=str(directory), columns={"data": "bytes"}, compression="zstd:9",
                   size_limit=shard_bytes) as writer:
        for document in documents:
            writer.write({"data": document})


def write_litdata(directory, documents, shard_bytes):
    from litdata.streaming.writer import BinaryWriter
    directory.mkdir()
    writer = BinaryWriter(str(directory), chunk_bytes=shard_bytes, compression="zstd")
    for index, document in enumerate(documents):
        writer.add_item(index, document)
    writer.done()
    writer.merge()


def write_webdataset(directory, documents, shard_bytes):
    import webdataset
    directory.mkdir()
    with webdataset.ShardWriter(f"{directory}/%06d.tar.gz", maxsize=shard_bytes,
                                verbose=0) as writer:
        for number, document in enumerate(documents):
            writer.write({"__key__": f"{number:08}", "txt": document})


# Readers: of (source, count, cache, cache_bytes); each returns a function of the epoch that returns
# an iterator.

def shuffled(read_in_order):
    """A function of the epoch: all documents in a buffer, then at random."""
    def read_epoch(epoch):
        buffer = list(read_in_order())
        random.Random(epoch).shuffle(buffer)
        yield from buffer
    return read_epoch


def open_mds(source, cache, cache_bytes, **options):
    from streaming import StreamingDataset
    is_local = "://" not in source
    if not is_local:
        os.environ["S3_ENDPOINT_URL"], _, key = source.rpartition("/")
        source = f"s3://{key}"
    return StreamingDataset(
        local=source if is_local else cache, remote=None if is_local else source,
        num_canonical_nodes=1, batch_size=256, cache_limit=None if is_local else cache_bytes,
        **options)


def read_mds(source, _, cache, cache_bytes):
    dataset = open_mds(source, cache, cache_bytes, shuffle=True, shuffle_algo="naive")
    return lambda _: (sample["data"] for sample in dataset)


def read_mds_buffer(source, _, cache, cache_bytes):
    dataset = open_mds(source, cache, cache_bytes, shuffle=False)
    return shuffled(lambda: (sample["data"] for sample in dataset))


def open_litdata(source, cache, cache_bytes):
    import litdata
    from litdata.streaming import downloader
    options = {}
    if "://" in source:
        # The store has no certificate.
        downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
        endpoint, _, key = source.rpartition("/")
        source = f"s3://{key}"
        options = {"storage_options": {
            "endpoint_url": endpoint, "aws_access_key_id": "any", "aws_secret_access_key": "any",
            "region_name": "us-east-1"}, "max_cache_size": cache_bytes, "cache_dir": cache}
    return litdata.StreamingDataset(source, **options)


def read_litdata(source, count, cache, cache_bytes):
    dataset = open_litdata(source, cache, cache_bytes)
    return lambda epoch: (
        dataset[index] for index in random.Random(epoch).sample(range(count), count))


def read_litdata_buffer(source, _, cache, cache_bytes):
    dataset = open_litdata(source, cache, cache_bytes)
    return shuffled(lambda: dataset)


def read_webdataset(source, count, *_):
    import webdataset
    names = (pathlib.Path(source).glob("*.tar.gz") if "://" not in source
             else json.loads(os.environ["WEBDATASET_SHARDS"]))
    urls = sorted(f"pipe:curl -s {source}/{name}" if "://" in source else str(name)
                  for name in names)
    # A buffer of all documents.
    return lambda epoch: (sample["txt"] for sample in webdataset.WebDataset(
        urls, shardshuffle=len(urls), empty_check=False, seed=epoch).shuffle(count, initial=count))


def open_quire(source, **options):
    from quire_archive.training import DocumentStream
    server, _, name = source.rpartition("/")
    stream = DocumentStream(server, name, seed=1, **options)
    return lambda _: itertools.chain.from_iterable(stream)


def read_quire(source, *_):
    return open_quire(source)


def read_quire_set(source, count, *_):
    return open_quire(source, look_ahead_documents=count, look_ahead_bytes=1 << 40)


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def read_epoch(documents, count, seconds, name):
    """The figures of an epoch. Ends this process if a document is missing or comes twice."""
    started, cpu, memory = time.monotonic(), cpu_seconds(), peak_bytes()
    first = None
    seen = bytearray(count)
    total = 0
    for document in documents:
        first = first or time.monotonic()
        number = int(document[:8])
        if seen[number]:
            sys.exit(f"training_loaders.py: {name} returned document {number} twice")
        seen[number] = 1
        total += 1
        if seconds and total % 16 == 0 and time.monotonic() - started > seconds:
            break
    else:
        if total != count:
            sys.exit(f"training_loaders.py: {name} returned {total} of {count} documents")
    return {"documents": total, "seconds": time.monotonic() - started,
            "first_seconds": first - started, "cpu_seconds": cpu_seconds() - cpu,
            "memory_bytes": peak_bytes() - memory}


def read(loader, source, count, seconds, cache, cache_bytes, epochs):
    iterate = globals()[f"read_{loader.replace('-', '_')}"](source, count, cache, cache_bytes)
    for epoch in range(epochs):
        if epoch:
            # training_peers.py has noted what else it measures.
            sys.stdin.readline()
        figures = read_epoch(iterate(epoch), count, seconds, loader)
        print(json.dumps(figures), flush=True)
        if figures["documents"] < count:
            break
    # Threads of some peers would have to end first.
    os._exit(0)


def main():
    what, form, place, text, *rest = sys.argv[1:] if len(sys.argv) > 6 else sys.exit(__doc__)
    if what == "write":
        with open(text, "rb") as file:
            globals()[f"write_{form}"](
                pathlib.Path(place), iter(lambda: file.read(int(rest[0])), b""), int(rest[1]))
    else:
        read(form, place, int(text), float(rest[0]), rest[1], int(rest[2]), int(rest[3]))


if __name__ == "__main__":
    main()
