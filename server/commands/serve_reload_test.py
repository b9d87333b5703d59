#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests changes that `quired serve` applies on SIGHUP, its directory of archives, and
damaged archives."""
import os
import pathlib
import re
import shutil
import signal
import tempfile
import time
import unittest
import urllib.request

from served_case import PATIENCE_S, ServedCase, await_text, metrics_url, run, start

HERE = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]


class ServeReloadTest(ServedCase):
    def setUp(self):
        self.directory /= self.id().rpartition(".")[2]
        self.directory.mkdir()
        self.archives = self.directory / "archives"
        self.archives.mkdir()
        self.config = self.directory / "serve.toml"

    def copy(self, name):
        target = self.archives / f"{name}.quire"
        shutil.copytree(self.archive, target)
        return target

    def start(self, *arguments):
        """Returns the server and its messages until it listened."""
        server, said = start(self, *arguments)
        self.address = said.split()[-1]
        self.metrics = metrics_url(said)
        return server, said

    def reload(self, server, last):
        """Returns the messages after a SIGHUP, up to the line with `last`."""
        server.send_signal(signal.SIGHUP)
        return await_text(self, server, last)

    def names(self):
        listed = run("quire", "--server", self.address, "archives")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        return [name for name in ("docs", "more", "new", "old") if f"{name} " in listed.stdout]

    def metric(self, name):
        with urllib.request.urlopen(self.metrics, timeout=PATIENCE_S) as answer:
            for line in answer.read().decode().splitlines():
                if line.startswith(name + " "):
                    return float(line.split()[-1])
        return None

    def get(self, document):
        return run("quire", "--server", self.address, "get", "docs", document)

    def test_withdrawn_documents_are_read_again(self):
        rules = self.directory / "withdrawn"
        refused = run("quired", "serve", *HERE, self.archive, "--withdrawn", rules)
        self.assertEqual(refused.returncode, 1)
        self.assertIn(f"{rules}: cannot be read", refused.stderr)
        rules.write_text("docs id page01 exclude\n")
        server, _ = self.start(*HERE, self.archive, "--withdrawn", rules)
        self.assertEqual(self.names(), ["docs"])
        self.assertEqual(self.get("page00").stdout, "<p>page 0</p>\n" * 500)
        gone = self.get("page01")
        self.assertNotEqual(gone.returncode, 0)
        self.assertIn('document "page01": no such document', gone.stderr)
        rules.write_text("d* prefix page block\n")
        said = self.reload(server, "withdrawn documents: 20 documents by 1 rule")
        self.assertIn("archive docs: unchanged", said)
        self.assertIn("withdrawn by the server's operator", self.get("page00").stderr)
        rules.write_text("docs page00\n")
        said = self.reload(server, "archive docs: unchanged")
        self.assertRegex(said, f"error the file of withdrawn documents stays unchanged: {rules}: "
                               "line 1: a rule must be")
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 0)
        self.assertEqual(self.metric('quire_withdrawn_documents{archive="docs"}'), 20)
        self.assertIn("withdrawn by", self.get("page00").stderr)

    def test_a_scrub_keeps_its_state(self):
        self.start(*HERE, self.archive, "--scrub-interval", "14d", "--scrub-rate", "1GiB",
                   "--state-dir", self.directory)
        completed = 'quire_scrub_last_completed_timestamp_seconds{archive="docs"}'
        while not self.metric('quire_scrubbed_bytes_total{archive="docs"}'):
            time.sleep(0.05)
        self.assertEqual(self.metric('quire_scrub_damaged_blocks{archive="docs"}'), 0)
        self.assertGreater(self.metric(completed), 1.6e9)
        self.assertEqual(self.metric("quire_scrub_interval_seconds"), 336 * 3600)
        self.assertIn("quire-scrub 2\n", (self.directory / "scrub").read_text())
        for arguments, message in [
                (["--scrub-rate", "0"], "--scrub-rate must be at least 1 byte"),
                (["--scrub-interval", "100ms"], "--scrub-interval: must be a time from 1s to"),
                (["--scrub-interval", "1h", "--state-dir", self.directory / "none"],
                 "none: cannot open the directory"),
                (["--state-dir", self.directory],
                 "--state-dir has no effect without --scrub-interval; give both"),
                (["--access-log-key", self.directory / "key"],
                 "--access-log-key has no effect without --access-log")]:
            refused = run("quired", "serve", *HERE, self.archive, *arguments)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(message, refused.stderr)

    def test_a_directory_is_looked_at_again(self):
        old = self.copy("old")
        server, _ = self.start(*HERE, self.archive, "--archives-dir", self.archives)
        self.assertEqual(self.names(), ["docs", "old"])
        self.copy("new")
        said = self.reload(server, "archive old: unchanged")
        self.assertIn("archive new: added, 20 documents", said)
        self.assertEqual(self.names(), ["docs", "new", "old"])
        shutil.rmtree(old)
        said = self.reload(server, "archive new: unchanged")
        self.assertIn("archive old: removed; calls that read it continue", said)
        self.assertEqual(self.names(), ["docs", "new"])
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)
        # A clash of names, and a missing directory, leave everything unchanged.
        self.copy("docs")
        said = self.reload(server, "archive new: unchanged")
        self.assertIn('two archives are named "docs"', said)
        self.assertIn("the configuration stays unchanged", said)
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 0)
        shutil.rmtree(self.archives / "docs.quire")
        self.reload(server, "archive new: unchanged")
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)
        self.archives.rename(self.directory / "moved")
        said = self.reload(server, "archive docs: unchanged")
        self.assert_kept(said, "cannot list: No such file or directory; 1 archive from")
        self.assertEqual(self.names(), ["docs", "new"])

    def assert_kept(self, said, reason):
        self.assertRegex(said, f"error --archives-dir: .*{re.escape(reason)}")
        self.assertRegex(said, "stays? open: mount it again")
        self.assertNotIn("removed", said)
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 0)

    def other_device(self):
        """Returns a new directory on another device than the archives."""
        for place in ("/dev/shm", "/tmp", "/var/tmp", "/run", os.getcwd()):
            if os.access(place, os.W_OK) and os.stat(place).st_dev != os.stat(self.archives).st_dev:
                return pathlib.Path(self.enterContext(
                    tempfile.TemporaryDirectory(prefix="quire-reload-", dir=place)))
        return self.skipTest("all directories that can be written are on one device")

    def test_an_unmounted_directory_removes_nothing(self):
        self.copy("old")
        self.copy("new")
        # The mount point, and the files that the mount hides.
        place = self.directory / "place"
        place.symlink_to(self.archives)
        hidden = self.directory / "hidden"
        hidden.mkdir()
        self.config.write_text(f'archives-dir = "{place}"\nquota = "calls=1000"\n')
        server, _ = self.start(*HERE, self.archive, "--config", self.config)
        place.unlink()
        place.symlink_to(hidden)
        said = self.reload(server, "archive docs: unchanged")
        self.assert_kept(said, f"{place} holds no archives; 2 archives from")
        self.assertEqual(self.names(), ["docs", "new", "old"])
        read = run("quire", "--server", self.address, "get", "old", "page01")
        self.assertEqual((read.returncode, read.stdout[:13]), (0, "<p>page 1</p>"), read.stderr)
        # Again: the kept archives are known.
        self.assert_kept(self.reload(server, "archive docs: unchanged"), "2 archives from")
        place.unlink()
        place.symlink_to(self.archives)
        said = self.reload(server, "archive old: unchanged")
        self.assertNotIn("error", said)
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)
        # The change is intended.
        place.unlink()
        self.config.write_text(f'archives-dir = "{place}"\nallow-fewer-archives = true\n')
        said = self.reload(server, "archive docs: unchanged")
        self.assertIn("archive old: removed", said)
        self.assertNotIn("needs a restart", said)
        self.assertEqual(self.names(), ["docs"])
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)

    def test_another_device_takes_no_archive_away(self):
        self.copy("old")
        self.copy("new")
        other = self.other_device()
        shutil.copytree(self.archive, other / "more.quire")
        place = self.directory / "place"
        place.symlink_to(self.archives)
        self.config.write_text(f'archives-dir = "{place}"\n')
        server, _ = self.start(*HERE, self.archive, "--config", self.config)
        place.unlink()
        place.symlink_to(other)
        said = self.reload(server, "archive docs: unchanged")
        self.assert_kept(said, f"{place} is on another device than before; 2 archives from")
        self.assertEqual(self.names(), ["docs", "new", "old"])
        self.config.write_text(f'archives-dir = "{place}"\nallow-fewer-archives = true\n')
        self.reload(server, "archive docs: unchanged")
        self.assertEqual(self.names(), ["docs", "more"])
        # The device is known from now on.
        self.config.write_text(f'archives-dir = "{place}"\n')
        said = self.reload(server, "archive more: unchanged")
        self.assertNotIn("error", said)
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)

    def test_a_directory_may_be_empty(self):
        server, said = self.start(*HERE, "--archives-dir", self.archives)
        self.assertIn(f"warning --archives-dir {self.archives} holds no archives", said)
        self.assertEqual(self.names(), [])
        self.copy("new")
        self.reload(server, "archive new: added")
        self.assertEqual(self.names(), ["new"])

    def test_names_must_differ_at_the_start(self):
        self.copy("docs")
        refused = run("quired", "serve", *HERE, self.archive, "--archives-dir", self.archives)
        self.assertIn('two archives are named "docs"', refused.stderr)
        self.assertEqual(refused.returncode, 2)
        refused = run("quired", "serve", *HERE, "--archives-dir", self.directory / "absent")
        self.assertIn("--archives-dir: ", refused.stderr)
        self.assertEqual(refused.returncode, 1)

    def test_configuration_is_read_again(self):
        more = self.copy("more")
        self.config.write_text(f'memory = "300MiB"\n[archives]\ndocs = "{self.archive}"\n')
        server, _ = self.start(*HERE, "--config", self.config, "--drain-timeout", "9s")
        self.assertEqual(self.names(), ["docs"])
        self.config.write_text(
            f'memory = "310MiB"\nquota = "calls=100"\ndrain-timeout = 3\nstore-requests = 7\n'
            f'[archives]\ndocs = "{self.archive}"\nmore = "archives/{more.name}"\n')
        said = self.reload(server, "archive docs: unchanged")
        self.assertIn("archive more: added", said)
        self.assertIn(f"warning {self.config}: memory changed from 300MiB to 310MiB: needs a restart",
                      said)
        self.assertIn("store-requests changed from its default to 7: needs a restart", said)
        # The command line takes precedence, before and after.
        self.assertNotIn("drain-timeout", said)
        self.assertNotIn("listen", said)
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)
        # Added again; with the omitted archive the setting is removed.
        self.config.write_text(f'memory = "300MiB"\n[archives]\nmore = "archives/{more.name}"\n')
        said = self.reload(server, "archive more: unchanged")
        self.assertIn("archive docs: removed", said)
        self.assertNotIn("needs a restart", said)
        self.assertEqual(self.names(), ["more"])

    def test_a_broken_configuration_changes_nothing(self):
        self.config.write_text(f'[archives]\ndocs = "{self.archive}"\n')
        server, _ = self.start(*HERE, "--config", self.config)
        for text, reason in [("quota = \"calls=0\"\n", "--quota: calls must be"),
                             ("lisen = 1\nquota =\n", "serve.toml:2: "),
                             ("lisen = 1\n", 'serve.toml:1: unknown key "lisen"'),
                             ("skip-broken = 3\n", '"skip-broken" must be true or false'),
                             ("memory = \"lots\"\n", "--memory: ")]:
            with self.subTest(text):
                self.config.write_text(f'{text}[archives]\nmore = "{self.archive}"\n')
                said = self.reload(server, "archive docs: unchanged")
                self.assertIn(reason, said)
                self.assertIn("the configuration stays unchanged", said)
                self.assertEqual(self.names(), ["docs"])
                self.assertEqual(self.metric("quire_last_reload_succeeded"), 0)
        self.config.unlink()
        said = self.reload(server, "archive docs: unchanged")
        self.assertIn("the configuration stays unchanged", said)
        self.config.write_text(f'[archives]\ndocs = "{self.archive}"\n')
        self.reload(server, "archive docs: unchanged")
        self.assertEqual(self.metric("quire_last_reload_succeeded"), 1)

    def test_the_log_level_changes(self):
        self.config.write_text('log-level = "info"\n')
        server, _ = self.start(*HERE, self.archive, "--config", self.config)
        self.config.write_text('log-level = "error"\n')
        reloaded_at = self.metric("quire_last_reload_timestamp_seconds")
        server.send_signal(signal.SIGHUP)
        while self.metric("quire_last_reload_timestamp_seconds") == reloaded_at:
            pass
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)
        said = server.stderr.read()
        self.assertIn("SIGHUP", said)
        self.assertNotIn("stopped", said)

    def test_broken_archives_are_left_out(self):
        broken = [self.copy("new"), self.copy("old")]
        for path in broken:
            os.truncate(path / "segment-00000000", 100)
        self.config.write_text('archives-dir = "archives"\n')
        arguments = [*HERE, self.archive, "--config", self.config]
        refused = run("quired", "serve", *arguments)
        self.assertEqual(refused.returncode, 1)
        for path in broken:
            self.assertIn(f"{path.name}/segment-00000000", refused.stderr.splitlines()[-1])
        self.config.write_text('archives-dir = "archives"\nskip-broken = true\n')
        # The configuration alone has no archive that can be served.
        checked = run("quired", "check-config", self.config)
        self.assertEqual(checked.returncode, 2)
        for path in broken:
            self.assertIn(f"{path.name}/segment-00000000", checked.stderr)
        server, said = self.start(*arguments)
        self.assertIn("error archive new is left out: ", said)
        self.assertIn("error archive old is left out: ", said)
        self.assertEqual(self.names(), ["docs"])
        self.assertEqual(self.metric('quire_archives{state="broken"}'), 2)
        shutil.rmtree(broken[0])
        self.copy("new")
        said = self.reload(server, "archive docs: unchanged")
        self.assertIn("archive new: added", said)
        self.assertIn("archive old is left out: ", said)
        self.assertEqual(self.metric('quire_archives{state="broken"}'), 1)


if __name__ == "__main__":
    unittest.main()
