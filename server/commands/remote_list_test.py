#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve --archives-list` with archives in an object store, which are opened on first
use."""
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest

from remote_case import (CHUNK, OBJECT_SERVER, PATIENCE_S, QUIRE, QUIRED, RemoteCase, Server, run)


class RemoteListTest(RemoteCase):
    NAMES = ("far0", "far1", "far2")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            shutil.copytree(self.archive, self.bucket / f"{name}.quire")
        shutil.copytree(self.archive, self.scratch / "near.quire")
        self.list = self.scratch / "archives"
        self.write_list(*self.NAMES)

    def write_list(self, *names, text="near.quire\n"):
        lines = "".join(f"{name}={self.store.url}/bucket/{name}.quire\n" for name in names)
        aside = self.scratch / "archives.new"
        aside.write_text(f"# All of them.\n{lines}{text}")
        os.rename(aside, self.list)

    def start(self, *arguments, **options):
        return Server(self, "--archives-list", str(self.list), *arguments, archive=(), **options)

    def get(self, server, name):
        """Reads until the archive is open."""
        got = run(QUIRE, "-s", server.address, "-q", "range", name, "5000000", "1000")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(got.stdout, self.text[5_000_000:5_001_000])

    def listed(self, server):
        return run(QUIRE, "-s", server.address, "archives").stdout.decode()

    def test_start_makes_no_request(self):
        server = self.start()
        self.assertEqual(self.store.requests, [])
        self.assertIn("4 archives of", server.said)
        # 16 MiB for transfers, 12 for manifests, and a 64th of --memory for chunk maps.
        self.assertRegex(server.said, r"object stores +32 MiB")
        lines = self.listed(server).splitlines()
        self.assertRegex(lines[1], r"^far0 +- .*opened on first use")
        self.assertRegex(lines[4], r"^near +120 .*opened on first use")
        self.get(server, "far1")
        self.assertEqual(self.store.gets("far0"), [])
        self.assertRegex(self.listed(server), r"far1 +120 .*zstd")
        self.get(server, "near")
        self.assertEqual(server.metric("quire_listed_archives_open"), 2)
        self.assertEqual(server.metric('quire_archives{state="closed"}'), 2)
        self.assertEqual(server.stop(), 0)
        # The copy is found again, and counted, before it is opened.
        self.store.clear()
        server = self.start()
        self.assertEqual(self.store.requests, [])
        self.assertGreater(server.metric("quire_store_cache_bytes"), 0)
        self.assertRegex(self.listed(server), r"far1 +120 .*opened on first use")
        self.get(server, "far1")
        self.assertEqual([request.status for request in self.store.requests], [304])

    def test_cache_holds_the_indexes_of_those_in_use(self):
        server = self.start()
        self.get(server, "far0")
        indexes = server.metric("quire_store_cache_bytes")
        self.assertEqual(server.stop(), 0)
        size = int(indexes * 1.6)
        shutil.rmtree(server.cache)
        server = self.start(size=str(size))
        for name in self.NAMES * 2:
            self.get(server, name)
            self.assertLessEqual(server.metric("quire_store_cache_bytes"), size)
            self.assertLessEqual(server.cache_bytes(), size + CHUNK)
        self.assertGreaterEqual(server.metric("quire_listed_archive_closings_total"), 4)
        self.assertEqual(server.metric(
            'quire_listed_archive_openings_total{outcome="failed"}'), 0)

    def test_silent_store_keeps_no_other_archive_from_being_opened(self):
        more = [f"more{i}" for i in range(20)]
        for name in more:
            (self.bucket / f"{name}.quire").symlink_to(self.archive)
        self.write_list(*self.NAMES, *more)
        server = self.start("--drain-timeout", "1s")
        self.store.lies.set("stall")
        waiting = [threading.Thread(target=run, args=(
            QUIRE, "-s", server.address, "--timeout", "3s", "range", name, "0", "1"))
                   for name in (*self.NAMES, *more)]
        for thread in waiting:
            thread.start()
        end = time.monotonic() + PATIENCE_S
        while not self.store.gets("MANIFEST") and time.monotonic() < end:
            time.sleep(0.01)
        self.get(server, "near")
        # It did not wait for the end of another opening.
        self.assertEqual(server.metric(
            'quire_listed_archive_openings_total{outcome="failed"}'), 0)
        # And does not keep the server from ending.
        begun = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 1 + 2 + 5)
        for thread in waiting:
            thread.join()

    def test_stopped_store_does_not_keep_the_server_from_ending(self):
        store = subprocess.Popen(
            [sys.executable, OBJECT_SERVER, self.scratch / "store"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(store.stdout.close)
        self.addCleanup(store.wait, PATIENCE_S)
        self.addCleanup(store.kill)
        url = store.stdout.readline().strip()
        self.list.write_text(f"far0={url}/bucket/far0.quire\n")
        server = Server(self, "--archives-list", str(self.list), "--drain-timeout", "1s",
                        archive=f"docs={url}/bucket/docs.quire")
        self.check_range(server, 0, 1000)
        store.send_signal(signal.SIGSTOP)
        # A read, an opening on first use and a reload.
        reading = [threading.Thread(target=run, args=(
            QUIRE, "-s", server.address, "--timeout", "20s", "range", name, "5000000", "100"))
                   for name in ("docs", "far0")]
        for thread in reading:
            thread.start()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("reading configuration and archives again")
        time.sleep(0.3)
        # It ends within drain-timeout and two seconds; the rest is for a busy machine.
        begun = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 1 + 2 + 5)
        for thread in reading:
            thread.join()

    def test_archive_is_removed_while_a_silent_store_keeps_it_from_being_opened(self):
        server = self.start()
        self.store.lies.set("stall", path="far0")
        waiting = threading.Thread(target=run, args=(
            QUIRE, "-s", server.address, "--timeout", "1s", "range", "far0", "0", "1"))
        waiting.start()
        end = time.monotonic() + PATIENCE_S
        while not self.store.gets("far0") and time.monotonic() < end:
            time.sleep(0.01)
        self.write_list("far1")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive far0: removed")
        # The opening was cancelled: a silent store makes it fail only after half a minute.
        self.assertEqual(server.metric(
            'quire_listed_archive_openings_total{outcome="failed"}'), 0)
        waiting.join()
        self.get(server, "far1")
        self.store.lies.clear()
        self.write_list("far0", "far1")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive far0: added")
        self.get(server, "far0")

    def test_failed_opening_is_reported_and_tried_again(self):
        server = self.start()
        self.store.lies.set("status_403", path="far0")
        got = run(QUIRE, "-s", server.address, "--timeout", "5s", "range", "far0", "0", "10")
        self.assertNotEqual(got.returncode, 0)
        server.wait_for("archive far0 cannot be opened")
        self.assertIn("refuses access (403)", server.said)
        self.assertEqual(server.metric('quire_archives{state="broken"}'), 1)
        self.get(server, "far1")
        self.store.lies.clear()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive far1: unchanged")
        self.get(server, "far0")
        self.assertEqual(server.metric('quire_archives{state="broken"}'), 0)

    def test_list_is_read_again(self):
        server = self.start()
        self.get(server, "far0")
        self.get(server, "near")
        self.write_list("far1")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive far2: removed")
        server.wait_for("archive near: unchanged")
        self.assertIn("archive far0: removed", server.said)
        self.assertNotRegex(self.listed(server), "far0|far2")
        self.assertEqual(list(server.cache.glob("far0-*")), [])
        self.write_list("far1", "far2")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive far2: added, opened on first use")
        self.get(server, "far2")
        # A fault changes nothing, and is named with its line.
        self.write_list("far1", text="=x\nfar1=/other\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(f"{self.list}: line 3: ")
        self.assertRegex(server.said, r"line 3: .* cannot be an archive's name.*; line 4: the name "
                                      r"far1 is that of line 2, too")
        server.wait_for("stays unchanged")
        self.get(server, "far2")

    def test_grown_archive_is_opened_anew(self):
        server = self.start("--reload-interval", "100ms")
        self.get(server, "near")
        more = self.scratch / "more"
        more.mkdir()
        (more / "last").write_bytes(os.urandom(1000))
        appended = run(QUIRED, "append", "--quiet", self.scratch / "near.quire", more)
        self.assertEqual(appended.returncode, 0, appended.stderr)
        server.wait_for("archive near: has grown")
        self.assertRegex(self.listed(server), r"near +121 ")

    def test_check_config(self):
        config = self.scratch / "quired.toml"
        config.write_text(f'store-cache = "{self.scratch}/cache:64MiB"\n'
                          'archives-list = "archives"\n')
        checked = run(QUIRED, "check-config", config)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(self.store.requests, [])
        self.write_list("far0", text="missing.quire\nother=\n")
        checked = run(QUIRED, "check-config", config, text=True)
        self.assertEqual(checked.returncode, 2)
        self.assertIn(f"{self.list}: line 4: ", checked.stderr)
        self.write_list("far0", text="missing.quire\n")
        checked = run(QUIRED, "check-config", config, text=True)
        self.assertEqual(checked.returncode, 2)
        self.assertIn("missing.quire", checked.stderr)
        config.write_text('archives-list = "nowhere"\n')
        checked = run(QUIRED, "check-config", config, text=True)
        self.assertEqual(checked.returncode, 2)
        self.assertRegex(checked.stderr, r'quired.toml:1: "archives-list": ".*nowhere" cannot be')

    def test_list_alone_may_be_empty(self):
        self.list.write_text("# None yet.\n")
        server = self.start()
        self.assertIn("holds no archives: nothing is served", server.said)
        self.write_list("far0")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive near: added")
        self.get(server, "near")


if __name__ == "__main__":
    unittest.main(verbosity=2)
