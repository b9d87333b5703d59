# SPDX-License-Identifier: Apache-2.0
"""Datasets for training: order, shares, states, windows of tokens; without torch."""
import collections
import itertools
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import tracemalloc
import unittest

import grpc
import xxhash

import quire_archive as quire
from package_harness import FakeServer, LiveServer, QUIRED, build, fail, write_corpus
from quire_archive import _messages as messages
from quire_archive import _shuffle_order
from quire_archive._training_states import Share
from quire_archive.training import (DocumentMap, DocumentStream, Order, StateMismatch,
                                    combine_states)

COUNT = 201
WITHDRAWN = (3, 50, 51, 200)


def text_of(number):
    return json.dumps({"number": number, "text": "words " * (number % 7)})


def numbers_of(batches):
    return [json.loads(data)["number"] for batch in batches for data in batch]


def tokens_of(data):
    """1 to 12 tokens; each says of which document it is."""
    number = json.loads(data)["number"]
    return [1000 * number + place for place in range(number * 5 % 12 + 1)]


class OrderTest(unittest.TestCase):
    def test_permutes(self):
        sizes = [*range(18), *(2**bits + more for bits in (5, 8, 10) for more in (-1, 0, 1))]
        for size, (seed, epoch) in itertools.product(sizes, ((0, 0), (2**63 - 1, 5))):
            order = Order(size, seed, epoch)
            found = order.ordinals(range(size))
            self.assertEqual(sorted(found), list(range(size)), (size, seed, epoch))
            self.assertEqual([order[position] for position in range(size)], found)

    def test_is_the_documented_function(self):
        # States of other versions rely on these.
        self.assertEqual(Order(10).ordinals(range(10)), GOLDEN_TEN)
        self.assertEqual([Order(10**9, 7, 1)[position] for position in range(5)], GOLDEN_LARGE)
        self.assertEqual(Order(2**63 - 1, 1)[2**63 - 2], GOLDEN_LAST)

    def test_with_and_without_numpy(self):
        positions = list(range(10**9 - 500, 10**9))
        with_numpy = Order(10**9, 3).ordinals(positions)
        numpy, _shuffle_order.numpy = _shuffle_order.numpy, None
        try:
            self.assertEqual(Order(10**9, 3).ordinals(positions), with_numpy)
        finally:
            _shuffle_order.numpy = numpy
        self.assertEqual(len(set(with_numpy)), 500)
        self.assertTrue(all(0 <= ordinal < 10**9 for ordinal in with_numpy))

    def test_epochs_and_seeds_differ(self):
        orders = {tuple(Order(1000, seed, epoch).ordinals(range(10)))
                  for seed in range(10) for epoch in range(10)}
        self.assertEqual(len(orders), 100)
        # Each of 6 permutations about 200 times, each first ordinal of 20 about 60 times.
        shuffles = collections.Counter(
            tuple(Order(3, seed).ordinals(range(3))) for seed in range(1200))
        self.assertEqual(len(shuffles), 6)
        self.assertTrue(all(130 < count < 270 for count in shuffles.values()), shuffles)
        firsts = collections.Counter(Order(20, seed)[0] for seed in range(1200))
        self.assertTrue(all(20 < firsts[n] < 110 for n in range(20)), firsts)

    def test_rejects(self):
        for arguments in ((-1,), (2**63,), (5, -1), (5, 0, 2**63), (True,)):
            with self.assertRaisesRegex(ValueError, "must be 0 to 2\\^63 - 1"):
                Order(*arguments)
        for position in (-1, 5):
            with self.assertRaises(IndexError):
                Order(5)[position]  # pylint: disable=expression-not-assigned


class ShareTest(unittest.TestCase):
    def test_shares_have_each_position_once(self):
        for count, ranks, workers, batch_size, start in itertools.product(
                (0, 1, 7, 96, 97), (1, 3, 8), (1, 2), (1, 4), (0, 5)):
            for drops in (False, True):
                with self.subTest(count=count, ranks=ranks, workers=workers, start=start,
                                  batch_size=batch_size, drops=drops):
                    shares = [Share(min(start, count), count, rank, ranks, worker, workers,
                                    batch_size, drops)
                              for rank in range(ranks) for worker in range(workers)]
                    found = [share.position(index) for share in shares
                             for index in range(len(share))]
                    rest = max(0, count - start)
                    end = rest - rest % ranks if drops else -(-rest // ranks) * ranks
                    begin = min(start, count)
                    self.assertEqual(sorted(found), list(range(begin, begin + end)))


class LiveTest(unittest.TestCase):
    """Against a server with COUNT documents, of which WITHDRAWN are blocked in `some`."""

    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.directory = directory
        names = [f"page-{number:03}" for number in range(COUNT)]
        write_corpus([(name, text_of(number).encode()) for number, name in enumerate(names)],
                     f"{directory}/all")
        archive = build(directory / "all.quire", directory / "all.tar")
        rules = directory / "withdrawn"
        rules.write_text("".join(f"some id {names[number]} {kind}\n" for number, kind in zip(
            WITHDRAWN, itertools.cycle(("block", "exclude")))))
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [f"all={archive}", f"some={archive}"], "--withdrawn", rules))
        cls.client = cls.enterClassContext(quire.connect(cls.server.address))
        cls.all, cls.some = cls.client["all"], cls.client["some"]
        # From here on datasets ask in this process, which is faster.
        cls.all.info()

    def stream(self, archive=None, **options):
        options = {"seed": 9, "batch_size": 4, "look_ahead_documents": 30, **options}
        return DocumentStream(archive or self.all, **options)

    def test_reads_each_document_once_in_the_order(self):
        stream = self.stream()
        for epoch in range(2):
            batches = list(stream)
            self.assertEqual(stream.epoch, epoch)
            self.assertEqual(numbers_of(batches), Order(COUNT, 9, epoch).ordinals(range(COUNT)))
            self.assertEqual({len(batch) for batch in batches[:-1]}, {4})
        stream.set_epoch(0)
        self.assertEqual(numbers_of(stream), Order(COUNT, 9, 0).ordinals(range(COUNT)))

    def test_ranks_share_one_order(self):
        order = Order(COUNT, 9).ordinals(range(COUNT))
        for ranks in (1, 3, 8):
            read = [numbers_of(self.stream(rank=rank, ranks=ranks)) for rank in range(ranks)]
            # Of equal sizes: the first documents are repeated.
            dealt = [number for step in zip(*read, strict=True) for number in step]
            self.assertEqual(dealt, (order * 2)[:-(-COUNT // ranks) * ranks])
            read = [numbers_of(self.stream(rank=rank, ranks=ranks, remainder="drop"))
                    for rank in range(ranks)]
            dealt = [number for step in zip(*read, strict=True) for number in step]
            self.assertEqual(dealt, order[:COUNT // ranks * ranks])

    def test_resumes_after_each_batch_with_other_ranks(self):
        order = Order(COUNT, 9).ordinals(range(COUNT))
        first = self.stream(rank=1, ranks=3)
        iterator = iter(first)
        steps = 0
        while True:
            state = json.loads(json.dumps(first.state_dict()))
            if steps % 5 == 0:
                # One rank's state is enough.
                combined = combine_states(state)
                self.assertEqual(combined["start"], min(COUNT, steps * 4 * 3))
                for ranks in (1, 2):
                    read = []
                    for rank in range(ranks):
                        second = self.stream(rank=rank, ranks=ranks, remainder="pad")
                        second.load_state_dict(combined)
                        read.append(numbers_of(second))
                    dealt = [number for step in zip(*read, strict=True) for number in step]
                    self.assertEqual(dealt[:COUNT - combined["start"]], order[steps * 12:])
            if next(iterator, None) is None:
                break
            steps += 1
        self.assertEqual(steps, 17)

    def test_resumes_exactly(self):
        whole = list(self.stream())
        for steps in (0, 1, 7, len(whole)):
            stream = self.stream()
            begun = list(itertools.islice(stream, steps))
            state = stream.state_dict()
            # Another process has it; the iteration of this one is not disturbed.
            again = self.stream()
            again.load_state_dict(state)
            # A loader may make an iterator that it does not use.
            iter(again)
            self.assertEqual(begun + list(again), whole)
            self.assertEqual(again.epoch, 0)
        # The next epoch follows.
        self.assertEqual(numbers_of(again), Order(COUNT, 9, 1).ordinals(range(COUNT)))

    def test_withdrawn_documents_are_left_out_and_counted(self):
        stream = self.stream(self.some)
        iterator = iter(stream)
        order = [number for number in Order(COUNT, 9).ordinals(range(COUNT))
                 if number not in WITHDRAWN]
        begun = numbers_of(itertools.islice(iterator, 20))
        state = stream.state_dict()
        rest = numbers_of(iterator)
        self.assertEqual(begun + rest, order)
        self.assertEqual(stream.withdrawn_count, len(WITHDRAWN))
        self.assertEqual(state["withdrawn"], 80 - len(begun))
        again = self.stream(self.some)
        again.load_state_dict(state)
        self.assertEqual(numbers_of(again), rest)
        self.assertEqual(again.withdrawn_count, len(WITHDRAWN))
        # Also as windows of tokens.
        windows = self.stream(self.some, tokenizer=tokens_of, window_size=5, remainder="drop")
        found = {token // 1000 for batch in windows for window in batch for token in window}
        self.assertFalse(found & set(WITHDRAWN))
        self.assertEqual(windows.withdrawn_count, len(WITHDRAWN))

    def test_records_and_transforms(self):
        found = [item for batch in self.stream(kind="record", transform=lambda r: r["number"])
                 for item in batch]
        self.assertEqual(sorted(found), list(range(COUNT)))
        archive = build(self.directory / "no.quire", "--split", "lines", __file__)
        with LiveServer(QUIRED, [archive]) as server, \
                quire.connect(server.address) as client, \
                self.assertRaisesRegex(ValueError, "document 0 is not JSON"):
            DocumentMap(client["no"], kind="record")[0]  # pylint: disable=expression-not-assigned

    def tokens(self, **options):
        return self.stream(**{"tokenizer": tokens_of, "window_size": 10, "batch_size": 3,
                              "remainder": "drop", **options})

    def test_windows_of_tokens_resume_exactly(self):
        expected = [token for number in Order(COUNT, 9).ordinals(range(COUNT))
                    for token in tokens_of(text_of(number))]
        whole = list(self.tokens())
        self.assertEqual([token for batch in whole for window in batch for token in window],
                         expected[:len(expected) // 10 * 10])
        stream = self.tokens()
        states = [stream.state_dict()]
        for _ in stream:
            states.append(stream.state_dict())
        self.assertEqual(states[-1]["dropped_tokens"], len(expected) % 10)
        for steps in range(0, len(states), 6):
            again = self.tokens()
            again.load_state_dict(json.loads(json.dumps(states[steps])))
            self.assertEqual(list(again), whole[steps:], steps)
        padded = list(self.tokens(remainder="pad", pad_token=-1))
        self.assertEqual([token for batch in padded for window in batch for token in window],
                         expected + [-1] * (-len(expected) % 10))

    def test_windows_of_tokens_resume_with_other_ranks(self):
        seen = collections.Counter()
        streams = [self.tokens(rank=rank, ranks=3) for rank in range(3)]
        iterators = list(map(iter, streams))
        for _ in range(9):
            for iterator in iterators:
                seen.update(token for window in next(iterator) for token in window)
        with self.assertRaisesRegex(StateMismatch, "worker 0 of rank 1 is missing"):
            combine_states([streams[0].state_dict(), streams[2].state_dict()])
        for ranks in (2, 1):
            combined = combine_states(json.loads(json.dumps(
                [stream.state_dict() for stream in streams])))
            streams = [self.tokens(rank=rank, ranks=ranks) for rank in range(ranks)]
            iterators = []
            for stream in streams:
                stream.load_state_dict(combined)
                iterators.append(iter(stream))
            # To the end with the last.
            for iterator in iterators:
                seen.update(token for batch in itertools.islice(iterator, 5 if ranks > 1 else None)
                            for window in batch for token in window)
        self.assertEqual(set(seen.values()), {1})
        dropped = streams[0].dropped_tokens
        self.assertLess(dropped, 10)
        self.assertEqual(len(seen) + dropped, sum(
            len(tokens_of(text_of(number))) for number in range(COUNT)))

    def test_states_that_do_not_fit(self):
        state = self.stream().state_dict()
        for options, message in (
                ({"seed": 1}, "seed is 1, but 9"), ({"batch_size": 5}, "batch_size is 5, but 4"),
                ({"remainder": "drop"}, "remainder is 'drop'"),
                ({"rank": 0, "ranks": 2}, "combine_states")):
            with self.assertRaisesRegex(StateMismatch, message):
                self.stream(**options).load_state_dict(state)
        with self.assertRaisesRegex(StateMismatch, "it was replaced"):
            self.stream().load_state_dict({**state, "uuid": "0" * 32})
        with self.assertRaisesRegex(StateMismatch, "not a state"):
            self.stream().load_state_dict({})
        with self.assertRaisesRegex(StateMismatch, "epoch is 0 in one and 1 in another"):
            combine_states([state, {**state, "epoch": 1}])
        with self.assertRaisesRegex(StateMismatch, "two states of worker 0"):
            combine_states({"a": state, "b": [state]})
        stream = self.stream()
        stream.load_state_dict({**state, "workers": 2})
        with self.assertRaisesRegex(StateMismatch, "worker 0 of 1, but .* worker 0 of 2"):
            next(iter(stream))

    def test_options_that_do_not_fit(self):
        for options, message in (
                ({"rank": 1}, "together"), ({"rank": 2, "ranks": 2}, "0 to ranks - 1"),
                ({"kind": "page"}, "kind must be"), ({"remainder": "cut"}, "remainder must be"),
                ({"tokenizer": len}, "together"), ({"batch_size": 0}, "at least 1, got 0"),
                ({"tokenizer": len, "window_size": 2}, "needs a pad_token"), ({"seed": -1}, "seed"),
                ({"tokenizer": len, "window_size": 2, "transform": len}, "not both")):
            with self.assertRaisesRegex(ValueError, message):
                self.stream(**options)
        with self.assertRaises(quire.ArchiveNotFound):
            DocumentStream(self.server.address, "none")
        with self.assertRaises(quire.ArchiveStateUnknown):
            DocumentMap(self.client.archive("all", "another"))
        with self.assertRaises(TypeError):
            DocumentStream(self.server.address)

    def test_makes_no_call_of_its_own_process_and_imports_no_torch(self):
        program = (
            "import os, sys\n"
            "sys.modules['torch'] = None\n"
            "import quire_archive.training\n"
            "from quire_archive import _options\n"
            "stream = quire_archive.training.DocumentStream(sys.argv[1], 'all', batch_size=50)\n"
            "stream.state_dict()\n"
            "assert not _options.is_used()\n"
            "for _ in range(2):\n"
            "    if os.fork() == 0:\n"
            "        os._exit(sum(map(len, stream)))\n"
            "    assert os.waitstatus_to_exitcode(os.wait()[1]) == 201\n")
        subprocess.run([sys.executable, "-c", program, self.server.address], check=True)

    def test_a_map(self):
        documents = DocumentMap(self.some, kind="record")
        self.assertEqual(len(documents), COUNT)
        self.assertEqual(documents[-2]["number"], COUNT - 2)
        for index in (COUNT, -COUNT - 1):
            with self.assertRaises(IndexError):
                documents[index]  # pylint: disable=expression-not-assigned
        with self.assertWarnsRegex(UserWarning, "some has withdrawn documents"):
            found = documents.__getitems__([5, 3, 50, 4])
        self.assertEqual([record["number"] for record in found], [5, 4])
        self.assertEqual(documents.withdrawn_count, 2)
        self.assertEqual([record["number"] for record in documents.__getitems__([-2, 1])],
                         [COUNT - 2, 1])
        for index in (COUNT, -COUNT - 1):
            with self.assertRaises(IndexError):
                documents.__getitems__([3, index])
        self.assertEqual(documents.withdrawn_count, 2)
        with self.assertRaises((quire.DocumentWithdrawn, quire.DocumentNotFound)):
            documents[3]  # pylint: disable=expression-not-assigned


class RedactionTest(unittest.TestCase):
    def test_in_the_middle_of_an_epoch(self):
        with tempfile.TemporaryDirectory() as directory:
            write_corpus([(f"page-{n:03}", text_of(n).encode()) for n in range(COUNT)],
                         f"{directory}/all")
            archive = build(f"{directory}/all.quire", f"{directory}/all.tar")
            with LiveServer(QUIRED, [archive], "--reload-interval", "1s") as server, \
                    quire.connect(server.address) as client:
                def stream(**options):
                    return DocumentStream(client["all"], seed=4, batch_size=10,
                                          look_ahead_documents=10, **options)
                uuid = client["all"].info().uuid
                first = stream()
                iterator = iter(first)
                begun = numbers_of(itertools.islice(iterator, 5))
                state = first.state_dict()
                order = Order(COUNT, 4).ordinals(range(COUNT))
                # One that was read, and two that come later.
                gone = {order[10], order[60], order[150]}
                subprocess.run([QUIRED, "redact", "--quiet", archive, "-"], check=True, text=True,
                               input="".join(f"page-{n:03}\n" for n in gone))
                while client["all"].info().uuid == uuid:
                    time.sleep(0.02)
                # The run goes on, in the state that it reads.
                later = [number for number in order[50:] if number not in gone]
                self.assertEqual([n for n in numbers_of(iterator) if n not in gone], later)
                with self.assertRaisesRegex(StateMismatch, "allow_redacted"):
                    stream().load_state_dict(state)
                again = stream(allow_redacted=True)
                again.load_state_dict(state)
                self.assertEqual(begun, order[:50])
                self.assertEqual(numbers_of(again), later)
                self.assertEqual(again.withdrawn_count, 2)
                # Documents that are appended are not those of the run.
                state = again.state_dict()
                subprocess.run([QUIRED, "append", "--quiet", archive, __file__], check=True)
                while len(client["all"]) == COUNT:
                    time.sleep(0.02)
                appended = stream()
                appended.load_state_dict(state)
                self.assertEqual(appended.document_count, COUNT)
                with self.assertRaisesRegex(StateMismatch, "has other documents: 202 with"):
                    stream(allow_redacted=True).load_state_dict({**state, "uuid": uuid})


class FakeTest(unittest.TestCase):
    """Against a server that makes documents up."""

    def test_a_billion_documents_resume_with_little_memory(self):
        count = 10**9

        def read_batch(requests, _context):
            for request in requests:
                results = []
                for item in request.items:
                    ordinal = item.document.ordinal
                    data = b"%d" % ordinal
                    results.append({
                        "tag": item.tag, "encoding": messages.IDENTITY, "data": data,
                        "checksum": xxhash.xxh3_64_intdigest(data),
                        "range": {"offset": 10 * ordinal, "size_bytes": len(data)},
                        "document": {"ordinal": ordinal, "id": b"", "range": {
                            "offset": 10 * ordinal, "size_bytes": len(data)}}})
                yield {"results": results}

        with FakeServer(BatchRead=read_batch) as server, \
                quire.connect(server.address) as client:
            server.description.update(document_count=count, size_bytes=10 * count)
            archive = client["a"]
            # What the first call of a client takes.
            archive.info()
            first = DocumentStream(archive, seed=5, batch_size=100, rank=7, ranks=8)
            state = {**first.state_dict(), "consumed": 100_000_000}
            second = DocumentStream(archive, seed=5, batch_size=100, look_ahead_documents=100)
            tracemalloc.start()
            try:
                second.load_state_dict(combine_states(state))
                batch = next(iter(second))
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            order = Order(count, 5)
            self.assertEqual(list(map(int, batch)), order.ordinals(range(8 * 10**8, 8 * 10**8 + 100)))
            self.assertEqual(second.state_dict()["start"], 8 * 10**8)
            self.assertLess(peak, 1 << 20)

    def test_a_stream_that_breaks_goes_on(self):
        sizes = [0, 1, 300]

        def read_batch(requests, context):
            is_first = server.calls.count("BatchRead") == 1
            for request in requests:
                for item in reversed(request.items):
                    ordinal = item.document.ordinal
                    if is_first and ordinal == 17:
                        fail(context, grpc.StatusCode.UNAVAILABLE)
                    data = b"%03d" % ordinal * sizes[ordinal % 3]
                    span = {"offset": 900 * ordinal, "size_bytes": len(data)}
                    yield {"results": [{
                        "tag": item.tag, "encoding": messages.IDENTITY, "data": data,
                        "checksum": xxhash.xxh3_64_intdigest(data), "range": span,
                        "document": {"ordinal": ordinal, "id": b"", "range": span}}]}

        with FakeServer(BatchRead=read_batch) as server, \
                quire.connect(server.address, retry_backoff=0.001) as client:
            server.description.update(document_count=50)
            client.archives()
            (batch,) = DocumentStream(client["a"], seed=2)
            self.assertEqual(batch, [b"%03d" % n * sizes[n % 3]
                                     for n in Order(50, 2).ordinals(range(50))])
            self.assertEqual(server.calls.count("BatchRead"), 2)

    def test_items_of_a_batch(self):
        for tag, ordinal in itertools.product(
                (0, 5, 127, 128, 3_000_000),
                (0, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**64 - 1)):
            request = messages.BatchReadRequest.FromString(messages.ordinal_field(tag, ordinal))
            self.assertEqual([(item.tag, item.document.ordinal) for item in request.items],
                             [(tag, ordinal)])
            self.assertTrue(request.items[0].document.HasField("ordinal"))

    def test_other_failures_are_raised(self):
        attempts = collections.Counter()

        def read_batch(requests, _context):
            for request in requests:
                for item in request.items:
                    code, reason = (14, "DEVICE_FAILED") if item.document.ordinal != 3 \
                        else (15, "BLOCK_DAMAGED")
                    yield {"results": [{"tag": item.tag, "status": {
                        "code": code, "reason": messages.ERROR_REASONS[reason]}}]}

        def read(request, _context):
            ordinal = request.document.ordinal
            attempts[ordinal] += 1
            return {"encoding": messages.IDENTITY, "data": b"",
                    "checksum": xxhash.xxh3_64_intdigest(b""),
                    "range": {"offset": ordinal, "size_bytes": 0},
                    "document": {"ordinal": ordinal, "id": b"",
                                 "range": {"offset": ordinal, "size_bytes": 0}}}

        with FakeServer(BatchRead=read_batch, Read=read) as server, \
                quire.connect(server.address) as client:
            client.archives()
            stream = DocumentStream(client["a"])
            # Unavailable ones are read alone; the damaged one is not left out.
            with self.assertRaises(quire.BlockDamaged):
                list(stream)
            self.assertNotIn(3, attempts)
            self.assertTrue(attempts)


GOLDEN_TEN = [4, 8, 2, 9, 6, 3, 0, 1, 7, 5]
GOLDEN_LARGE = [305753836, 966788029, 653554782, 261047377, 860206985]
GOLDEN_LAST = 2295505866468289940

if __name__ == "__main__":
    unittest.main()
