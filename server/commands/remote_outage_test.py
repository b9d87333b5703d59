#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve` without its object store, or without space for local copies: restarts in an
outage, what the store says afterwards, and a full disk."""
import os
import pathlib
import random
import shutil
import signal
import sys
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
from remote_case import ObjectServer, PATIENCE_S, QUIRE, QUIRED, RemoteCase, Server, run  # noqa: E402
from test_level import SEED, nightly

STALE = ("--store-stale-max", "1h")


class OutageCase(RemoteCase):
    def begin_outage(self):
        self.store.stop()

    def end_outage(self):
        """The same store answers again."""
        self.store = ObjectServer(self.scratch / "store", self.store.port)
        self.addCleanup(self.store.stop)

    def warm(self):
        """Leaves a cache that has all of the archive."""
        server = Server(self, *STALE)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)

    def expect_no_start(self, message, *arguments):
        server = Server(self, *(arguments or STALE), expect_start=False)
        end = time.monotonic() + PATIENCE_S
        while server.process.poll() is None:
            self.assertNotIn("listening on", server.said)
            self.assertLess(time.monotonic(), end, server.said)
            time.sleep(0.05)
        self.assertEqual(server.process.returncode, 1)
        server.reader.join(PATIENCE_S)
        self.assertIn(message, server.said)

    def age_copy(self, seconds):
        """Makes the last confirmation of the copy older."""
        for path in (self.scratch / "cache").glob("*/CONFIRMED"):
            time_s, checksum = path.read_text().split(" ")
            path.write_text(f"{int(time_s) - seconds} {checksum}")

    def reload(self, server, text):
        server.process.send_signal(signal.SIGHUP)
        server.wait_for(text)

    def ready(self, server):
        """Returns the status of /readyz."""
        url = server.metrics_url.replace("/metrics", "/readyz")
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
                return page.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code


class RestartTest(OutageCase):
    def test_a_warm_cache_serves_until_the_store_answers(self):
        self.warm()
        self.begin_outage()
        server = Server(self, *STALE)
        self.assertIn("archive docs is served from its local copy", server.said)
        self.check_all(server)
        self.assertEqual(server.metric("quire_store_stale_archives"), 1)
        self.assertLess(server.metric("quire_store_stale_age_seconds"), 3600)
        self.assertEqual(self.ready(server), 200)
        self.reload(server, "archive docs stays unchanged")
        self.end_outage()
        self.reload(server, "confirms its local copy")
        self.assertEqual([request.status for request in self.store.requests], [304])
        self.assertEqual(server.metric("quire_store_stale_archives"), 0)
        self.check_all(server)

    def test_chunks_that_are_not_cached_fail_until_the_store_answers(self):
        server = Server(self, *STALE)
        self.check_range(server, 3_000_000, 5_000)
        self.assertEqual(server.stop(), 0)
        self.begin_outage()
        server = Server(self, *STALE)
        self.check_range(server, 3_000_000, 5_000)
        got = server.range(1_000_000, 1_000)
        self.assertNotEqual(got.returncode, 0)
        self.assertIn(b"could not be read", got.stderr)
        self.check_range(server, 3_000_000, 5_000)
        self.end_outage()
        self.check_range(server, 1_000_000, 1_000)

    def test_off_by_default(self):
        server = Server(self)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(list(server.cache.glob("*/CONFIRMED")), [])
        self.begin_outage()
        self.expect_no_start("(tried 4 times)", "--store-requests", "64")
        # The copy was never confirmed.
        self.expect_no_start("was not confirmed by the store")

    @nightly
    def test_each_kind_of_silence(self):
        self.warm()
        for lie in "status_503", "status_500", "status_429", "close":
            with self.subTest(lie=lie):
                self.store.lies.set(lie)
                server = Server(self, *STALE)
                self.check_range(server, 3_000_000, 5_000)
                self.assertEqual(server.stop(), 0)
                self.store.lies.clear()

    def test_a_refusal_is_no_silence_and_is_remembered(self):
        self.warm()
        self.store.lies.set("status_403")
        self.expect_no_start("refuses access (403)")
        # The last word of the store counts in an outage, too.
        self.begin_outage()
        self.expect_no_start("was not confirmed by the store")
        self.end_outage()
        self.warm()
        shutil.move(self.bucket / "docs.quire" / "MANIFEST", self.scratch)
        self.expect_no_start("does not have it (404)")
        self.begin_outage()
        self.expect_no_start("was not confirmed by the store")

    def test_a_refusal_closes_what_was_opened_in_the_outage(self):
        self.warm()
        self.begin_outage()
        server = Server(self, *STALE)
        self.end_outage()
        self.store.lies.set("status_403")
        self.reload(server, "is closed: ")
        got = run(QUIRE, "-s", server.address, "--timeout", "1s", "range", "docs", "0", "10")
        self.assertNotEqual(got.returncode, 0)
        self.assertNotIn(b"no archive", got.stderr)
        self.assertEqual(server.metric('quire_archives{state="broken"}'), 1)
        self.assertEqual(server.metric("quire_store_stale_archives"), 0)
        self.assertEqual(self.ready(server), 503)
        self.store.lies.clear()
        self.reload(server, "archive docs: added")
        self.check_all(server)
        self.assertEqual(self.ready(server), 200)

    def test_an_old_copy_is_not_served(self):
        self.warm()
        self.begin_outage()
        self.age_copy(2 * 3600)
        self.expect_no_start("ago, more than --store-stale-max 1h")
        # The machine's clock was ahead when the copy was confirmed.
        self.age_copy(-5 * 3600)
        self.expect_no_start("check this machine's clock")

    @nightly
    def test_a_copy_that_ages_is_closed_and_opened_without_a_reload(self):
        self.warm()
        self.begin_outage()
        self.age_copy(3600 - 15)
        server = Server(self, *STALE)
        server.wait_for("more than --store-stale-max 1h, and is closed")
        self.assertEqual(self.ready(server), 503)
        self.end_outage()
        server.wait_for("archive docs: added")
        self.check_all(server)

    def test_a_damaged_copy_is_not_served(self):
        self.warm()
        self.begin_outage()
        for path in (self.scratch / "cache").rglob("segment-*"):
            with path.open("r+b") as file:
                file.seek(-200, os.SEEK_END)
                file.write(b"damage")
        self.expect_no_start("its local copy is not served")

    def test_contents_that_the_store_has_replaced_do_not_come_back(self):
        self.warm()
        self.replace()
        self.store.clear()
        self.store.lies.set("stall", path="segment")
        server = Server(self, *STALE, expect_start=False)
        end = time.monotonic() + PATIENCE_S
        while not self.store.gets("segment") and time.monotonic() < end:
            time.sleep(0.01)
        server.stop(signal.SIGKILL)
        self.begin_outage()
        self.expect_no_start("its local copy is not served")

    def test_what_was_open_before_the_outage_stays(self):
        server = Server(self, "--store-stale-max", "1s", "--reload-interval", "100ms")
        self.check_all(server)
        self.begin_outage()
        server.wait_for("archive docs stays unchanged")
        time.sleep(1.5)
        self.check_all(server)
        self.assertEqual(server.metric("quire_store_stale_archives"), 0)

    def test_an_archive_of_the_list_is_opened_from_its_copy(self):
        archives = self.scratch / "archives"
        archives.write_text(f"docs={self.store.url}/bucket/docs.quire\n")
        listed = ("--archives-list", str(archives), *STALE)
        server = Server(self, *listed, archive=())
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        self.begin_outage()
        server = Server(self, *listed, archive=())
        self.check_all(server)
        self.assertEqual(server.metric("quire_store_stale_archives"), 1)
        self.end_outage()
        self.store.lies.set("status_403")
        server.wait_for("is closed: ")
        self.assertEqual(self.ready(server), 503)
        self.store.lies.clear()
        # The probes let it be opened.
        end = time.monotonic() + PATIENCE_S
        while self.ready(server) != 200:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.1)
        self.check_all(server)

    @nightly
    def test_random_outages(self):
        draw = random.Random(SEED)
        archives = self.scratch / "archives"
        archives.write_text(f"docs={self.store.url}/bucket/docs.quire\n")
        listed = ("--archives-list", str(archives), *STALE)
        server = Server(self, *listed, archive=())
        self.check_all(server)
        is_up, is_denied = True, False
        # True if the last word of the store was a refusal.
        was_denied = False
        for step in range(60):
            action = draw.choice(("outage", "denial", "restart", "kill", "reload", "read"))
            if action == "outage":
                if is_up:
                    self.begin_outage()
                else:
                    self.end_outage()
                is_up = not is_up
            elif action == "denial":
                is_denied = not is_denied
            if is_up:
                self.store.lies.clear()
                if is_denied:
                    self.store.lies.set("status_403")
            if action in ("restart", "kill"):
                server.stop(signal.SIGTERM if action == "restart" else signal.SIGKILL)
                server = Server(self, *listed, archive=())
            elif action == "reload":
                server.process.send_signal(signal.SIGHUP)
            got = run(QUIRE, "-s", server.address, "-q", "--timeout", "3s", "range", "docs",
                      "3000000", "5000")
            opened = server.metric("quire_archives{state=\"open\"}") == 1
            with self.subTest(step=step, action=action, seed=SEED, up=is_up, denied=is_denied):
                if got.returncode == 0:
                    self.assertEqual(got.stdout, self.text[3_000_000:3_005_000])
                    self.assertFalse(was_denied and not is_up, server.said)
                elif not opened:
                    self.assertTrue(is_denied or was_denied or not is_up, server.said)
            if is_up and not opened and is_denied:
                was_denied = True
            elif is_up and opened and not is_denied and server.metric(
                    "quire_store_stale_archives") == 0:
                was_denied = False


class FullDiskTest(OutageCase):
    def setUp(self):
        super().setUp()
        for name in "far0", "far1":
            shutil.copytree(self.archive, self.bucket / f"{name}.quire")
        self.list = self.scratch / "archives"

    def build_large(self, *options):
        """Adds the archive `large` to the store."""
        built = run(QUIRED, "build", "--quiet", "-o", self.bucket / "large.quire", "--codec",
                    "zstd", *options, self.directory / "documents")
        self.assertEqual(built.returncode, 0, built.stderr)

    def start(self, *arguments, names=("far0", "far1", "large"), **options):
        self.list.write_text("".join(f"{name}={self.store.url}/bucket/{name}.quire\n"
                                     for name in names))
        return Server(self, "--archives-list", str(self.list), *arguments, **options)

    def read(self, server, name, *options):
        return run(QUIRE, "-s", server.address, "-q", *options, "range", name, "3000000", "5000")

    def check_others_stay(self, server, copies):
        """The archives that were open still are, with their indexes."""
        self.assertEqual(server.metric("quire_listed_archive_closings_total"), 0)
        self.assertEqual(self.copies(server), copies)
        self.store.clear()
        for name in "far0", "far1":
            got = self.read(server, name)
            self.assertEqual(got.stdout, self.text[3_000_000:3_005_000], got.stderr)
        self.assertEqual(self.store.gets("MANIFEST"), [])

    def copies(self, server):
        return {path: path.stat().st_ino for path in server.cache.glob("far*/*")}

    def test_a_full_disk_harms_no_other_archive(self):
        self.build_large("--segment-size", "64MiB")
        # The disk takes no more bytes where only the large segment has them.
        limit = 4 << 20
        program = ("import errno, os, seccomp, sys\n"
                   "rules = seccomp.SyscallFilter(seccomp.ALLOW)\n"
                   "rules.add_rule(seccomp.ERRNO(errno.ENOSPC), 'pwrite64',\n"
                   f"               seccomp.Arg(3, seccomp.GE, {limit}))\n"
                   "rules.load()\n"
                   "os.execv(sys.argv[1], sys.argv[1:])\n")
        server = self.start(archive=(), wrapper=("/usr/bin/python3", "-c", program))
        for name in "far0", "far1":
            got = self.read(server, name)
            self.assertEqual(got.stdout, self.text[3_000_000:3_005_000], got.stderr)
        copies = self.copies(server)
        got = self.read(server, "large", "--timeout", "3s")
        self.assertNotEqual(got.returncode, 0)
        server.wait_for("archive large cannot be opened")
        self.check_others_stay(server, copies)
        self.assertEqual(self.store.requests, [])
        self.assertRegex(server.said, r"large.*cannot be written: No space left on device; free "
                                      "space on the disk of --store-cache")

    def test_indexes_that_cannot_fit_close_no_other_archive(self):
        self.build_large("--segment-size", "256KiB", "--block-size", "16KiB")
        server = self.start(names=("far0", "far1"))
        for name in "far0", "far1":
            self.read(server, name)
        used = int(server.metric("quire_store_cache_bytes"))
        self.assertEqual(server.stop(), 0)
        shutil.rmtree(server.cache)
        # docs is always open: next to it there is no space for the indexes of the large one.
        server = self.start(size=str(used + (256 << 10)))
        for name in "far0", "far1":
            self.read(server, name)
        copies = self.copies(server)
        got = self.read(server, "large", "--timeout", "3s")
        self.assertNotEqual(got.returncode, 0)
        server.wait_for("archive large cannot be opened")
        self.check_others_stay(server, copies)
        self.assertRegex(server.said, r"large.quire: its indexes need .* of --store-cache, .*give it "
                                      "more")


if __name__ == "__main__":
    unittest.main(verbosity=2)
