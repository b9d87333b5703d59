# SPDX-License-Identifier: Apache-2.0
"""Two epochs of plain worker processes, without torch: workers and the server are killed, and
documents redacted. Each document that remains is seen once an epoch.

This process makes no call of a client, so that it can fork workers.
"""
import collections
import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import tempfile
import unittest

from package_harness import LiveServer, QUIRED, build, write_corpus
from quire_archive.training import DocumentStream, Order, combine_states

RANKS = 3
# A multiple of RANKS, so that no rank repeats a document.
COUNT = 1008
SEED = 7
BATCH_SIZE = 8
# At most two windows of a rank are ahead of its last batch.
LOOK_AHEAD = 40
# Only a hang takes this long.
PATIENCE_S = 120
FORK = multiprocessing.get_context("fork")


def number_of(data):
    return json.loads(data)["number"]


def work(address, epoch, place, state, pipe):
    """A worker: (batch, state after it) for each request, (None, state) at the end."""
    rank, ranks = place
    stream = DocumentStream(
        address, "all", seed=SEED, batch_size=BATCH_SIZE, rank=rank, ranks=ranks,
        transform=number_of, look_ahead_documents=LOOK_AHEAD, allow_redacted=True)
    if state is None:
        stream.set_epoch(epoch)
    else:
        stream.load_state_dict(state)
    batches = iter(stream)
    while True:
        pipe.recv()
        pipe.send((next(batches, None), stream.state_dict()))


class Worker:
    """A process that reads a batch of its rank at each request."""

    def __init__(self, address, epoch, place, state=None):
        self.place = place
        self.state = state
        self._pipe, theirs = FORK.Pipe()
        self._process = FORK.Process(target=work, args=(address, epoch, place, state, theirs),
                                     daemon=True)
        self._process.start()
        theirs.close()

    def ask(self):
        self._pipe.send(None)

    def answer(self):
        """The next batch; None at the end. Raises EOFError if the process was killed first."""
        if not self._pipe.poll(PATIENCE_S):
            raise TimeoutError(f"worker {self.place} sent nothing")
        batch, self.state = self._pipe.recv()
        return batch

    def kill(self):
        os.kill(self._process.pid, signal.SIGKILL)

    def was_killed(self):
        """False if the process failed. REQUIRES: it has ended."""
        self._process.join()
        return self._process.exitcode == -signal.SIGKILL

    def end(self):
        self._process.kill()
        self._process.join()
        self._pipe.close()


class TwoEpochsTest(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory())
        write_corpus([(f"page-{n:04}", json.dumps({"number": n, "text": "words " * (n % 7)}).encode())
                      for n in range(COUNT)], f"{self.directory}/all")
        self.archive = build(f"{self.directory}/all.quire", f"{self.directory}/all.tar")
        self.server = self.start(0)
        self.addCleanup(lambda: self.server.__exit__(None, None, None))
        self.address = self.server.address
        self.workers = []
        self.addCleanup(lambda: [worker.end() for worker in self.workers])
        self.killed_count = 0

    def start(self, port):
        server = LiveServer(QUIRED, [self.archive], "--reload-interval", "1s", port=port)
        return server.__enter__()

    def kill_server(self):
        self.server.process.kill()
        with contextlib.suppress(RuntimeError):
            # It names the exit code.
            self.server.__exit__(None, None, None)
        self.server = self.start(int(self.address.rpartition(":")[2]))

    def redact(self, numbers):
        subprocess.run([QUIRED, "redact", "--quiet", self.archive, "-"], check=True, text=True,
                       input="".join(f"page-{n:04}\n" for n in numbers))

    def replace(self, old, epoch):
        """Another worker, which begins where the state of a dead one ends."""
        self.assertTrue(old.was_killed(), f"worker {old.place} failed")
        old.end()
        self.killed_count += 1
        self.workers[self.workers.index(old)] = Worker(self.address, epoch, old.place, old.state)

    def read(self, epoch, seen, events, count_max=COUNT):
        """Reads the batches of all workers in turn, at most count_max; `events`: functions by the
        number of batches before, each called with the worker that was just asked."""
        count = 0
        running = list(range(len(self.workers)))
        while running:
            index = running[count % len(running)]
            worker = self.workers[index]
            try:
                worker.ask()
                if (event := events.pop(count, None)) is not None:
                    event(worker)
                batch = worker.answer()
            except (EOFError, ConnectionError):
                # What it read after the last state is read again.
                self.replace(worker, epoch)
                continue
            if batch is None:
                running.remove(index)
                continue
            seen.update(batch)
            count += 1
            if count == count_max:
                break
        self.assertFalse(events)

    def test_each_document_is_seen_once_an_epoch(self):
        order = Order(COUNT, SEED, 0)
        early = {order[position] for position in (5, 200)}
        # Not read ahead when they are redacted, after 50 batches.
        late = {order[position] for position in (50 * BATCH_SIZE + 2 * LOOK_AHEAD * RANKS + 50,
                                                 COUNT - 1)}

        def redact(_):
            self.redact(early | late)

        def kill_worker(worker):
            worker.kill()

        def kill_server(_):
            self.kill_server()

        # The first epoch. A server that starts sees the redaction.
        self.workers = [Worker(self.address, 0, (rank, RANKS)) for rank in range(RANKS)]
        seen = collections.Counter()
        self.read(0, seen, {10: kill_worker, 30: kill_server, 50: redact, 51: kill_server,
                            70: kill_worker, 71: kill_worker, 90: kill_server})
        self.assertEqual(seen, collections.Counter(set(range(COUNT)) - late))
        self.assertEqual(self.withdrawn(), len(late))
        self.assertEqual(self.killed_count, 3)

        # The second, in its middle resumed by one worker instead of three.
        for worker in self.workers:
            worker.end()
        self.workers = [Worker(self.address, 1, (rank, RANKS)) for rank in range(RANKS)]
        seen = collections.Counter()
        self.read(1, seen, {20: kill_worker, 40: kill_server, 45: kill_worker}, count_max=61)
        for worker in self.workers:
            worker.end()
        state = combine_states([worker.state for worker in self.workers])
        self.workers = [Worker(self.address, 1, (0, 1), state)]
        self.read(1, seen, {10: kill_server, 15: kill_worker})
        self.assertEqual(seen, collections.Counter(set(range(COUNT)) - early - late))
        self.assertEqual(self.withdrawn(), len(early | late))
        self.assertEqual(self.killed_count, 6)

    def withdrawn(self):
        return sum(worker.state["withdrawn"] for worker in self.workers)


if __name__ == "__main__":
    unittest.main()
