# SPDX-License-Identifier: GPL-3.0-or-later
"""Clients of `quired serve --access` with a quota of one call per second: `quire` and the
Python package finish whatever they read, and wait for it.

Each command has an identity of its own, and all run at the same time.
"""
import asyncio
import atexit
import concurrent.futures
import importlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from served_case import ServedCase, run, start

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Three pages of a list.
DOCUMENT_COUNT = 250
COMMANDS = [
    ["archives"], ["info", "docs"], ["ls", "docs"], ["ls", "docs", "--delimiter", "/"],
    ["ls", "docs", "-l", "--json"], ["get", "docs", "a/page000", "a/page001", "a/page002"],
    ["get", "docs", "a/page003", "a/page004", "--json"], ["range", "docs", "1000", "100KiB"],
    ["scan", "docs"], ["scan", "docs", "-e", "stored"], ["batch", "docs", "ITEMS"],
    ["batch", "docs", "ITEMS", "--payload", "--json"], ["export", "docs", "-q", "--tar", "-"],
    ["export", "docs", "-q", "--payload", "--tar", "-"]]


def load_package():
    """The Python package from its sources."""
    directory = tempfile.mkdtemp(prefix="quire-quota-package-")
    atexit.register(shutil.rmtree, directory)
    subprocess.run([ROOT / "client" / "python" / "build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("*.whl")
    sys.path.insert(0, str(wheel))
    return importlib.import_module("quire_archive")


class QuotaTest(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        pages = cls.directory / "pages" / "a"
        pages.mkdir(parents=True)
        cls.ids = [f"a/page{number:03}" for number in range(DOCUMENT_COUNT)]
        for number, name in enumerate(cls.ids):
            (pages.parent / name).write_text(f"<p>page {number}</p>\n" * 50)
        cls.archive = cls.directory / "paged.quire"
        built = run("quired", "build", "--quiet", "-o", cls.archive, pages.parent)
        assert built.returncode == 0, built.stderr
        cls.items = cls.directory / "items"
        cls.items.write_text("\n".join(cls.ids[::3]))

    def start(self, limited_count):
        """A server; returns its address, and the files of tokens: one that is not limited, and
        others for one call per second."""
        rules, tokens = [], []
        for number in range(limited_count + 1):
            path = self.directory / f"{self.id().rpartition('.')[2]}-{number}.token"
            made = run("quired", "token", "new", f"client{number}", "-o", path)
            self.assertEqual(made.returncode, 0, made.stderr)
            rules.append(made.stdout.rstrip() + (" calls=1\n" if number else "\n"))
            tokens.append(path)
        access = self.directory / f"{self.id().rpartition('.')[2]}.access"
        access.write_text("".join(rules))
        _, said = start(self, f"docs={self.archive}", "--listen", "127.0.0.1:0", "--access", access)
        return said.split()[-1], tokens

    def test_each_subcommand_finishes(self):
        address, (free, *limited) = self.start(len(COMMANDS))

        def ask(token, command):
            return run("quire", "--server", address, "--token-file", token, "--cache-dir", "-",
                       *[self.items if word == "ITEMS" else word for word in command])

        with concurrent.futures.ThreadPoolExecutor(len(COMMANDS)) as threads:
            answers = list(threads.map(ask, limited, COMMANDS))
            expected = list(threads.map(ask, [free] * len(COMMANDS), COMMANDS))
        for command, answer, wanted in zip(COMMANDS, answers, expected):
            with self.subTest(command=command):
                self.assertEqual((answer.returncode, answer.stderr), (0, ""))
                self.assertEqual(answer.stdout, wanted.stdout)
        listed = answers[COMMANDS.index(["ls", "docs"])].stdout
        self.assertEqual(listed.split(), self.ids)

    def test_says_what_it_waited_for(self):
        address, (_, limited) = self.start(1)
        refused = run("quire", "--server", address, "--token-file", limited, "--timeout", "200ms",
                      "ls", "docs")
        # The first page needs one call.
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertRegex(refused.stderr, "may make 1 calls per second, and has made more; gave up "
                         "after .* the time limit is 200ms; .*--timeout .now 200ms. waits longer")

    def test_python_finishes(self):
        quire = load_package()
        ids = [name.encode() for name in self.ids]
        texts = {name.encode(): (self.directory / "pages" / name).read_bytes()
                 for name in self.ids}
        requests = [
            (lambda archive: archive.documents(page_size=100),
             lambda found: [document.id for document in found], ids),
            (lambda archive: archive.get_many(ids[::3]),
             lambda found: [answer.data for answer in found], [texts[name] for name in ids[::3]]),
            (lambda archive: archive.scan(),
             lambda found: [data for _, data in found], [texts[name] for name in ids])]
        address, (_, *limited) = self.start(2 * len(requests) + 1)

        def ask(token, request):
            with quire.connect(address, token_file=str(token)) as client:
                return list(request(client["docs"]))

        async def ask_async(token, request):
            async with quire.connect_async(address, token_file=str(token)) as client:
                return [found async for found in request(client["docs"])]

        async def ask_all():
            return await asyncio.gather(*[ask_async(token, make) for token, (make, _, _)
                                          in zip(limited[len(requests):], requests)])

        def read_each(token):
            with quire.connect(address, token_file=str(token)) as client:
                return [client["docs"].read(name) for name in ids[:3]]

        with concurrent.futures.ThreadPoolExecutor(len(requests) + 1) as threads:
            read = threads.submit(read_each, limited[-1])
            blocking = [threads.submit(ask, token, make)
                        for token, (make, _, _) in zip(limited, requests)]
            found = [*asyncio.run(ask_all()), *[future.result() for future in blocking]]
            self.assertEqual(read.result(), [texts[name] for name in ids[:3]])
        for (_, view, expected), result in zip([*requests, *requests], found):
            self.assertEqual(view(result), expected)


if __name__ == "__main__":
    unittest.main()
