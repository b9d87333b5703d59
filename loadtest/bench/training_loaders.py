#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes one form of documents for training_peers.py, or reads it in a global shuffle.

usage: training_loaders.py write FORM DIRECTORY TEXT BYTES SHARD_BYTES
       training_loaders.py read FORM SOURCE DOCUMENTS SECONDS CACHE CACHE_BYTES

FORM is mds, litdata or webdataset, for reading also quire. `write` makes DIRECTORY of the
file TEXT, each BYTES of which are a document, in shards of about SHARD_BYTES of text. `read` reads the documents of SOURCE, a directory or URL, in
a shuffled order: all, or as many as are read in SECONDS; with SECONDS = 0 all. CACHE is a
directory for local copies of at most CACHE_BYTES. Prints one JSON object with the documents, and the
seconds and CPU seconds from the first call to the last document.

Memory of webdataset is not bounded: its buffer has all documents, as its shuffle would not be global otherwise.
The others keep shards in CACHE.
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


def read_mds(source, _, cache, cache_bytes):
    from streaming import StreamingDataset
    is_local = "://" not in source
    if not is_local:
        os.environ["S3_ENDPOINT_URL"], _, key = source.rpartition("/")
        source = f"s3://{key}"
    # "naive" is its only shuffle that is global.
    dataset = StreamingDataset(
        local=source if is_local else cache, remote=None if is_local else source, shuffle=True,
        shuffle_algo="naive", num_canonical_nodes=1, batch_size=256,
        cache_limit=None if is_local else cache_bytes)
    return lambda: (sample["data"] for sample in dataset)


def read_litdata(source, count, cache, cache_bytes):
    import litdata
    from litdata.streaming import dataset as _  # pylint: disable=unused-import
    options = {}
    if "://" in source:
        endpoint, _, key = source.rpartition("/")
        source = f"s3://{key}"
        options = {"storage_options": {
            "endpoint_url": endpoint, "aws_access_key_id": "any", "aws_secret_access_key": "any",
            "region_name": "us-east-1"}, "max_cache_size": cache_bytes, "cache_dir": cache}
    # Its shuffle is one of chunks and within chunks; reading at random makes it global.
    dataset = litdata.StreamingDataset(source, **options)
    order = random.Random(1).sample(range(count), count)
    return lambda: (dataset[index] for index in order)


def read_webdataset(source, count, *_):
    import webdataset
    names = (pathlib.Path(source).glob("*.tar.gz") if "://" not in source
             else json.loads(os.environ["WEBDATASET_SHARDS"]))
    urls = sorted(f"pipe:curl -s {source}/{name}" if "://" in source else str(name)
                  for name in names)
    # A buffer of all documents.
    dataset = webdataset.WebDataset(urls, shardshuffle=len(urls), empty_check=False).shuffle(
        count, initial=count)
    return lambda: (sample["txt"] for sample in dataset)


def read_quire(source, *_):
    from quire_archive.training import DocumentStream
    server, _, name = source.rpartition("/")
    stream = DocumentStream(server, name, seed=1)
    return lambda: itertools.chain.from_iterable(stream)


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime for usage in map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def read(form, source, count, seconds, cache, cache_bytes):
    iterate = globals()[f"read_{form}"](source, count, cache, cache_bytes)
    started, cpu = time.monotonic(), cpu_seconds()
    seen = bytearray(count)
    total = 0
    for document in iterate():
        number = int(document[:8])
        if seen[number]:
            sys.exit(f"training_loaders.py: {form} returned document {number} twice")
        seen[number] = 1
        total += 1
        if seconds and total % 16 == 0 and time.monotonic() - started > seconds:
            break
    else:
        if total != count:
            sys.exit(f"training_loaders.py: {form} returned {total} of {count} documents")
    print(json.dumps({"documents": total, "seconds": time.monotonic() - started,
                      "cpu_seconds": cpu_seconds() - cpu}), flush=True)
    # Threads of some peers would have to end first.
    os._exit(0)


def main():
    what, form, place, text, *rest = sys.argv[1:] if len(sys.argv) > 6 else sys.exit(__doc__)
    if what == "write":
        with open(text, "rb") as file:
            globals()[f"write_{form}"](
                pathlib.Path(place), iter(lambda: file.read(int(rest[0])), b""), int(rest[1]))
    else:
        read(form, place, int(text), float(rest[0]), rest[1], int(rest[2]))


if __name__ == "__main__":
    main()
