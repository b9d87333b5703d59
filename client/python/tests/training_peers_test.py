# SPDX-License-Identifier: Apache-2.0
"""Datasets for training with torch, torchdata, grain and Ray.

This process makes no call of a client, so that it can fork workers.
"""
import collections
import concurrent.futures
import contextlib
import itertools
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import torch.utils.data
from torchdata.stateful_dataloader import StatefulDataLoader

from package_harness import LiveServer, QUIRED, build, write_corpus
from quire_archive import training
from quire_archive.training import DocumentMap, DocumentStream, Order, combine_states

COUNT = 503
# Only a hang takes this long.
PATIENCE_S = 120


def text_of(number):
    return json.dumps({"number": number, "text": "words " * (number % 7)})


def number_of(data):
    return json.loads(data)["number"]


def tokens_of(data):
    """1 to 12 tokens; each says of which document it is."""
    number = number_of(data)
    return [1000 * number + place for place in range(number * 5 % 12 + 1)]


def make_archive(directory):
    write_corpus([(f"page-{n:03}", text_of(n).encode()) for n in range(COUNT)],
                 f"{directory}/all")
    return build(f"{directory}/all.quire", f"{directory}/all.tar")


def load(stream, workers=2, context="fork", kind=torch.utils.data.DataLoader, **options):
    return kind(stream, batch_size=None, num_workers=workers, multiprocessing_context=context,
                collate_fn=list, **options)


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [make_archive(directory)]))

    def stream(self, **options):
        return DocumentStream(self.server.address, "all", **{
            "seed": 3, "batch_size": 8, "transform": number_of, "look_ahead_documents": 50,
            **options})

    def test_workers_of_each_kind(self):
        order = [Order(COUNT, 3, epoch).ordinals(range(COUNT)) for epoch in range(2)]
        for context in ("fork", "spawn", "forkserver"):
            with self.subTest(context=context):
                stream = self.stream()
                self.assertIsInstance(stream, torch.utils.data.IterableDataset)
                epoch = int(context == "forkserver")
                stream.set_epoch(epoch)
                self.assertEqual(sum(load(stream, 2, context), []), order[epoch])
        # Workers that stay go to the next epoch by themselves.
        loader = load(self.stream(), persistent_workers=True)
        self.assertEqual([sum(loader, []) for _ in range(2)], order)

    def test_a_map(self):
        documents = DocumentMap(self.server.address, "all", transform=number_of)
        for context in ("fork", "forkserver"):
            with self.subTest(context=context):
                loader = torch.utils.data.DataLoader(
                    documents, batch_size=50, shuffle=True, num_workers=2, collate_fn=list,
                    multiprocessing_context=context)
                self.assertEqual(sorted(sum(loader, [])), list(range(COUNT)))

    def test_states_of_a_loader(self):
        order = Order(COUNT, 3).ordinals(range(COUNT))

        def loader(workers=3, **options):
            return load(self.stream(**options), workers, kind=StatefulDataLoader)
        whole = list(loader())
        for steps in (1, 20):
            first = loader()
            begun = list(itertools.islice(first, steps))
            state = first.state_dict()
            again = loader()
            again.load_state_dict(state)
            self.assertEqual(begun + list(again), whole)
            # Other workers and ranks.
            combined = combine_states(state)
            self.assertEqual(combined["start"], min(COUNT, 8 * steps))
            read = []
            for rank in range(2):
                stream = self.stream(rank=rank, ranks=2, remainder="pad")
                stream.load_state_dict(combined)
                read.append(sum(load(stream, 1 + rank), []))
            dealt = [number for step in zip(*read, strict=True) for number in step]
            self.assertEqual(sum(begun, []) + dealt[:COUNT - 8 * steps], order)
        # At the end of an epoch the next one follows.
        first = loader()
        list(first)
        again = self.stream()
        again.set_epoch(1)
        next_loader = load(again, 3, kind=StatefulDataLoader)
        next_loader.load_state_dict(first.state_dict())
        self.assertEqual(sum(next_loader, []), Order(COUNT, 3, 1).ordinals(range(COUNT)))

    def test_windows_of_tokens(self):
        def loader(workers, state=None):
            stream = self.stream(transform=None, tokenizer=tokens_of, window_size=16,
                                 remainder="pad", pad_token=-1)
            if state is not None and "format" in state:
                stream.load_state_dict(state)
            made = load(stream, workers, kind=StatefulDataLoader)
            if state is not None and "format" not in state:
                made.load_state_dict(state)
            return made

        def tokens(batches):
            return collections.Counter(token for batch in batches for window in batch
                                       for token in window if token >= 0)
        whole = list(loader(2))
        expected = tokens(whole)
        self.assertEqual(expected, collections.Counter(
            token for n in range(COUNT) for token in tokens_of(text_of(n))))
        first = loader(2)
        begun = list(itertools.islice(first, 7))
        state = first.state_dict()
        self.assertEqual(begun + list(loader(2, state)), whole)
        self.assertEqual(tokens(begun) + tokens(loader(3, combine_states(state))), expected)


class TwoEpochsTest(unittest.TestCase):
    """Two epochs, in which a worker and the server are killed and documents redacted."""

    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        self.archive = make_archive(self.directory)
        self.server = self.start(0)
        self.addCleanup(lambda: self.server.__exit__(None, None, None))
        self.address = self.server.address

    def start(self, port):
        server = LiveServer(QUIRED, [self.archive], "--reload-interval", "1s", port=port)
        return server.__enter__()

    def loader(self, epoch, state):
        # As a job does that begins, or begins again.
        stream = DocumentStream(self.address, "all", seed=3, batch_size=8, transform=number_of,
                                look_ahead_documents=40, allow_redacted=True)
        stream.set_epoch(epoch)
        loader = load(stream, 2, kind=StatefulDataLoader, prefetch_factor=2, timeout=PATIENCE_S)
        if state is not None:
            loader.load_state_dict(state)
        return loader

    def kill_server(self):
        port = int(self.address.rpartition(":")[2])
        self.server.process.kill()
        with contextlib.suppress(RuntimeError):
            # It names the exit code.
            self.server.__exit__(None, None, None)
        self.server = self.start(port)

    def redact(self, numbers):
        subprocess.run([QUIRED, "redact", "--quiet", self.archive, "-"], check=True, text=True,
                       input="".join(f"page-{n:03}\n" for n in numbers))

    def test_each_document_is_seen_once_an_epoch(self):
        redacted = {Order(COUNT, 3, epoch)[position]
                    for epoch, position in ((0, 5), (0, 300), (0, 450), (1, 400))}
        killed_workers = 0
        for epoch in range(2):
            events = {10: "worker", 20: "server", 30: "redact" if epoch == 0 else "server",
                      40: "worker", 50: "server"}
            # Batches with the state after each, as a job saves them.
            done, state = [], None
            iterator, loader = None, self.loader(epoch, None)
            while True:
                try:
                    if iterator is None:
                        iterator = iter(loader)
                    event = events.pop(len(done), None)
                    if event == "server":
                        self.kill_server()
                    elif event == "redact":
                        self.redact(redacted)
                    elif event == "worker":
                        # pylint: disable=protected-access
                        os.kill(loader._iterator._workers[1].pid, signal.SIGKILL)
                    batch = next(iterator, None)
                    if batch is None:
                        break
                    done.append((batch, loader.state_dict()))
                except RuntimeError as error:
                    self.assertRegex(str(error), "killed by signal|exited unexpectedly")
                    killed_workers += 1
                    state = done[-1][1]
                    iterator, loader = None, self.loader(epoch, state)
            self.assertFalse(events)
            seen = collections.Counter(number for batch, _ in done for number in batch)
            self.assertEqual(set(seen.values()), {1})
            self.assertEqual(set(range(COUNT)) - set(seen) - redacted, set())
            if epoch == 1:
                self.assertFalse(set(seen) & redacted)
                self.assertEqual(combine_states(done[-1][1])["withdrawn"], len(redacted))
        self.assertEqual(killed_workers, 4)


class OthersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        archive = make_archive(directory)
        (directory / "withdrawn").write_text("all id page-003 block\n")
        cls.server = cls.enterClassContext(
            LiveServer(QUIRED, [archive, f"whole={archive}"], "--withdrawn", directory / "withdrawn"))

    def in_another_process(self, method, function, *arguments):
        """As this one must not make calls."""
        with concurrent.futures.ProcessPoolExecutor(
                1, multiprocessing.get_context(method)) as pool:
            return pool.submit(function, *arguments).result(PATIENCE_S)

    def test_grain(self):
        shuffled, loaded = self.in_another_process("spawn", _read_by_grain, self.server.address)
        self.assertEqual(sorted(shuffled), list(range(COUNT)))
        self.assertNotEqual(shuffled, loaded)
        self.assertEqual(loaded, list(range(COUNT)))

    def check_rows(self, rows):
        self.assertEqual({row["ordinal"]: (row["id"], row["data"].decode()) for row in rows},
                         {n: (b"page-%03d" % n, text_of(n)) for n in range(COUNT) if n != 3})
        self.assertEqual(len(rows), COUNT - 1)

    def test_ray(self):
        # The tasks that Ray would give its processes: starting these takes a minute.
        source = training.make_ray_datasource(self.server.address, "all")
        self.assertEqual(len(source.get_read_tasks(4)), 4)
        self.check_rows(self.in_another_process("fork", _rows_of, source))


def _rows_of(source):
    return [row for task in source.get_read_tasks(4) for table in task() for row in table.to_pylist()]


def _read_by_grain(address):
    """The documents of a shuffled MapDataset, and of a DataLoader."""
    # Not at the top: workers that are spawned import this module.
    import grain  # pylint: disable=import-outside-toplevel
    source = DocumentMap(address, "whole", kind="record", transform=lambda record: record["number"])
    shuffled = list(grain.MapDataset.source(source).shuffle(seed=1).batch(10))
    loader = grain.DataLoader(data_source=source, sampler=grain.samplers.SequentialSampler(
        len(source)) if hasattr(grain, "samplers") else grain.IndexSampler(
            len(source), shuffle=False, num_epochs=1, shard_options=grain.sharding.NoSharding()))
    return [int(number) for batch in shuffled for number in batch], list(map(int, loader))


if __name__ == "__main__":
    unittest.main()
