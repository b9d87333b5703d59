#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads very many archives at once: the memory of decoders is bounded over all archives;
and an archive with very many references to one block. hostile_test.py runs these
tests, the former with one codec.

usage: hostile_archives.py QUIRED [CODEC...] Runs the test of many archives with each
codec, or with those named.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from hostile_case import SEED, HostileCase
from live_server import make_documents, write_corpus

ARCHIVE_COUNT = 200
# Where memory is not compared with its limit.
FEWER_ARCHIVES = 40
CONNECTIONS = 16
ROUNDS = 2
DICTIONARY_CODECS = ("auto", "inflate", "zlib-primed")
MEMORY_MIB = 160
# Each of its archives has a table for answers.
FSST_MEMORY_MIB = 256
# For StoredPlacesTest: documents that have bytes in common, concurrent scans, and the limit on
# references in a message.
SHARING_COUNT = 5_000
SHARED_SIZE = 10_000
SCANS = 4
PLACES_MAX = 2_048


def codec_names(quired):
    """All of `quired build`; "inflate" is rlz with --inflate auto."""
    said = subprocess.run([quired, "build", "--codec", "nosuch", "-o", "none", "none"],
                          stderr=subprocess.PIPE, text=True, check=False).stderr
    names = re.search(r"there are (.*)", said).group(1).split(", ")
    return [*names, "inflate"]


class ManyArchivesTest(HostileCase):
    CODEC = "xz"
    MEMORY_MIB = MEMORY_MIB

    @classmethod
    def make_documents(cls):
        documents = make_documents(80, SEED)
        return [(f"{name}.z" if n % 2 else name, zlib.compress(data) if n % 2 else data)
                for n, (name, data) in enumerate(documents)]

    @classmethod
    def write_archive(cls):
        cls.documents = sorted(cls.make_documents())
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{cls.directory}/pages")
        options = (["--inflate", "auto"] if cls.CODEC == "inflate"
                   else ["--codec", cls.CODEC])
        # Workspaces of decoders grow with the blocks.
        options += ["--block-size", "1MiB"]
        if cls.CODEC.startswith("rlz") or cls.CODEC in DICTIONARY_CODECS:
            options += ["--dictionary-size", "64KiB"]
        subprocess.run([cls.quired, "build", "-q", "-o", cls.archive_path, *options,
                        f"{cls.directory}/pages.tar"], check=True)

    @classmethod
    def server_flags(cls):
        cls.archive_count = ARCHIVE_COUNT if cls.asserted_memory_mib else FEWER_ARCHIVES
        copies = [f"{cls.directory}/copy{n}.quire" for n in range(cls.archive_count)]
        for copy in copies:
            shutil.copytree(cls.archive_path, copy)
        return copies

    def test_all_archives_are_read_at_once(self):
        pb = self.stubs.pb
        size = min(1_500_000, len(self.text))

        def read(number):
            with self.server.channel() as channel:
                archive = self.stubs.rpc.ArchiveStub(channel)
                for n in range(number, self.archive_count, CONNECTIONS):
                    for _ in range(ROUNDS):
                        response = self.read_when_not_busy(archive, pb.ReadRequest(
                            archive=f"copy{n}", range=pb.ByteRange(offset=0, size_bytes=size)))
                        if response.data != self.text[:size]:
                            return n
            return None

        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            self.assertEqual(set(pool.map(read, range(CONNECTIONS))), {None})


class StoredPlacesTest(HostileCase):
    """An archive with very many references to one block, several messages of them."""

    @classmethod
    def make_documents(cls):
        shared = random.Random(SEED).randbytes(SHARED_SIZE)
        return [(f"page{n:05}", b"page %05d " % n + shared) for n in range(SHARING_COUNT)]

    @classmethod
    def write_archive(cls):
        cls.documents = sorted(cls.make_documents())
        cls.text = b"".join(data for _, data in cls.documents)
        write_corpus(cls.documents, f"{cls.directory}/pages")
        subprocess.run([cls.quired, "build", "-q", "-o", cls.archive_path, "--codec", "copy",
                        "--reorder", "dedup", f"{cls.directory}/pages.tar"], check=True)

    def scan(self):
        """Returns the text from a scan in stored order, and the maximum of references in
        a message."""
        pb = self.stubs.pb
        text = bytearray(len(self.text))
        most = 0
        with self.server.channel() as channel:
            for message in self.stubs.rpc.ArchiveStub(channel).Scan(
                    pb.ScanRequest(archive="pages", stored_order=True)):
                most = max(most, len(message.places))
                for place in message.places:
                    text[place.offset:place.offset + place.size_bytes] = message.data[
                        place.text_offset:place.text_offset + place.size_bytes]
        return bytes(text), most

    def test_blocks_of_many_places_come_in_messages_of_few(self):
        with concurrent.futures.ThreadPoolExecutor(SCANS) as pool:
            for text, most in pool.map(lambda _: self.scan(), range(SCANS)):
                self.assertTrue(text == self.text)
                self.assertEqual(most, PLACES_MAX)


if __name__ == "__main__":
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    HostileCase.quired = sys.argv[1]
    HostileCase.asserted_memory_mib = MEMORY_MIB
    suite = unittest.TestSuite()
    for codec in sys.argv[2:] or codec_names(HostileCase.quired):
        name = f"ManyArchivesTest_{codec}"
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(
            type(name, (ManyArchivesTest,), {
                "CODEC": codec,
                "MEMORY_MIB": FSST_MEMORY_MIB if codec == "fsst" else MEMORY_MIB})))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
