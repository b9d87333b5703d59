# SPDX-License-Identifier: Apache-2.0
"""Clients in several processes and threads: fork, spawn, forkserver, pickles."""
import concurrent.futures
import gc
import itertools
import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import traceback
import unittest

import quire_archive as quire
from package_harness import LiveServer, QUIRED, build, write_corpus, make_documents
from quire_archive.training import DocumentMap

FORKS = 40


def read_in_worker(archive, key):
    return archive.read(key)


def load_in_worker(dataset, indices):
    return dataset.__getitems__(indices)


def fail_in_worker(archive):
    return archive.read("absent")


def in_child(function):
    """Forks; the child calls `function` and exits. Returns its exit code."""
    # Objects of gRPC that earlier tests left wait for their threads, which the child has not.
    gc.collect()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class ProcessesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory()))
        cls.documents = make_documents(200, 5, 3000)
        write_corpus(cls.documents, f"{directory}/pages")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            f"pages={build(directory / 'pages.quire', directory / 'pages.tar')}"]))

    def test_a_forked_child_of_a_used_client(self):
        with quire.connect(self.server.address) as used:
            unused = quire.connect(self.server.address)
            archive = used["pages"]
            answers = archive.get_many(number % 200 for number in itertools.count())
            next(answers)

            def child():
                # A new client would share gRPC's state with the parent, too.
                for client in (used, unused, pickle.loads(pickle.dumps(used)),
                               quire.connect(self.server.address)):
                    try:
                        client["pages"].read(0)
                    except quire.ForkedError as error:
                        assert "spawn" in str(error) and "forkserver" in str(error)
                    else:
                        raise AssertionError("no ForkedError")
                try:
                    for _ in answers:
                        pass
                except quire.ForkedError:
                    pass

            for _ in range(FORKS):
                self.assertEqual(in_child(child), 0)
            # The parent goes on.
            self.assertEqual([answer.key for answer in itertools.islice(answers, 5000)],
                             [number % 200 for number in range(1, 5001)])
            answers.close()
            self.assertEqual(archive.read(3), self.documents[3][1])

    def test_a_fork_before_the_first_call(self):
        # In a process of its own: this one has made calls.
        program = (
            "import os, sys, quire_archive\n"
            "archive = quire_archive.connect(sys.argv[1])['pages']\n"
            "for _ in range(5):\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        size = len(archive.read(0))\n"
            "        os._exit(0)\n"
            "    assert os.waitpid(child, 0)[1] == 0\n"
            "assert sum(len(d) for _, d in archive.scan()) == int(sys.argv[2])\n")
        total = sum(len(data) for _, data in self.documents)
        self.assertEqual(os.spawnve(
            os.P_WAIT, sys.executable,
            [sys.executable, "-c", program, self.server.address, str(total)], os.environ), 0)

    def test_pickles(self):
        with quire.connect(self.server.address, deadline=7) as client:
            archive = client["pages"].pinned()
            for made in (archive, client["pages"]):
                copy = pickle.loads(pickle.dumps(made))
                self.assertEqual((copy.name, copy.uuid), (made.name, made.uuid))
                self.assertIsNot(copy.client, client)
                self.assertEqual(copy.read(5), self.documents[5][1])
                copy.client.close()
            answers = list(client["pages"].get_many([0, "absent"]))
            copies = pickle.loads(pickle.dumps(answers))
            self.assertEqual(copies[0].data, self.documents[0][1])
            self.assertIsInstance(copies[1].error, quire.DocumentNotFound)
        self.assertIsInstance(
            pickle.loads(pickle.dumps(quire.connect_async(self.server.address))),
            quire.AsyncClient)

    def test_workers_of_spawn_and_forkserver(self):
        archive = quire.connect(self.server.address)["pages"]
        archive.read(0)
        dataset = DocumentMap(self.server.address, "pages", transform=len)
        self.assertEqual(len(dataset), len(self.documents))
        self.assertEqual(dataset[-1], len(self.documents[-1][1]))
        with self.assertRaises(IndexError):
            dataset[len(dataset)]  # pylint: disable=pointless-statement
        for method in ("spawn", "forkserver"):
            with self.subTest(method=method), concurrent.futures.ProcessPoolExecutor(
                    2, multiprocessing.get_context(method)) as pool:
                reads = [pool.submit(read_in_worker, archive, n) for n in range(20)]
                self.assertEqual([read.result(60) for read in reads],
                                 [data for _, data in self.documents[:20]])
                batches = [pool.submit(load_in_worker, dataset, list(range(at, at + 50)))
                           for at in range(0, 200, 50)]
                self.assertEqual([size for batch in batches for size in batch.result(60)],
                                 [len(data) for _, data in self.documents])
                with self.assertRaises(quire.DocumentNotFound):
                    pool.submit(fail_in_worker, archive).result(60)

    def test_workers_that_are_forked_for_a_dataset(self):
        # As a DataLoader forks them; in a process of its own, as this one has made calls.
        program = (
            "import multiprocessing, sys\n"
            "from quire_archive.training import DocumentMap\n"
            "dataset = DocumentMap(sys.argv[1], 'pages', transform=len)\n"
            "batches = [list(range(at, at + 50)) for at in range(0, len(dataset), 50)]\n"
            "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
            "    print(sum(pool.map(dataset.__getitems__, batches), []))\n")
        found = subprocess.run(
            [sys.executable, "-c", program, self.server.address], check=True, text=True,
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        self.assertEqual(found.stdout.strip(), str([len(data) for _, data in self.documents]))

    def test_a_dataset_of_no_archive(self):
        with self.assertRaises(quire.ArchiveNotFound):
            DocumentMap(self.server.address, "none")

    def test_a_dataset_leaves_withdrawn_documents_out(self):
        with tempfile.TemporaryDirectory() as directory:
            archive = build(f"{directory}/pages.quire", f"{self.directory}/pages.tar")
            names = [name for name, _ in self.documents]
            subprocess.run([QUIRED, "redact", "--quiet", archive, "-"], check=True, text=True,
                           input=f"{names[3]}\n")
            rules = pathlib.Path(directory, "withdrawn")
            rules.write_text(f"pages id {names[5]} block\npages id {names[7]} exclude\n")
            with LiveServer(QUIRED, [archive], "--withdrawn", rules) as server:
                dataset = DocumentMap(server.address, "pages", transform=len)
                self.assertEqual(len(dataset), len(self.documents))
                with self.assertWarnsRegex(UserWarning, "pages has withdrawn documents"):
                    found = dataset.__getitems__(list(range(len(dataset))))
                self.assertEqual(found, [len(data) for number, (_, data) in enumerate(
                    self.documents) if number not in (3, 5, 7)])
                self.assertEqual(dataset.withdrawn_count, 3)
                for number, kind in ((3, quire.DocumentWithdrawn), (5, quire.DocumentWithdrawn),
                                     (7, quire.DocumentNotFound)):
                    with self.assertRaises(kind):
                        dataset[number]  # pylint: disable=pointless-statement

    def test_threads_share_a_client(self):
        with quire.connect(self.server.address, encoding="stored") as client, \
                concurrent.futures.ThreadPoolExecutor(8) as pool:
            archive = client["pages"]
            reads = [pool.submit(archive.read, n % 200) for n in range(800)]
            batches = [pool.submit(lambda: [a.data for a in archive.get_many(range(200))])
                       for _ in range(8)]
            scans = [pool.submit(lambda: [data for _, data in archive.scan()]) for _ in range(4)]
            contents = [data for _, data in self.documents]
            self.assertEqual([read.result() for read in reads], contents * 4)
            for result in batches + scans:
                self.assertEqual(result.result(), contents)

    def test_a_closed_client_connects_again(self):
        client = quire.connect(self.server.address)
        for _ in range(3):
            self.assertEqual(client["pages"].read(1), self.documents[1][1])
            client.close()


if __name__ == "__main__":
    unittest.main()
