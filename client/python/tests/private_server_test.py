# SPDX-License-Identifier: Apache-2.0
"""Archives that open() and `quire --archive` read by a private server, which they share."""
import contextlib
import os
import pathlib
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import quire_archive as quire
from package_harness import QUIRE, QUIRED, build, environment
from quire_archive import private_server
from test_level import nightly, rounds

ROOT = pathlib.Path(__file__).resolve().parents[3]
# Generous: only a hang takes this long.
PATIENCE_S = 120


def await_true(condition, what):
    """Waits until `condition` returns something true, which is returned."""
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"in vain: {what}"
        time.sleep(0.02)
    return found


class PrivateServerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-")))
        pages = directory / "pages"
        pages.mkdir()
        for number in range(20):
            (pages / f"page{number}").write_bytes(b"contents %d\n" % number * 500)
        cls.archive = build(directory / "docs.quire", pages)
        # Counts its starts.
        cls.quired = directory / "quired"
        cls.quired.write_text(f'#!/bin/sh\necho >> "{directory}/starts"\nexec {QUIRED} "$@"\n')
        cls.quired.chmod(0o755)

    def setUp(self):
        self.run = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=self.directory))
        self.starts = self.directory / "starts"
        self.starts.write_bytes(b"")
        self.enterContext(environment(XDG_RUNTIME_DIR=str(self.run), QUIRED=str(self.quired),
                                      # These are for other servers.
                                      QUIRED_LISTEN="nonsense", QUIRE_CA="/absent"))
        self.addCleanup(self.await_no_server)

    def servers(self):
        """The processes of private servers of this test."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            # Of a zombie it is empty.
            with contextlib.suppress(OSError):
                if f"--private\0{self.run}/".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found

    def await_no_server(self):
        await_true(lambda: not self.servers(), "the server did not end")

    def start_count(self):
        return self.starts.read_text().count("\n")

    def python(self, program, *arguments, **options):
        """A process that runs a program, which begins with `import quire_archive`."""
        process = subprocess.Popen(
            [sys.executable, "-c", "import os, quire_archive\n" + program, self.archive,
             *map(str, arguments)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, **options)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.kill)
        return process

    def quire(self, *arguments, program=QUIRE):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL)

    def test_reads_and_leaves_nothing(self):
        with quire.open(self.archive) as docs:
            self.assertEqual(docs["page3"], b"contents 3\n" * 500)
            self.assertEqual((len(docs), docs.name), (20, "docs"))
            self.assertEqual(len(list(docs.scan())), 20)
            # The program quire finds the same server.
            shown = self.quire("--archive", f"{self.archive}/", "get", "page4")
            self.assertEqual((shown.returncode, shown.stdout), (0, "contents 4\n" * 500),
                             shown.stderr)
            other = quire.open(os.path.relpath(self.archive))
            self.assertEqual(other.pinned()[0], docs[0])
            other.close()
            self.assertEqual(self.start_count(), 1)
            # Another option, another server.
            with quire.open(self.archive, memory="700MiB") as third:
                self.assertEqual(third["page3"], docs["page3"])
            self.assertEqual(self.start_count(), 2)
        await_true(lambda: not list((self.run / "quire").iterdir()), "files of the server")
        # A closed archive opens itself again.
        self.assertEqual(docs["page5"], b"contents 5\n" * 500)
        docs.close()
        self.assertEqual(self.start_count(), 3)

    def test_copies_keep_the_server(self):
        docs = quire.open(self.archive)
        pinned = pickle.loads(pickle.dumps(docs.pinned()))
        self.assertEqual(pinned["page1"], docs["page1"])
        docs.close()
        self.assertEqual(pinned["page2"], b"contents 2\n" * 500)
        self.assertEqual(self.start_count(), 1)
        # The last reference leaves the server, too.
        del pinned

    def test_a_killed_server_is_replaced(self):
        with quire.open(self.archive) as docs:
            answers = docs.get_many(number % 20 for number in range(2000))
            next(answers)
            for server in self.servers():
                os.kill(server, signal.SIGKILL)
            self.assertEqual(sum(answer.error is None for answer in answers), 1999)
            self.assertEqual(docs["page1"], b"contents 1\n" * 500)
        self.assertEqual(self.start_count(), 2)

    def test_processes_share_a_server_until_the_last_is_killed(self):
        # The child of a fork has a share as long as it lives, and no call was made before.
        program = ("import sys, time\n"
                   "docs = quire_archive.open(sys.argv[1])\n"
                   "if os.fork() == 0:\n"
                   "    os.close(1)\n"
                   "    os.read(0, 1)\n"
                   "    assert len(docs['page1']) == 5500\n"
                   "    os.write(2, b'read')\n"
                   "    time.sleep(1000)\n"
                   "print(len(docs['page1']), flush=True)\n"
                   "time.sleep(1000)\n")
        processes = [self.python(program, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                 start_new_session=True) for _ in range(3)]
        for process in processes:
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.stdin.close)
            self.assertEqual(process.stdout.readline(), "5500\n")
        self.assertEqual((self.start_count(), len(self.servers())), (1, 1))
        for process in processes:
            process.kill()
            process.wait()
        # Their children read now.
        for process in processes:
            process.stdin.write("x")
            process.stdin.flush()
            self.assertEqual(process.stderr.read(4), "read")
        self.assertEqual((self.start_count(), len(self.servers())), (1, 1))
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
        self.await_no_server()

    def test_clients_that_come_as_the_server_ends(self):
        failures = []

        def run():
            for number in range(rounds(5, 20)):
                shown = self.quire("--archive", self.archive, "get", f"page{number}")
                if (shown.returncode, shown.stdout) != (0, f"contents {number}\n" * 500):
                    failures.append(shown)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.await_no_server()
        self.assertEqual(list((self.run / "quire").iterdir()), [])

    @nightly
    def test_a_spawned_worker_joins(self):
        program = ("import multiprocessing, sys\n"
                   "if __name__ == '__main__':\n"
                   "    docs = quire_archive.open(sys.argv[1])\n"
                   "    size = len(docs['page1'])\n"
                   "    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
                   "        assert pool.apply(docs.read, ('page1',)) == docs['page1']\n"
                   "    print(size)\n")
        process = self.python(program)
        self.assertEqual(process.communicate(timeout=PATIENCE_S)[0], "5500\n")
        self.assertEqual(self.start_count(), 1)

    def test_an_archive_that_grows(self):
        grown = shutil.copytree(self.archive, self.run / "grown.quire")
        new = self.run / "new"
        new.write_bytes(b"appended")
        with quire.open(grown) as docs:
            self.assertEqual(len(docs), 20)
            subprocess.run([QUIRED, "append", "--quiet", grown, new], check=True)
            await_true(lambda: len(docs) == 21, "the new document was not seen")

    def test_a_store(self):
        shutil.copytree(self.archive, self.run / "store" / "bucket" / "docs.quire")
        store = subprocess.Popen(
            [sys.executable, ROOT / "testing" / "storage" / "object_server.py",
             self.run / "store"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(store.stdout.close)
        self.addCleanup(store.wait)
        self.addCleanup(store.kill)
        url = f"{store.stdout.readline().strip()}/bucket/docs.quire"
        with environment(XDG_CACHE_HOME=str(self.run / "cache")), quire.open(f"{url}/") as docs:
            self.assertEqual(docs["page3"], b"contents 3\n" * 500)
            shown = self.quire("--archive", url, "get", "page4")
            self.assertEqual((shown.returncode, shown.stdout), (0, "contents 4\n" * 500),
                             shown.stderr)
            self.assertEqual(self.start_count(), 1)
            self.assertEqual(len(list((self.run / "cache" / "quire" / "stores").iterdir())), 1)
            # Of other credentials; they cannot share the copies either.
            with environment(AWS_REGION="other"), \
                    self.assertRaisesRegex(quire.PrivateServerFailed, "another process uses"):
                quire.open(url)
            with environment(AWS_REGION="other"), \
                    quire.open(url, cache=self.run / "other", cache_size="1GiB") as docs_of_other:
                self.assertEqual(docs_of_other["page3"], docs["page3"])

    def test_a_client_that_is_killed_as_the_server_starts(self):
        (self.run / "store" / "bucket").mkdir(parents=True)
        store = subprocess.Popen(
            [sys.executable, ROOT / "testing" / "storage" / "object_server.py",
             self.run / "store", "--delay-ms", "1000000"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(store.stdout.close)
        self.addCleanup(store.wait)
        self.addCleanup(store.kill)
        url = store.stdout.readline().strip()
        with environment(XDG_CACHE_HOME=str(self.run / "cache")):
            process = self.python("import sys\nquire_archive.open(sys.argv[2])\n",
                                  f"{url}/bucket/docs.quire")
            # The server in the background, too.
            await_true(lambda: len(self.servers()) == 2, "the server did not start")
            process.kill()
            self.await_no_server()

    def test_a_broken_archive(self):
        broken = shutil.copytree(self.archive, self.run / "broken.quire")
        (broken / "MANIFEST").write_bytes(b"nonsense")
        for archive, message in ((broken, "MANIFEST"), (self.run / "absent", "No such file")):
            with self.assertRaisesRegex(quire.PrivateServerFailed, message) as caught:
                quire.open(archive)
            self.assertEqual(caught.exception.exit_code, 1)
            self.assertEqual(pickle.loads(pickle.dumps(caught.exception)).exit_code, 1)
            shown = self.quire("--archive", archive, "info")
            self.assertEqual(shown.returncode, 1)
            self.assertIn(message, shown.stderr)
        with self.assertRaisesRegex(quire.PrivateServerFailed, "--memory") as caught:
            quire.open(self.archive, memory="nonsense")
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertEqual(list((self.run / "quire").iterdir()), [])

    def test_directories_of_others_are_refused(self):
        base = self.run / "quire"
        base.mkdir(mode=0o755)
        # One that cannot be made is passed over; the next may be of another user.
        for variables in ({}, {"XDG_RUNTIME_DIR": str(self.run / "absent"),
                               "TMPDIR": str(self.run)}):
            base.rename(self.run / (f"quire-{os.geteuid()}" if variables else "quire"))
            with environment(**variables):
                with self.assertRaisesRegex(quire.PrivateServerFailed, "mode 0700, is"):
                    quire.open(self.archive)
                shown = self.quire("--archive", self.archive, "info")
                self.assertEqual(shown.returncode, 1)
                self.assertRegex(shown.stderr, "mode 0700, is")
            base = next(self.run.glob("quire*"))
        base.chmod(0o700)
        os.mkfifo(base / "clients")
        for mode, code, message in ((0o700, 1, "must be a FIFO that a client has open"),
                                    (0o710, 2, "mode 0700, is of user")):
            base.chmod(mode)
            refused = subprocess.run(
                [QUIRED, "serve", self.archive, "--private", base], capture_output=True, text=True,
                check=False, env={name: value for name, value in os.environ.items()
                                  if name != "QUIRED_LISTEN"})
            self.assertEqual(refused.returncode, code, refused.stderr)
            self.assertIn(message, refused.stderr)
        # The path of a socket is short.
        with environment(XDG_RUNTIME_DIR=None, TMPDIR="/" + "x" * 100):
            self.assertEqual(private_server._base_directory(),  # pylint: disable=protected-access
                             f"/tmp/quire-{os.geteuid()}")

    def test_the_program_is_sought(self):
        # A directory with quire, but without quired.
        alone = self.run / "alone"
        alone.mkdir()
        shutil.copy2(QUIRE, alone / "quire")
        with environment(QUIRED=None, PATH=str(alone)):
            with self.assertRaises(quire.PrivateServerFailed) as caught:
                quire.open(self.archive)
            shown = self.quire("--archive", self.archive, "info", program=alone / "quire")
            self.assertEqual(shown.returncode, 1)
            for message in (str(caught.exception), shown.stderr):
                for place in ("PATH", "next to quire", "pip as the package quired", "QUIRED"):
                    self.assertIn(place, message)
            with quire.open(self.archive, quired=QUIRED) as docs:
                self.assertEqual(len(docs), 20)

    def test_the_program_next_to_quire_is_found(self):
        # In the directory that the links lead to.
        linked, both = self.run / "linked", self.run / "both"
        linked.mkdir()
        both.mkdir()
        shutil.copy2(QUIRE, both / "quire")
        (both / "quired").symlink_to(self.quired)
        (linked / "quire").symlink_to(both / "quire")
        with environment(QUIRED=None, PATH=str(linked)):
            with quire.open(self.archive) as docs:
                self.assertEqual(docs["page3"], b"contents 3\n" * 500)
                shown = self.quire("--archive", self.archive, "get", "page4",
                                   program=linked / "quire")
                self.assertEqual((shown.returncode, shown.stdout), (0, "contents 4\n" * 500),
                                 shown.stderr)
            self.assertEqual(self.start_count(), 1)
        # PATH comes first.
        other = self.run / "other"
        other.mkdir()
        (other / "quired").write_text("#!/bin/sh\necho the other >&2\nexit 1\n")
        (other / "quired").chmod(0o755)
        with environment(QUIRED=None, PATH=f"{linked}:{other}:{os.defpath}"):
            with self.assertRaisesRegex(quire.PrivateServerFailed, "the other"):
                quire.open(self.archive)
            shown = self.quire("--archive", self.archive, "info", program=linked / "quire")
            self.assertIn("the other", shown.stderr)

        with environment(QUIRED="/absent"), \
                self.assertRaisesRegex(quire.PrivateServerFailed, "correct .* QUIRED"):
            quire.open(self.archive)
        for options in ({"ca_file": "x"}, {"token": "a.b"}, {"cache": "x"}, {"nonsense": 1}):
            with self.subTest(options=options), self.assertRaises(TypeError):
                quire.open(self.archive, **options)

    def test_the_program_of_a_package_in_a_target_directory(self):
        # As after `pip install --target`.
        target = self.run / "target"
        for name in ("quired", "bin"):
            (target / name).mkdir(parents=True)
        (target / "quired" / "__init__.py").touch()
        (target / "bin" / "quired").symlink_to(QUIRED)
        program = "print(len(quire_archive.open(sys.argv[1])))\n"
        found = subprocess.run(
            [sys.executable, "-c", "import sys, quire_archive\n" + program, self.archive],
            check=True, stdout=subprocess.PIPE, text=True, env={
                **{name: value for name, value in os.environ.items() if name != "QUIRED"},
                "PATH": str(target), "PYTHONPATH": os.pathsep.join([str(target), *sys.path])})
        self.assertEqual(found.stdout, "20\n")

    def test_the_command_line(self):
        for arguments in (["--server", "x:1", "info"], ["info", "docs"], ["--ca", "x", "info"]):
            shown = self.quire("--archive", self.archive, *arguments)
            self.assertEqual(shown.returncode, 2, shown.stderr)
        for arguments in (["get", "page1", "--archive", self.archive],
                          [f"--archive={self.archive}", "get", "--", "page1"],
                          ["--archive", self.archive, "get", "--ordinal", "1", "-q"]):
            shown = self.quire(*arguments)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertTrue(shown.stdout.startswith("contents"))
        # After -- it is an id, on another server.
        self.assertIn("/absent", self.quire("get", "docs", "--", "--archive").stderr)


if __name__ == "__main__":
    unittest.main()
