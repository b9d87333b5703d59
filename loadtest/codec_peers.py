# SPDX-License-Identifier: Apache-2.0
"""What the codec benchmark holds Quire against: bgzip, LZO and Blosc, and RocksDB with
zstd dictionary compression. Rows as codec_table.py describes them.

Needs what `deploy/bootstrap.sh bench` installs; codec_bench/codec_peers.cc is compiled here.
"""
import json
import pathlib
import shutil
import subprocess

from live_server import run_measured

SOURCE = pathlib.Path(__file__).parent / "codec_bench" / "codec_peers.cc"
HEADERS = ("libdeflate.h", "rocksdb/db.h", "lzo/lzo1x.h", "blosc.h")
# BGZF has no other; a block of it has a little less text.
BGZF_BLOCK_SIZE = 64 << 10
ROCKSDB_BLOCK_SIZES = (16 << 10, 64 << 10)
ROCKSDB_DICTIONARY_SIZE = 112 << 10


def missing():
    """What is not installed, as one line; empty if nothing is."""
    lacking = [name for name in HEADERS if not pathlib.Path("/usr/include", name).exists()]
    if not shutil.which("bgzip"):
        lacking.append("bgzip")
    return ", ".join(lacking)


def build(directory):
    """Compiles codec_peers into `directory`, unless it is there already."""
    program = directory / "codec_peers"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        subprocess.run(["g++", "-std=c++20", "-O3", "-Wall", "-Wextra", SOURCE, "-o", program,
                        "-lrocksdb", "-ldeflate", "-llzo2", "-lblosc"], check=True)
    return program


def measure_block_codec(program, codec, text, block_size, seconds):
    """A row of kind `block`: each block of the text under `lzo` or `blosc:WIDTH`."""
    report = json.loads(run_measured([program, "blocks", codec, text, str(block_size),
                                      str(seconds)])[3])
    size, blocks = text.stat().st_size, -(-text.stat().st_size // block_size)
    # Where each block begins, as our index has it: 4 bytes before it is compressed.
    return {"kind": "block", "codec": codec, "block_size_bytes": block_size, "text_bytes": size,
            "encoded_bytes": size, "index_bytes": 4 * blocks, **report}


def measure_bgzip(program, text, directory, seconds):
    """A row of kind `block`: the text under bgzip, and its own index."""
    packed, index = directory / "text.gz", directory / "text.gz.gzi"
    _, cpu, peak, _ = run_measured(["bgzip", "--index", "--index-name", index, "--stdout", text],
                                   standard_output=packed)
    report = json.loads(run_measured([program, "bgzf", text, packed, index, str(seconds)])[3])
    row = {"kind": "block", "codec": "bgzip", "block_size_bytes": BGZF_BLOCK_SIZE,
           "text_bytes": text.stat().st_size, "encoded_bytes": text.stat().st_size,
           "payload_bytes": packed.stat().st_size, "index_bytes": index.stat().st_size,
           "encode_mb_per_second": round(text.stat().st_size / 1e6 / cpu, 3),
           "peak_memory_bytes": peak, **report}
    packed.unlink()
    index.unlink()
    return row


def measure_rocksdb(program, text, documents, block_size, directory, seconds):
    """A row of kind `store`: the documents in a RocksDB of one level."""
    store = directory / "rocksdb"
    shutil.rmtree(store, ignore_errors=True)
    report = json.loads(run_measured(
        [program, "rocksdb", text, documents, store, str(block_size), str(seconds)])[3])
    shutil.rmtree(store)
    size = text.stat().st_size
    return {"kind": "store", "codec": "RocksDB zstd:3", "block_size_bytes": block_size,
            "dictionary_method": "trained", "dictionary_size_bytes": ROCKSDB_DICTIONARY_SIZE,
            "text_bytes": size, "encoded_bytes": size, "payload_bytes": report["payload_bytes"],
            "encode_mb_per_second": round(size / 1e6 / report["build_cpu_seconds"], 3),
            "documents_per_second": report["documents_per_second"],
            "peak_memory_bytes": report["peak_memory_bytes"]}
