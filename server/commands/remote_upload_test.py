#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests builds, appends and joins whose archive goes to a bucket, and inputs from URLs, against a
store that fails as asked. Every archive is compared with the local one."""
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import time
import unittest

# deploy/bootstrap.sh installs python3-botocore.
import botocore.auth
import botocore.awsrequest
import botocore.credentials

from remote_case import HERE, PATIENCE_S, QUIRE, QUIRED, RemoteCase, Server, run

REFERENCE_READER = HERE.parents[1] / "server" / "archive" / "reference" / "reference_reader.py"
KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-central-1"
# One segment.
LARGE = ("--block-size", "16KiB", "--segment-size", "64MiB", "--codec", "lz4")
OPTIONS = ("--block-size", "16KiB", "--segment-size", "2MiB", "--codec", "zstd")


def files_of(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


class UploadCase(RemoteCase):
    def setUp(self):
        super().setUp()
        shutil.rmtree(self.bucket / "docs.quire")
        self.documents = self.directory / "documents"
        self.target = self.bucket / "a b" / "new.quire"
        self.url = "s3://bucket/a b/new.quire"
        self.temporary = self.scratch / "tmp"
        self.temporary.mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("AWS_")}
        self.environment.update({
            "HOME": str(self.scratch), "TMPDIR": str(self.temporary), "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET})
        self.store_options = ("--store-endpoint", self.store.url)

    def quired(self, *arguments, code=0):
        done = run(QUIRED, *arguments, *self.store_options, text=True, env=self.environment)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertEqual(list(self.temporary.iterdir()), [])
        return done

    def build(self, *arguments, code=0, url=None, options=OPTIONS):
        return self.quired("build", "-o", url or self.url, *options, *arguments, self.documents,
                           code=code)

    def local(self, subcommand, name, *arguments):
        done = run(QUIRED, subcommand, "-q", *arguments, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return files_of(self.scratch / name)

    def puts(self, text=""):
        return [request for request in self.store.gets(text) if request.method == "PUT"]

    def wait_for_put(self, text):
        end = time.monotonic() + PATIENCE_S
        while not self.puts(text):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)


class BuildTest(UploadCase):
    def test_equals_a_local_build(self):
        said = self.build().stderr
        self.assertIn(f"{self.url}: ", said)
        self.assertRegex(said, r"uploaded \d files")
        self.assertEqual(files_of(self.target), files_of(self.archive))
        changes = [request for request in self.store.requests
                   if request.method not in ("GET", "HEAD")]
        self.assertTrue(changes[-1].path.endswith("/MANIFEST"))
        self.assertEqual({request.headers["if-none-match"] for request in changes}, {"*"})
        # What is there is read back through the store.
        self.assertEqual(self.quired("verify", self.url).returncode, 0)
        again = self.build(code=1)
        self.assertIn("has an archive already", again.stderr)
        self.assertIn("--force", self.build("--force", code=2).stderr)

    def test_signatures_equal_those_of_botocore(self):
        self.documents = self.scratch / "large"
        self.documents.write_bytes(random.Random(7).randbytes(20 << 20))
        self.build(options=LARGE)
        methods = set()
        for request in self.store.requests:
            methods.add(request.method)
            headers = request.headers
            signed = re.search(r"SignedHeaders=([^,]*)", headers["authorization"])[1].split(";")
            copy = botocore.awsrequest.AWSRequest(
                request.method, self.store.url + request.path,
                headers={name: headers[name] for name in signed}, data=request.body)
            auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(KEY, SECRET), "s3",
                                             REGION)
            copy.context["timestamp"] = headers["x-amz-date"]
            text = auth.string_to_sign(copy, auth.canonical_request(copy))
            self.assertEqual(re.search(r"Signature=(\w+)$", headers["authorization"])[1],
                             auth.signature(text, copy), request.path)
        self.assertEqual(methods, {"GET", "HEAD", "PUT", "POST"})

    def test_large_segments_go_in_parts_and_survive_failures(self):
        self.documents = self.scratch / "large"
        self.documents.write_bytes(random.Random(7).randbytes(40 << 20))
        local = self.local("build", "local.quire", "-o", self.scratch / "local.quire", *LARGE,
                           self.documents)
        # A kill in the middle leaves nothing that readers find.
        self.store.lies.set("stall_part")
        command = (QUIRED, "build", "-q", "-o", self.url, *LARGE, self.documents,
                   *self.store_options)
        with subprocess.Popen(command, env=self.environment) as process:
            self.wait_for_put("partNumber")
            process.kill()
        self.assertFalse(self.target.exists())
        self.assertEqual(len(self.store.uploads), 1)
        self.store.clear()
        self.store.lies.clear()
        self.store.lies.set("status_503", 2, path="segment")
        self.store.lies.set("complete_error", 1, path="")
        self.store.lies.left["close"] = 1
        done = self.build(options=LARGE)
        self.assertIn("removed 1 unfinished upload", done.stderr)
        self.assertEqual(self.store.uploads, {})
        self.assertEqual(files_of(self.target), local)
        self.assertGreaterEqual(len(self.puts("partNumber")), 3)

    def test_a_completed_upload_is_compared_if_its_answer_is_lost(self):
        self.documents = self.scratch / "large"
        self.documents.write_bytes(random.Random(7).randbytes(17 << 20))
        local = self.local("build", "local.quire", "-o", self.scratch / "local.quire", *LARGE,
                           self.documents)
        self.store.lies.set("complete_late_500", 1, path="segment")
        self.build(options=LARGE)
        self.assertEqual(files_of(self.target), local)
        shutil.rmtree(self.target)
        self.store.lies.set("complete_late_500", 1, path="segment")
        self.store.lies.left["complete_taken_over"] = 1
        self.assertIn("is another file than the one to upload",
                      self.build(code=1, options=LARGE).stderr)
        self.assertFalse((self.target / "MANIFEST").exists())

    def test_answers_that_are_lost(self):
        for path in "segment-00000000", "MANIFEST":
            self.store.lies.set("lost_answer", 1, path=path)
            self.build()
            self.assertEqual(files_of(self.target), files_of(self.archive))
            shutil.rmtree(self.target)
            self.store.lies.clear()

    def test_resumes(self):
        self.store.check = lambda method, path, headers: (
            403 if method == "PUT" and "segment-00000002" in path else None)
        failed = self.build(code=1)
        self.assertIn("the store answered 403 (AccessDenied", failed.stderr)
        self.assertEqual(sorted(path.name for path in self.target.iterdir()),
                         ["segment-00000000", "segment-00000001"])
        self.store.check = None
        self.store.clear()
        said = self.build().stderr
        self.assertIn("2 were there already", said)
        self.assertEqual(self.puts("segment-00000000"), [])
        self.assertEqual(files_of(self.target), files_of(self.archive))

    def test_never_replaces_another_object(self):
        self.target.mkdir(parents=True)
        other = self.target / "segment-00000001"
        for size in 100, (self.archive / "segment-00000001").stat().st_size:
            other.write_bytes(bytes(size))
            refused = self.build(code=1)
            self.assertIn("a b/new.quire/segment-00000001: is another file", refused.stderr)
            self.assertEqual(other.read_bytes(), bytes(size))

    def test_another_writer_is_faster(self):
        def interfere(method, path, headers):
            if method == "PUT" and path.endswith("/MANIFEST"):
                (self.target / "MANIFEST").write_bytes(b"other")

        self.store.check = interfere
        self.assertIn("another writer changed the archive", self.build(code=1).stderr)
        self.assertEqual((self.target / "MANIFEST").read_bytes(), b"other")

    def test_resume_keeps_segments_on_this_machine(self):
        self.store.check = lambda method, path, headers: (
            403 if method == "PUT" and "segment-00000002" in path else None)
        command = (QUIRED, "build", "-q", "-o", self.url, *OPTIONS, "--resume", self.documents,
                   *self.store_options)
        failed = run(*command, text=True, env=self.environment)
        self.assertEqual(failed.returncode, 1)
        self.assertIn("repeat the command to resume", failed.stderr)
        self.store.check = None
        done = run(*command, text=True, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(files_of(self.target), files_of(self.archive))
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_refuses_other_urls(self):
        self.assertIn("s3://BUCKET/PREFIX",
                      self.build(url="https://127.0.0.1/x", code=2).stderr)
        self.assertIn("s3://BUCKET/PREFIX", self.build(url="s3://bucket", code=2).stderr)
        self.assertIn("two slashes after \"s3:\" for a URL, such as s3://BUCKET/PREFIX",
                      self.build(url="s3:/bucket/x", code=2).stderr)
        self.assertIn("s3://BUCKET/PREFIX",
                      self.quired("append", "https://127.0.0.1/x", self.documents, code=2).stderr)

    def test_a_usage_error_leaves_no_stage(self):
        self.assertIn("--restart is an option of --resume", self.build("--restart", code=2).stderr)


class ChangeTest(UploadCase):
    def setUp(self):
        super().setUp()
        self.halves = []
        for i in range(2):
            half = self.scratch / f"half{i}"
            half.mkdir()
            for path in sorted(self.documents.iterdir())[i * 60:(i + 1) * 60]:
                shutil.copy(path, half)
            self.halves.append(half)
        self.documents = self.halves[0]

    def test_append_equals_a_local_one(self):
        self.build()
        shutil.copytree(self.target, self.scratch / "local.quire")
        local = self.local("append", "local.quire", self.scratch / "local.quire",
                           "--segment-size", "8MiB", self.halves[1])
        said = self.quired("append", self.url, "--segment-size", "8MiB", self.halves[1]).stderr
        found = files_of(self.target)
        # Joined segments stay for readers of the old state, and are named.
        joined = set(found) - set(local)
        self.assertGreater(len(joined), 0)
        self.assertEqual({name: found[name] for name in local}, local)
        for name in joined:
            self.assertIn(f"s3://bucket/a b/new.quire/{name}; a later append deletes it", said)
        self.assertIn("if-match", self.puts("MANIFEST")[-1].headers)
        self.assertEqual(self.quired("verify", self.url).returncode, 0)
        self.store.clear()
        self.quired("append", "--existing", "skip", self.url, self.halves[1])
        self.assertEqual(self.puts(), [])

    def age(self, hours):
        """Makes all objects of the archive as old."""
        time_s = time.time() - hours * 3600
        for path in self.target.rglob("*"):
            os.utime(path, (time_s, time_s))

    def replace_segments(self):
        """Appends so that segments are joined. Returns the names of those, and the record of the
        old state. All objects are two days old then."""
        old = (self.target / "MANIFEST").read_bytes()
        said = self.quired("append", self.url, "--segment-size", "8MiB", self.halves[1]).stderr
        [record] = (self.target / "replaced").iterdir()
        self.assertEqual(record.read_bytes(), old)
        self.age(48)
        self.store.clear()
        replaced = set(re.findall(r"new\.quire/(segment-\d+); a later append", said))
        self.assertGreater(len(replaced), 1)
        return replaced, record

    def append_nothing(self, *options, code=0):
        return self.quired("append", "--existing", "skip", *options, self.url, self.halves[1],
                           code=code).stderr

    def test_replaced_objects_are_deleted_after_a_grace(self):
        self.build()
        (self.target / "segment-00000099").write_bytes(b"of a build that still runs")
        server = Server(self, "--store-endpoint", self.store.url, archive=f"docs={self.url}",
                        environment=self.environment)
        before = files_of(self.target)
        replaced, record = self.replace_segments()
        os.utime(record)
        self.append_nothing()
        self.append_nothing("--delete-replaced", "inf")
        # Readers of the old state find all of it.
        self.assertEqual(server.scan().stdout,
                         b"".join(path.read_bytes() for path in sorted(self.halves[0].iterdir())))
        after = files_of(self.target)
        self.assertEqual({**before, "MANIFEST": after["MANIFEST"]}.items() - after.items(), set())
        os.utime(record, (time.time() - 25 * 3600,) * 2)
        self.store.clear()
        said = self.append_nothing()
        self.assertIn(f"deleted {len(replaced)} replaced objects, ", said)
        self.assertEqual(set(after) - set(files_of(self.target)), replaced)
        self.assertEqual(list(record.parent.iterdir()), [])
        self.assertEqual(self.quired("verify", self.url).returncode, 0)
        # MANIFEST is read last.
        reads = [request for request in self.store.requests if request.method in ("GET", "DELETE")]
        first = next(i for i, request in enumerate(reads) if request.method == "DELETE")
        self.assertTrue(reads[first - 1].path.endswith("new.quire/MANIFEST"), reads[first - 1])

    def test_nothing_that_is_named_or_new_is_deleted(self):
        self.build()
        old = (self.target / "MANIFEST").read_bytes()
        replaced, record = self.replace_segments()
        before = files_of(self.target)
        # A change that failed after its record; a list of two pages.
        other = record.with_name("20200101T000000Z-1")
        other.write_bytes(before["MANIFEST"])
        self.age(48)
        self.store.list_page = 1
        part = self.target / "parts" / "0" / "MANIFEST"
        part.parent.mkdir(parents=True)
        part.write_bytes(old)
        said = self.append_nothing()
        self.assertIn(f"{len(replaced)} replaced objects stay, as parts name them; delete "
                      "s3://bucket/a b/new.quire/parts/0/MANIFEST", said)
        self.assertEqual(files_of(self.target), before)
        self.assertEqual(list(record.parent.iterdir()), [record])
        # An unreadable MANIFEST names anything.
        part.write_bytes(b"damage")
        self.assertIn("parts/0/MANIFEST: ", self.append_nothing(code=1))
        self.assertEqual(files_of(self.target), before)
        part.unlink()
        # Another build put it since.
        new = min(replaced)
        os.utime(self.target / new)
        self.assertIn(f"deleted {len(replaced) - 1} replaced", self.append_nothing())
        self.assertEqual(set(before) - set(files_of(self.target)), replaced - {new})

    def test_failed_deletions_are_named_and_repeated(self):
        self.build()
        replaced, record = self.replace_segments()
        before = files_of(self.target)
        first, second = sorted(replaced)[:2]
        self.store.check = lambda method, path, headers: (
            403 if method == "DELETE" and first in path else None)
        self.store.lies.set("no_time", None, path=second)
        failed = self.append_nothing(code=1)
        self.assertRegex(failed, f"not deleted: DELETE .*{first}: the store answered 403")
        self.assertRegex(failed, f"not deleted: .*{second}: the store answered Last-Modified")
        self.assertIn("2 replaced objects could not be deleted", failed)
        self.assertEqual(set(before) - set(files_of(self.target)), replaced - {first, second})
        self.assertTrue(record.exists())
        self.store.check = None
        self.store.lies.clear()
        self.assertIn("deleted 2 replaced objects", self.append_nothing())
        self.assertFalse(record.exists())
        self.assertEqual(set(before) - set(files_of(self.target)), replaced)

    def test_a_join_records_what_it_replaces(self):
        self.build()
        old = (self.target / "MANIFEST").read_bytes()
        self.quired("build", "-q", "-o", f"{self.url}/parts/1", "--like", self.url,
                    "--first-segment", "50", self.halves[1])
        said = self.quired("join", "--force", "-o", self.url, f"{self.url}/parts/1").stderr
        self.assertIn("new.quire/segment-00000000; a later append deletes it", said)
        [record] = (self.target / "replaced").iterdir()
        self.assertEqual(record.read_bytes(), old)

    def test_append_meets_another_writer(self):
        self.build()

        def interfere(method, path, headers):
            if method == "PUT" and path.endswith("/MANIFEST"):
                (self.target / "MANIFEST").write_bytes(b"other")

        self.store.check = interfere
        failed = self.quired("append", self.url, self.halves[1], code=1)
        self.assertIn("another writer changed the archive", failed.stderr)
        self.assertEqual((self.target / "MANIFEST").read_bytes(), b"other")

    def check_equals_one_build(self, inputs):
        """Compares the archive in the bucket with a build of all parts' inputs at once."""
        self.local("build", "one.quire", "-o", self.scratch / "one.quire", "--like",
                   self.scratch / "like.quire", *inputs)
        server = Server(self, f"one={self.scratch}/one.quire", "--store-endpoint", self.store.url,
                        archive=f"docs={self.url}", environment=self.environment)
        # Sizes, times, numbers and ids.
        lists = [run(QUIRE, "-s", server.address, "ls", "-l", name) for name in ("docs", "one")]
        self.assertEqual(lists[0].stdout.count(b"page"), len(inputs), lists[0].stderr)
        self.assertEqual(lists[0].stdout, lists[1].stdout)
        text = b"".join(path.read_bytes() for path in inputs)
        for name in "docs", "one":
            self.assertEqual(
                run(QUIRE, "-s", server.address, "-q", "scan", name).stdout, text)

    def test_parts_are_joined_without_their_blocks(self):
        self.local("dictionary", "like.quire", "-o", self.scratch / "like.quire", *OPTIONS[:2],
                   "--codec", "rlz", self.documents)
        parts, locals_ = [], []
        for i in range(8):
            inputs = sorted(self.documents.iterdir())[i * 7:(i + 1) * 7]
            common = ("--like", self.scratch / "like.quire", "--first-segment", str(10 * i), *inputs)
            parts.append(f"{self.url}/parts/{i}")
            self.quired("build", "-q", "-o", parts[-1], *common)
            locals_.append(self.scratch / f"part{i}")
            self.local("build", f"part{i}", "-o", locals_[-1], *common)
        self.assertFalse((self.target / "MANIFEST").exists())
        self.assertEqual(len(list(self.target.glob("dictionary-*"))), 1)
        local = self.local("join", "local.quire", "-o", self.scratch / "local.quire", *locals_)
        self.store.clear()
        self.quired("join", "-q", "-o", self.url, *parts)
        self.assertEqual([request.path.rsplit("/")[-1] for request in self.puts()], ["MANIFEST"])
        self.assertEqual(files_of(self.target), local)
        self.assertEqual(self.quired("verify", self.url).returncode, 0)
        self.check_equals_one_build(sorted(self.documents.iterdir())[:8 * 7])
        self.assertIn("has an archive already",
                      self.quired("join", "-o", self.url, *parts, code=1).stderr)
        self.quired("join", "-q", "--force", "-o", self.url, self.url, code=0)
        self.assertIn("OUT/parts/NAME",
                      self.quired("join", "-o", f"{self.url}2", *parts, code=2).stderr)
        self.assertIn("OUT/parts/NAME",
                      self.quired("join", "-o", self.scratch / "x", *parts, code=2).stderr)
        # A part's number is no other part's.
        self.assertIn("is another file", self.quired(
            "build", "-q", "-o", f"{self.url}/parts/9", "--like", self.scratch / "like.quire",
            "--first-segment", "0", self.halves[1], code=1).stderr)


class InputTest(UploadCase):
    def test_inputs_are_streamed(self):
        with tarfile.open(self.bucket / "docs.tar", "w") as tar:
            tar.add(self.documents, "docs")
        shutil.copy(self.documents / "page001", self.bucket / "one page")
        shutil.copytree(self.archive, self.bucket / "in.quire")
        for path in self.bucket.rglob("*"):
            os.utime(path, (1_700_000_000, 1_700_000_000))
        inputs = ("docs.tar", "one page", "in.quire")
        local = self.local("build", "local.quire", "-o", self.scratch / "local.quire", *OPTIONS,
                           *(self.bucket / name for name in inputs))
        self.quired("build", "-q", "-o", self.scratch / "of-urls.quire", *OPTIONS, "--store-cache",
                    f"{self.scratch}/cache:8MiB", "s3://bucket/docs.tar", "s3://bucket/one page",
                    f"{self.store.url}/bucket/in.quire")
        self.assertEqual(files_of(self.scratch / "of-urls.quire"), local)
        self.assertEqual(list((self.scratch / "cache").iterdir()), [])
        planned = self.quired("plan", "s3://bucket/one page")
        self.assertIn("s3://bucket/one page", planned.stdout)
        self.store.lies.set("no_time", None, path="one%20page")
        timeless = self.quired("build", "-o", self.scratch / "timeless.quire",
                               "s3://bucket/one page")
        self.assertIn("s3://bucket/one page: the store answered Last-Modified \"\", expected a time",
                      timeless.stderr)
        listed = run(sys.executable, REFERENCE_READER, "list", self.scratch / "timeless.quire",
                     text=True)
        self.assertEqual(listed.stdout.split()[3], "-", listed.stdout + listed.stderr)
        missing = self.quired("build", "-o", self.scratch / "x", "s3://bucket/none", code=1)
        self.assertIn("s3://bucket/none: is neither an object nor an archive", missing.stderr)


if __name__ == "__main__":
    unittest.main()
