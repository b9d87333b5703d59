#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests the subcommands of quired that read a URL where a path may stand."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from remote_case import CHUNK, PATIENCE_S, QUIRED, RemoteCase, run

KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


class RemotePathsTest(RemoteCase):
    def setUp(self):
        super().setUp()
        self.url = f"{self.store.url}/bucket/docs.quire"
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("AWS_")}
        self.environment.update({"HOME": str(self.scratch), "TMPDIR": str(self.temporary)})

    def quired(self, subcommand, *arguments, environment=None):
        done = run(QUIRED, subcommand, *arguments, "--store-chunk", str(CHUNK), text=True,
                   env={**self.environment, **(environment or {})})
        self.assertEqual(list(self.temporary.iterdir()), [])
        return done

    def test_verify_reads_every_block(self):
        whole = self.quired("verify", self.url)
        self.assertEqual(whole.returncode, 0, whole.stdout + whole.stderr)
        self.assertIn(f"{self.url}: whole: ", whole.stdout)
        self.assertGreaterEqual(sum(request.sent for request in self.store.gets("segment")),
                                sum(path.stat().st_size for path in self.archive.glob("segment*")))
        # Reads of neighbours are few requests.
        self.assertLess(len(self.store.requests), 40)

    def test_verify_within_a_small_cache(self):
        cache = self.scratch / "cache"
        whole = self.quired("verify", self.url, "--store-cache", f"{cache}:1MiB")
        self.assertEqual(whole.returncode, 0, whole.stdout + whole.stderr)
        self.assertEqual(list(cache.iterdir()), [])

    def test_verify_signs_requests_of_s3(self):
        self.store.check = lambda method, path, headers: (
            None if f"Credential={KEY}/" in headers.get("authorization", "") else 403)
        arguments = ("s3://bucket/docs.quire", "--store-endpoint", self.store.url)
        whole = self.quired("verify", *arguments, environment={"AWS_ACCESS_KEY_ID": KEY,
                                                               "AWS_SECRET_ACCESS_KEY": SECRET})
        self.assertEqual(whole.returncode, 0, whole.stdout + whole.stderr)
        refused = self.quired("verify", *arguments)
        self.assertEqual(refused.returncode, 3, refused.stdout)
        self.assertIn("refuses access (403)", refused.stderr)

    def test_verify_reports_damage_by_url(self):
        segment = self.bucket / "docs.quire" / "segment-00000001"
        with segment.open("r+b") as file:
            file.seek(100_000)
            file.write(b"damage")
        damaged = self.quired("verify", self.url)
        self.assertEqual(damaged.returncode, 1, damaged.stderr)
        self.assertIn(f"damaged: {self.url}/segment-00000001", damaged.stdout)
        self.assertIn("page0", damaged.stdout)
        segment.unlink()
        missing = self.quired("verify", self.url)
        self.assertEqual(missing.returncode, 1, missing.stdout)
        self.assertIn("segment-00000001", missing.stdout)
        (self.bucket / "docs.quire" / "MANIFEST").unlink()
        self.assertEqual(self.quired("verify", self.url).returncode, 3)

    def test_verify_calls_no_outage_damage(self):
        # Header and indexes are read first.
        self.store.check = lambda method, path, headers: (
            503 if "segment-00000002" in path and f"bytes={CHUNK}-" in headers["range"] else None)
        failed = self.quired("verify", self.url, "--json")
        self.assertEqual(failed.returncode, 3, failed.stdout)
        self.assertIn("503", failed.stdout)
        self.assertIn("while the store answers", failed.stderr)

    def test_inspect_reads_no_blocks(self):
        shown = self.quired("inspect", "--json", self.url)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        of_local = json.loads(run(QUIRED, "inspect", "--json", self.archive).stdout)
        of_url = json.loads(shown.stdout)
        # The path is a part of it.
        del of_local["memory"], of_url["memory"]
        self.assertEqual({**of_local, "archive": self.url}, of_url)
        segments = len(list(self.archive.glob("segment-*")))
        self.assertLessEqual(len(self.store.requests), 3 + 2 * segments)

    def test_repair_takes_parts_of_a_url(self):
        local = self.scratch / "local.quire"
        shutil.copytree(self.archive, local)
        with (local / "segment-00000001").open("r+b") as file:
            file.seek(100_000)
            file.write(b"damage")
        # A copy that does not answer has nothing.
        self.store.check = lambda method, path, headers: (
            503 if f"bytes={100_000 // CHUNK * CHUNK}-" in headers.get("range", "") else None)
        failed = self.quired("repair", local, "--from", self.url)
        self.assertEqual(failed.returncode, 1, failed.stdout)
        self.assertIn("repeat the command later", failed.stderr)
        self.store.check = None
        self.store.clear()
        repaired = self.quired("repair", local, "--from", self.url)
        self.assertEqual(repaired.returncode, 0, repaired.stderr)
        self.assertEqual((local / "segment-00000001").read_bytes(),
                         (self.archive / "segment-00000001").read_bytes())

    def test_recompress_equals_that_of_a_local_archive(self):
        outputs = []
        for name, archive in (("a", self.archive), ("b", self.url)):
            outputs.append(self.scratch / f"{name}.quire")
            done = self.quired("recompress", "-q", archive, "-o", outputs[-1], "--codec", "lz4")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(*({path.name: path.read_bytes() for path in output.iterdir()}
                           for output in outputs))
        self.store.check = lambda method, path, headers: (
            503 if "segment-00000002" in path and f"bytes={CHUNK}-" in headers["range"] else None)
        failed = self.quired("recompress", "-q", self.url, "-o", self.scratch / "c.quire",
                             "--codec", "lz4")
        self.assertEqual(failed.returncode, 1)
        self.assertIn(f"{self.url}/segment-00000002", failed.stderr)
        self.assertFalse((self.scratch / "c.quire").exists())

    def test_salvage_saves_what_decodes(self):
        segment = self.bucket / "docs.quire" / "segment-00000001"
        with segment.open("r+b") as file:
            file.seek(100_000)
            file.write(b"damage")
        lost = self.quired("salvage", self.url, "-o", self.scratch / "saved")
        self.assertEqual(lost.returncode, 1, lost.stderr)
        self.assertRegex(lost.stdout, rf"lost: .*\({re.escape(self.url)}/segment-00000001")
        saved = {path.name: path.read_bytes() for path in (self.scratch / "saved").iterdir()}
        self.assertIn(f"{len(saved)} documents saved", lost.stdout)
        documents = {path.name: path.read_bytes()
                     for path in (self.directory / "documents").iterdir()}
        self.assertLess(saved.items(), documents.items())
        self.assertGreater(len(saved), len(documents) - 5)
        # What a store does not send is not lost.
        self.store.check = lambda method, path, headers: (
            503 if "segment-00000002" in path and f"bytes={CHUNK}-" in headers["range"] else None)
        failed = self.quired("salvage", self.url, "-o", self.scratch / "other")
        self.assertEqual(failed.returncode, 1)
        self.assertIn("documents only seem to be lost", failed.stderr)
        self.assertFalse((self.scratch / "other").exists())

    def test_a_signal_removes_the_copy(self):
        self.store.lies.set("stall", path="segment")
        with subprocess.Popen([QUIRED, "verify", self.url], env=self.environment) as process:
            end = time.monotonic() + PATIENCE_S
            while not self.store.gets("segment"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            self.assertEqual(len(list(self.temporary.iterdir())), 1)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(PATIENCE_S), -signal.SIGTERM)
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_the_next_run_removes_what_a_killed_one_left(self):
        self.store.lies.set("stall", path="segment")
        with subprocess.Popen([QUIRED, "verify", self.url], env=self.environment) as process:
            end = time.monotonic() + PATIENCE_S
            while not self.store.gets("segment"):
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            process.kill()
            process.wait(PATIENCE_S)
        self.assertEqual(len(list(self.temporary.iterdir())), 1)
        self.store.lies.clear()
        self.assertEqual(self.quired("inspect", self.url).returncode, 0)

    def test_refuses_malformed_options(self):
        for arguments in ((self.url, "--store-cache", "1GiB"),
                          ("s3://b", "--store-endpoint", self.store.url)):
            refused = self.quired("verify", *arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("Try 'quired verify --help'", refused.stderr)


if __name__ == "__main__":
    unittest.main()
