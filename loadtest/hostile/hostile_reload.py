#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of reloads during hostile requests, and of a directory of archives that is
unmounted. hostile_test.py runs them."""
import pathlib
import shutil
import signal
import sys
import threading
import time

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from hostile_case import BUSY_SECONDS_MAX, HostileCase
from live_server import error_of

COMING_AND_GOING = 20
RELOADS = 20
ASKING_CLIENTS = 4
TIMESTAMP = "quire_last_reload_timestamp_seconds"


class ReloadUnderRequestsTest(HostileCase):
    """A server with --archives-dir."""

    @classmethod
    def make_documents(cls):
        return [("page", b"text " * 20_000)]

    @classmethod
    def server_flags(cls):
        cls.archives = pathlib.Path(cls.directory) / "archives"
        cls.archives.mkdir()
        cls.add_archives("first")
        return ["--archives-dir", cls.archives]

    @classmethod
    def add_archives(cls, stem):
        for number in range(COMING_AND_GOING):
            shutil.copytree(cls.archive_path, cls.archives / f"{stem}-{number}.quire")

    @classmethod
    def remove_archives(cls, stem):
        for path in cls.archives.glob(f"{stem}-*.quire"):
            shutil.rmtree(path)

    def reloaded_at(self):
        return next(float(line.split()[1]) for line in self.server.metrics().splitlines()
                    if line.startswith(TIMESTAMP + " "))

    def reload(self, outcome):
        before = self.reloaded_at()
        self.server.process.send_signal(signal.SIGHUP)
        until = time.monotonic() + BUSY_SECONDS_MAX
        while self.reloaded_at() == before:
            self.assertLess(time.monotonic(), until, "the reload does not end")
        self.assertIn(f"quire_last_reload_succeeded {outcome}\n", self.server.metrics())

    def names(self):
        listed = self.archive.ListArchives(self.stubs.pb.ListArchivesRequest())
        return {archive.name for archive in listed.archives}

    def ask(self, is_done, found):
        """Requests missing archives; appends answers that are not as documented."""
        pb = self.stubs.pb
        with self.server.channel() as channel:
            archive = self.stubs.rpc.ArchiveStub(channel)
            count = 0
            while not is_done.is_set() or count == 0:
                count += 1
                try:
                    archive.GetArchive(pb.GetArchiveRequest(archive=f"nobody-{count}"),
                                       timeout=BUSY_SECONDS_MAX)
                    found.append("an archive")
                except grpc.RpcError as error:
                    reason = error_of(self.stubs, error)[1]
                    if reason != "ARCHIVE_NOT_FOUND":
                        found.append(reason)

    def test_unknown_archives_while_archives_come_and_go(self):
        is_done, found = threading.Event(), []
        clients = [threading.Thread(target=self.ask, args=(is_done, found))
                   for _ in range(ASKING_CLIENTS)]
        for client in clients:
            client.start()
        try:
            for number in range(RELOADS):
                stem = "first" if number % 2 else "second"
                self.remove_archives("second" if number % 2 else "first")
                self.add_archives(stem)
                self.reload(1)
                self.assertEqual(len(self.names()), 1 + COMING_AND_GOING)
        finally:
            is_done.set()
            for client in clients:
                client.join()
        self.assertEqual(found, [])

    def test_an_unmounted_directory(self):
        """Missing, then empty: the archives stay open, and the reload counts as failed."""
        before = self.names()
        self.assertEqual(len(before), 1 + COMING_AND_GOING)
        away = self.archives.with_name("away")
        self.archives.rename(away)
        for make in (lambda: None, self.archives.mkdir):
            make()
            self.reload(0)
            self.assertEqual(self.names(), before)
            name = max(before - {"pages"})
            self.assertEqual(self.read_range(0, 1_000, name).data, self.text[:1_000])
        self.archives.rmdir()
        away.rename(self.archives)
        self.reload(1)
        self.assertEqual(self.names(), before)
