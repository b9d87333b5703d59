# SPDX-License-Identifier: Apache-2.0
"""The clients against a real server: what they read is what was put in."""
import asyncio
import dataclasses
import datetime
import os
import pathlib
import pickle
import random
import signal
import subprocess
import tempfile
import time
import unittest

import quire_archive as quire
from package_harness import (LiveServer, QUIRED, SEED, build, environment, random_documents,
                             write_corpus)

CODECS = ("rlz", "zstd", "zlib", "xz", "copy", "lz4", "auto")


def as_sync(archive_method):
    """The values of an asynchronous generator."""
    async def collect():
        return [value async for value in archive_method]
    return collect()


class ReadingTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.documents = random_documents(250)
        cls.text = b"".join(data for _, data in cls.documents)
        cls.by_id = dict(cls.documents)
        write_corpus(cls.documents, f"{cls.directory}/pages")
        archives = []
        for codec in CODECS:
            out = build(cls.directory / f"{codec}.quire", "--codec", codec,
                        cls.directory / "pages.tar")
            archives.append(f"{codec}={out}")
        out = build(cls.directory / "moved.quire", "--reorder", "full", "--partition-size", "4KiB",
                    cls.directory / "pages.tar")
        archives.append(f"moved={out}")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, archives))
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))
        cls.archive = cls.client["rlz"]

    def expected(self, key):
        """What a key reads: bytes, or the class of the error."""
        part = None
        if isinstance(key, quire.Key):
            key, part = key.name, key.range
        if isinstance(key, quire.Span):
            return self.text[key.offset:key.offset + key.size] \
                if key.offset + key.size <= len(self.text) else quire.RangePastEnd
        if isinstance(key, int):
            data = self.documents[key][1] if key < len(self.documents) else None
        else:
            data = self.by_id.get(key if isinstance(key, str) else key.decode())
        if data is None:
            return quire.DocumentNotFound
        if part is None:
            return data
        return data[part[0]:sum(part)] if sum(part) <= len(data) else quire.RangePastEnd

    def random_key(self, draw):
        name, data = draw.choice(self.documents)
        kind = draw.randrange(8)
        if kind == 0:
            return draw.randrange(len(self.documents) + 3)
        if kind == 1:
            return name.encode()
        if kind == 2:
            return "absent/" + name
        if kind == 3:
            offset = draw.randrange(len(data) + 1)
            return quire.Key(name, range=(offset, draw.randrange(len(data) - offset + 2)))
        if kind == 4:
            offset = draw.randrange(len(self.text))
            return quire.Span(offset, draw.randrange(min(60_000, len(self.text) + 9 - offset)))
        return name

    def expect(self, key, read):
        expected = self.expected(key)
        if isinstance(expected, bytes):
            self.assertEqual(read(), expected, key)
        else:
            with self.assertRaises(expected, msg=key):
                read()

    def test_random_reads(self):
        draw = random.Random(SEED)
        for _ in range(300):
            key = self.random_key(draw)
            with self.subTest(seed=SEED, key=key):
                self.expect(key, lambda: self.archive.read(key))

    def test_random_batches(self):
        draw = random.Random(SEED + 1)
        for ordered in (True, False):
            keys = [self.random_key(draw) for _ in range(2000)]
            answers = list(self.archive.get_many(iter(keys), ordered=ordered))
            if ordered:
                self.assertEqual([answer.key for answer in answers], keys)
            self.assertEqual(sorted(map(repr, keys)),
                             sorted(repr(answer.key) for answer in answers))
            for answer in answers:
                self.assertEqual(answer.error is None,
                                 isinstance(self.expected(answer.key), bytes), answer)
                self.expect(answer.key, lambda answer=answer: answer.data)

    def test_keys_are_taken_as_needed(self):
        taken = 0

        def keys():
            nonlocal taken
            while True:
                taken += 1
                yield taken % len(self.documents)

        answers = self.archive.get_many(keys())
        for number in range(1, 3000):
            self.assertEqual(next(answers).key, number % len(self.documents))
        answers.close()
        self.assertLess(taken, 150_000)

    def test_a_key_of_another_type_is_an_error(self):
        with self.assertRaisesRegex(TypeError, "got float"):
            self.archive.read(1.5)
        with self.assertRaisesRegex(TypeError, "got NoneType"):
            list(self.archive.get_many(["a", None]))
        with self.assertRaisesRegex(TypeError, "not both"):
            self.archive.read(quire.Key("a"), at="2022")
        # One key is no sequence of keys, though a str is one of str.
        for key in "page", b"page", quire.Key("page"), quire.Span(0, 1):
            with self.assertRaisesRegex(TypeError, "several keys"):
                self.archive.get_many(key)
        with self.assertRaisesRegex(TypeError, r"\(offset, size\), got 5"):
            self.archive.read("page", range=5)
        for ordinal in -1, 2**64, True:
            with self.assertRaisesRegex(ValueError, f"an ordinal must be .*, got {ordinal}"):
                self.archive.read(ordinal)
        with self.assertRaisesRegex(ValueError, "an occurrence must be .*, got -1"):
            self.archive.read("page", occurrence=-1)
        for part in (-5, 3), (0, -3), (0, 2**64):
            for call in (lambda part=part: self.archive.read("page", range=part),
                         lambda part=part: list(self.archive.get_many(
                             [quire.Key("page", range=part)]))):
                with self.assertRaisesRegex(ValueError, "a range must be .*, both 0 to"):
                    call()
        for key in quire.Key("page", range=(0, 2.5)), quire.Key(0, range=(0.0, 2)), \
                quire.Span(0, None), quire.Span("0", 1):
            with self.assertRaisesRegex(TypeError, r"keys\[2\]: a range must be .* both int, got"):
                list(self.archive.get_many(["page", 0, key]))
        with self.assertRaisesRegex(TypeError, r"a range must be .* both int, got \(0, 2.5\)"):
            self.archive.read("page", range=(0, 2.5))
        for kinds in "response", "", b"response":
            for call in (self.archive.read, self.archive.document, self.archive.payload,
                         lambda name, record_types: list(self.archive.get_many(
                             [quire.Key(name, record_types=record_types)]))):
                with self.assertRaisesRegex(TypeError, "record_types must be a list of names"):
                    call("page", record_types=kinds)
        document = next(iter(self.archive))
        with self.assertRaisesRegex(TypeError, "got Document; pass its ordinal"):
            self.archive.read(document)
        with self.assertRaisesRegex(TypeError, "got Document; pass its ordinal"):
            _ = document in self.archive

    def test_an_archive_is_a_container(self):
        name, data = self.documents[7]
        self.assertEqual(len(self.archive), len(self.documents))
        for key in (name, name.encode(), 7):
            self.assertIn(key, self.archive)
            self.assertEqual(self.archive[key], data)
        for key in ("absent", len(self.documents)):
            self.assertNotIn(key, self.archive)
            with self.assertRaises(LookupError):
                self.archive[key]  # pylint: disable=pointless-statement
        for key in (-1, 2**64):
            self.assertNotIn(key, self.archive)
        with self.assertRaises(quire.ArchiveNotFound):
            len(self.client["none"])
        # Asks nothing.
        self.assertTrue(self.client["none"])

    def test_descriptions(self):
        ordinal = 150
        name, data = self.documents[ordinal]
        offset = sum(len(d) for _, d in self.documents[:ordinal])
        for key in (name, name.encode(), ordinal):
            document = self.archive.document(key)
            self.assertEqual((document.ordinal, document.name, document.offset, document.size),
                             (ordinal, name, offset, len(data)))
            self.assertIsNone(document.record_type)
        self.assertEqual(pickle.loads(pickle.dumps(document)), document)
        info = self.archive.info()
        self.assertEqual((info.name, info.size, info.document_count, info.codec, info.is_open),
                         ("rlz", len(self.text), len(self.documents), "rlz", True))
        self.assertEqual([found.name for found in self.client.archives()],
                         sorted([*CODECS, "moved"]))

    def test_lists_in_archive_order_and_by_prefix(self):
        names = [name for name, _ in self.documents]
        self.assertEqual([document.name for document in self.archive], names)
        self.assertEqual([d.name for d in self.archive.documents(first_ordinal=123)], names[123:])
        self.assertEqual(list(self.archive.documents(first_ordinal=len(names))), [])
        for prefix in ("", "dir-3/", "large/two", "none"):
            self.assertEqual([d.name for d in self.archive.documents(prefix)],
                             [name for name in names if name.startswith(prefix)])
        self.assertEqual(len(list(self.archive.documents("large/", first_ordinal=0))), 2)
        # An empty prefix orders by id, too.
        for prefix in "dir-3/", b"":
            with self.assertRaisesRegex(ValueError, "a prefix or first_ordinal, and not both"):
                list(self.archive.documents(prefix, first_ordinal=5))

    def test_scans_in_every_codec_and_encoding(self):
        for encoding in ("auto", "stored", "identity"):
            with quire.connect(self.server.address, encoding=encoding) as client:
                for codec in (*CODECS, "moved") if encoding == "stored" else ("rlz",):
                    with self.subTest(encoding=encoding, codec=codec):
                        found = [(d.name, data) for d, data in client[codec].scan()]
                        self.assertEqual(found, self.documents)

    def test_single_reads_in_stored_blocks(self):
        draw = random.Random(SEED + 2)
        with quire.connect(self.server.address, encoding="stored") as client:
            for codec in (*CODECS, "moved"):
                archive = client[codec]
                keys = [self.random_key(draw) for _ in range(40)]
                for key in keys:
                    with self.subTest(seed=SEED, codec=codec, key=key):
                        self.expect(key, lambda: archive.read(key))
                for answer in archive.get_many(keys):
                    self.expect(answer.key, lambda answer=answer: answer.data)

    def test_scans_from_a_document(self):
        for ordinal in (0, 1, 57, len(self.documents) - 1, len(self.documents)):
            found = [data for _, data in self.archive.scan(first_ordinal=ordinal)]
            self.assertEqual(found, [data for _, data in self.documents[ordinal:]])

    def test_streams_ranges(self):
        draw = random.Random(SEED + 3)
        spans = [(0, None), (len(self.text), None), (5, 0)] + [
            (offset, draw.randrange(len(self.text) - offset))
            for offset in (draw.randrange(len(self.text)) for _ in range(20))]
        for offset, size in spans:
            expected = self.text[offset:] if size is None else self.text[offset:offset + size]
            self.assertEqual(b"".join(self.archive.stream_range(offset, size)), expected)
        for offset, size in ((1, len(self.text)), (len(self.text) + 1, 0), (10**9, None)):
            with self.assertRaises(quire.RangePastEnd) as caught:
                list(self.archive.stream_range(offset, size))
            self.assertEqual(caught.exception.reason, "RANGE_PAST_END")
        for offset, size in ((0, -1), (-1, None), (2**64, None)):
            with self.assertRaisesRegex(ValueError, r"a range must be \(offset, size\), both 0 to"):
                list(self.archive.stream_range(offset, size))
        self.assertEqual(self.archive.read_range(7, len(self.text) - 9), self.text[7:-2])

    def test_files_seek_and_read(self):
        draw = random.Random(SEED + 4)
        name, data = max(self.documents, key=lambda document: len(document[1]))
        for file, expected in ((self.archive.open(name), data),
                               (self.archive.open_space(buffer_size=999), self.text)):
            with file:
                self.assertEqual(file.seek(0, os.SEEK_END), len(expected))
                self.assertEqual(file.read(1), b"")
                for _ in range(60):
                    offset = draw.randrange(len(expected))
                    size = draw.choice((0, 1, 100, 5000, 700_000))
                    file.seek(offset)
                    self.assertEqual(file.read(size), expected[offset:offset + size])
                    self.assertEqual(file.tell(), min(len(expected), offset + size))
                file.seek(len(expected) // 2)
                self.assertEqual(file.read(), expected[len(expected) // 2:])
                with self.assertRaises((ValueError, OSError)):
                    file.seek(-1)
            with self.assertRaises(ValueError):
                file.read()

    def test_an_unknown_archive(self):
        missing = self.client["none"]
        for call in (lambda: missing.read("a"), missing.info, lambda: list(missing),
                     lambda: list(missing.get_many(["a"])), lambda: list(missing.scan()),
                     lambda: missing.open("a")):
            with self.assertRaises(quire.ArchiveNotFound) as caught:
                call()
            self.assertEqual((caught.exception.code, caught.exception.reason),
                             ("NOT_FOUND", "ARCHIVE_NOT_FOUND"))
            self.assertIsInstance(caught.exception, LookupError)
            copy = pickle.loads(pickle.dumps(caught.exception))
            self.assertEqual((str(copy), copy.reason),
                             (str(caught.exception), caught.exception.reason))

    def test_the_server_comes_from_the_environment(self):
        with environment(QUIRE_SERVER=self.server.address):
            with quire.connect() as client:
                self.assertEqual(client["rlz"].read(0), self.documents[0][1])

    def test_asyncio_reads_the_same(self):
        draw = random.Random(SEED + 5)
        keys = [self.random_key(draw) for _ in range(400)]
        names = [name for name, _ in self.documents]

        async def some_keys():
            for key in keys:
                yield key

        async def run():
            async with quire.connect_async(self.server.address) as client:
                archive = client["rlz"]
                self.assertEqual(len(await client.archives()), len(CODECS) + 1)
                reads = await asyncio.gather(*(archive.read(key) for key in keys[:100]),
                                             return_exceptions=True)
                batch = await as_sync(archive.get_many(some_keys()))
                again = await as_sync(archive.get_many(keys, ordered=False))
                self.assertEqual([d.name async for d in archive], names)
                self.assertEqual([(d.name, data) async for d, data in archive.scan()],
                                 self.documents)
                self.assertEqual((await archive.document(names[3])).ordinal, 3)
                self.assertEqual(await archive.read_range(5, 2_500_000), self.text[5:2_500_005])
                self.assertEqual(b"".join([p async for p in archive.stream_range(9)]),
                                 self.text[9:])
                for kind, call in (
                        (ValueError, as_sync(archive.stream_range(0, -1))),
                        (quire.RangePastEnd, as_sync(archive.stream_range(10**9))),
                        (ValueError, as_sync(archive.documents("dir", first_ordinal=5))),
                        (TypeError, archive.read("page", record_types="response"))):
                    with self.assertRaises(kind):
                        await call
                with self.assertRaises(quire.ArchiveNotFound):
                    await client["none"].read("a")
                with self.assertRaises(quire.ArchiveNotFound):
                    await as_sync(client["none"].get_many(["a"]))
                # Left before its end.
                async for _ in archive.scan():
                    break
                return reads, batch, again

        reads, batch, again = asyncio.run(run())
        for key, found in zip(keys, reads):
            expected = self.expected(key)
            if isinstance(expected, bytes):
                self.assertEqual(found, expected)
            else:
                self.assertIsInstance(found, expected)
        self.assertEqual([answer.key for answer in batch], keys)
        for answer in batch + again:
            self.expect(answer.key, lambda answer=answer: answer.data)


    def test_asyncio_takes_keys_that_depend_on_answers(self):
        async def run(ordered):
            answered = asyncio.Queue()

            async def following_keys():
                yield 0
                for _ in range(20):
                    yield int(await answered.get()) + 1

            async with quire.connect_async(self.server.address, idle_max=60) as client:
                numbers = []
                async for answer in client["rlz"].get_many(following_keys(), ordered=ordered):
                    numbers.append(answer.key)
                    self.assertEqual(answer.data, self.documents[answer.key][1])
                    answered.put_nowait(answer.key)
                return numbers

        for ordered in (True, False):
            self.assertEqual(asyncio.run(run(ordered)), list(range(21)))

    def test_errors_of_the_keys_reach_the_caller(self):
        # The client repeats calls that fail with such an error, not the caller's code.
        def keys():
            yield 0
            raise quire.ServerUnreachable("another server")

        async def async_keys():
            for key in keys():
                yield key

        async def run():
            async with quire.connect_async(self.server.address) as client:
                await as_sync(client["rlz"].get_many(async_keys()))

        with self.assertRaisesRegex(quire.ServerUnreachable, "another server"):
            list(self.archive.get_many(keys()))
        with self.assertRaisesRegex(quire.ServerUnreachable, "another server"):
            asyncio.run(run())


class ReplacedArchiveTest(unittest.TestCase):
    """Contents change while a client reads."""

    def test_a_pinned_handle_reads_one_state(self):
        with tempfile.TemporaryDirectory() as directory:
            for number in (1, 2):
                pages = pathlib.Path(directory, f"pages{number}")
                pages.mkdir()
                (pages / "page").write_bytes(b"state %d" % number)
                build(f"{directory}/{number}.quire", pages)
            os.symlink(f"{directory}/1.quire", f"{directory}/pages.quire")
            with LiveServer(QUIRED, [f"{directory}/pages.quire"]) as server, \
                    quire.connect(server.address) as client:
                loose, pinned = client["pages"], client["pages"].pinned()
                file = pinned.open("page")
                self.assertEqual(pinned.read("page"), b"state 1")
                os.remove(f"{directory}/pages.quire")
                os.symlink(f"{directory}/2.quire", f"{directory}/pages.quire")
                server.process.send_signal(signal.SIGHUP)
                while loose.read("page") != b"state 2":
                    time.sleep(0.02)
                for call in (lambda: pinned.read("page"), file.read, pinned.info,
                             lambda: list(pinned), lambda: list(pinned.scan()),
                             lambda: list(pinned.get_many(["page"]))):
                    with self.assertRaises(quire.ArchiveStateUnknown):
                        call()
                self.assertEqual(client["pages"].pinned().read("page"), b"state 2")

    def test_a_pinned_archive_stays_in_its_state_while_it_grows(self):
        with tempfile.TemporaryDirectory() as directory:
            for number in (1, 2):
                pages = pathlib.Path(directory, f"pages{number}")
                pages.mkdir()
                (pages / f"page{number}").write_bytes(b"state %d" % number)
            archive = build(f"{directory}/pages.quire", f"{directory}/pages1")
            with LiveServer(QUIRED, [archive]) as server, \
                    quire.connect(server.address) as client:
                loose, pinned = client["pages"], client["pages"].pinned()
                file = pinned.open("page1")
                before = pinned.info()
                subprocess.run([QUIRED, "append", "--quiet", archive, f"{directory}/pages2"],
                               check=True)
                server.process.send_signal(signal.SIGHUP)
                while loose.info().document_count == 1:
                    time.sleep(0.02)
                self.assertEqual(loose.read("page2"), b"state 2")
                self.assertEqual(pinned.info(), dataclasses.replace(
                    loose.info(), uuid=before.uuid, size=before.size, document_count=1))
                self.assertEqual(file.read(), b"state 1")
                self.assertEqual([document.name for document in pinned], ["page1"])
                self.assertEqual([data for _, data in pinned.scan()], [b"state 1"])
                self.assertEqual([data for _, data in loose.scan()], [b"state 1", b"state 2"])
                with self.assertRaises(quire.DocumentNotFound):
                    pinned.read("page2")


class WithdrawnTest(unittest.TestCase):
    """What is left of an archive with withdrawn documents is read as before."""

    def test_withdrawn_documents(self):
        documents = random_documents(60)
        draw = random.Random(SEED + 9)
        withdrawn = {name for name, _ in draw.sample(documents, 20)}
        withdrawn |= {documents[0][0], documents[1][0], documents[-1][0]}
        left = [(name, data) for name, data in documents if name not in withdrawn]
        with tempfile.TemporaryDirectory() as directory:
            write_corpus(documents, f"{directory}/pages")
            rules = pathlib.Path(directory, "withdrawn")
            rules.write_text("".join(f"pages id {name} {draw.choice(('exclude', 'block'))}\n"
                                     for name in sorted(withdrawn)))
            archive = build(pathlib.Path(directory, "pages.quire"), f"{directory}/pages.tar")
            redacted = sorted(withdrawn)[::2]
            subprocess.run([QUIRED, "redact", "--quiet", archive, "-"], check=True,
                           input="".join(f"{name}\n" for name in redacted).encode())
            with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server, \
                    quire.connect(server.address) as client:
                pages = client["pages"]
                self.assertEqual([d.name for d in pages], [name for name, _ in left])
                self.assertEqual([d.name for d in pages.documents("")],
                                 [name for name, _ in left])
                scan = pages.scan()
                self.assertEqual([(d.name, data) for d, data in scan], left)
                self.assertEqual(scan.withdrawn_count, len(withdrawn))
                self.assertEqual(len(pages), len(documents))
                for ordinal, (name, data) in enumerate(documents):
                    self.assertEqual(ordinal in pages, name not in withdrawn)
                    if name in redacted:
                        with self.assertRaises(quire.DocumentWithdrawn):
                            pages.read(ordinal)
                for answer in pages.get_many(name for name, _ in documents):
                    if answer.key in withdrawn:
                        self.assertIsInstance(answer.error, (quire.DocumentNotFound,
                                                             quire.DocumentWithdrawn))
                    else:
                        self.assertEqual(answer.data, dict(left)[answer.key])

                async def scan_again():
                    async with quire.connect_async(server.address) as again:
                        scan = again["pages"].scan()
                        return await as_sync(scan), scan.withdrawn_count

                found, withdrawn_count = asyncio.run(scan_again())
                self.assertEqual([(d.name, data) for d, data in found], left)
                self.assertEqual(withdrawn_count, len(withdrawn))

    def test_an_open_file_does_not_continue_with_zeros(self):
        with tempfile.TemporaryDirectory() as directory:
            write_corpus([("page", b"some text " * 100)], f"{directory}/pages")
            rules = pathlib.Path(directory, "withdrawn")
            rules.write_text("")
            archive = build(pathlib.Path(directory, "pages.quire"), f"{directory}/pages.tar")
            with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server, \
                    quire.connect(server.address) as client:
                pages = client["pages"]
                file = pages.open("page", buffer_size=100)
                self.assertEqual(file.read(100), b"some text " * 10)
                rules.write_text("pages id page block\n")
                server.process.send_signal(signal.SIGHUP)
                with self.assertRaises(quire.DocumentWithdrawn):
                    while True:
                        pages.document("page")
                        time.sleep(0.02)
                with self.assertRaises(quire.DocumentWithdrawn):
                    file.read()
                # The space has zeros, as documented.
                with pages.open_space() as space:
                    self.assertEqual(space.read(), bytes(1000))


class TimeTest(unittest.TestCase):
    def test_periods(self):
        moment = datetime.datetime(2022, 6, 15, 12, 30, 45, tzinfo=datetime.timezone.utc)
        first = int(moment.timestamp() * 1000)
        for text, begin, size in [
                ("2022-06-15T12:30:45Z", first, 1000), ("20220615123045", first, 1000),
                ("2022-06-15 12:30:45.25", first + 250, 10), ("2022-06-15T12:30", first - 45_000, 60_000),
                ("2022-06-15T14:30:45+02:00", first, 1000), ("20220615110045-0130", first, 1000),
                ("2022-06-15T07:30:45.25-05", first + 250, 10),
                ("2022-06", 1654041600000, 30 * 86_400_000), ("2022", 1640995200000, 365 * 86_400_000),
                ("1969-12", -31 * 86_400_000, 31 * 86_400_000),
                ("9999", 253370764800000, 365 * 86_400_000),
                ("9999-12", 253399622400000, 31 * 86_400_000),
                ("9999-12-31T23:59:59Z", 253402300799000, 1000)]:
            self.assertEqual(quire.parse_period(text), (begin, begin + size - 1), text)
        for text in ("", "22", "2022-13", "2022-02-30", "2022-06Z", "20220615Z", "2022-6", "now",
                     "2022-06-15T12:30:45.", "2022-06-15+02", "2022-06-15T12+24",
                     "2022-06-15T12+02:60", "2022-06-15T12+02:", "2022-06-15T12+2", "\u0662\u0660\u0662\u0662"):
            with self.assertRaises(ValueError, msg=text):
                quire.parse_period(text)


if __name__ == "__main__":
    unittest.main()
