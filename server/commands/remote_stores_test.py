#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve` with archives in stores of others. moto is installed from PyPI, pinned.

usage: remote_stores_test.py [--versitygw PROGRAM] [TEST...]

versitygw, which refuses bad signatures, runs by name only:
go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
"""
import os
import pathlib
import random
import re
import socket
import subprocess
import sys
import time
import unittest

# deploy/bootstrap.sh installs python3-botocore.
import botocore.config
import botocore.session

from remote_case import PATIENCE_S, QUIRED, RemoteCase, Server, run

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "moto_modules.txt"
KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "eu-central-1"
# Signed and encoded.
PREFIX = "a b+c/d:e~\u00e4/docs.quire"


def moto_modules():
    directory = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "python-moto"
    copy = directory / REQUIREMENTS.name
    if not copy.is_file() or copy.read_bytes() != REQUIREMENTS.read_bytes():
        subprocess.run(["rm", "-rf", directory], check=True)
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--root-user-action=ignore", "--target",
                        directory, "--only-binary", ":all:", "--requirement", REQUIREMENTS],
                       check=True)
        copy.write_bytes(REQUIREMENTS.read_bytes())
    return directory


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class StoreCase(RemoteCase):
    """A store that a subclass starts, with the archive in the bucket `crawls`."""
    environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    def start_store(self, *command, environment=None):
        """Starts a program that listens on self.port, and copies the archive there."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   env={**os.environ, **(environment or {})})
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.terminate)
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[0]} ended"
                assert time.monotonic() < end, f"{command[0]} does not listen"
                time.sleep(0.05)
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = botocore.session.Session().create_client(
            "s3", region_name=REGION, endpoint_url=self.url, aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=botocore.config.Config(s3={"addressing_style": "path"}))
        self.addCleanup(self.client.close)
        self.client.create_bucket(Bucket="crawls",
                                  CreateBucketConfiguration={"LocationConstraint": REGION})
        self.publish(self.archive)

    def publish(self, archive):
        """MANIFEST comes last."""
        for path in sorted(archive.iterdir(), key=lambda path: path.name == "MANIFEST"):
            self.client.put_object(Bucket="crawls", Key=f"{PREFIX}/{path.name}",
                                   Body=path.read_bytes())

    def serve(self, *arguments, **options):
        options.setdefault("environment", self.environment)
        return Server(self, "--store-endpoint", self.url, "--store-region", REGION, *arguments,
                      archive=f"docs=s3://crawls/{PREFIX}", **options)

    def check_store(self):
        """Every byte, a restart, a missing archive, and one that is replaced."""
        server = self.serve()
        self.check_range(server, 3_000_000, 5_000)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        server = self.serve()
        self.check_all(server)
        self.assertEqual(server.metric('quire_store_requests_total{outcome="not_modified"}'), 1)
        self.assertEqual(server.metric('quire_store_requests_total{outcome="good"}'), 0)
        self.assertEqual(server.stop(), 0)
        missing = Server(self, "--store-endpoint", self.url, "--store-region", REGION,
                         archive="docs=s3://crawls/nothing.quire", environment=self.environment,
                         expect_start=False)
        self.assertEqual(missing.process.wait(PATIENCE_S), 1)
        missing.reader.join(PATIENCE_S)
        self.assertRegex(missing.said, r"does not have it \(404\)|refuses access \(403\)")
        server = self.serve(cache="other")
        text = self.replace()
        self.publish(self.bucket / "docs.quire")
        got = server.range(4_000_000, 100)
        self.assertNotEqual(got.returncode, 0)
        server.wait_for("docs: replaced")
        self.assertEqual(server.scan().stdout, text)
        self.assertGreater(server.metric('quire_store_requests_total{outcome="changed"}'), 0)


    def quired(self, *arguments, code=0):
        done = run(QUIRED, *arguments, "--store-endpoint", self.url, "--store-region", REGION,
                   text=True, env={**os.environ, **self.environment, "TMPDIR": str(self.scratch)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stderr

    def objects(self, prefix):
        listed = self.client.list_objects_v2(Bucket="crawls", Prefix=prefix)
        return {entry["Key"][len(prefix):]:
                self.client.get_object(Bucket="crawls", Key=entry["Key"])["Body"].read()
                for entry in listed["Contents"]}

    def check_uploads(self):
        """A build, appends that replace objects, parts, multipart uploads, and one that was
        killed."""
        documents = self.directory / "documents"
        options = ("--block-size", "16KiB", "--segment-size", "2MiB", "--codec", "zstd")
        url = "s3://crawls/a b+\u00e4/new.quire"
        self.quired("build", "-q", "-o", url, *options, documents)
        self.assertEqual(self.objects(url[len("s3://crawls/"):] + "/"),
                         {path.name: path.read_bytes() for path in self.archive.iterdir()})
        self.assertIn("has an archive already",
                      self.quired("build", "-o", url, *options, documents, code=1))
        self.quired("append", "-q", url, documents / "page001")
        said = self.quired("append", url, documents / "page002")
        replaced = set(re.findall(r"(segment-\d+); a later append deletes it", said))
        self.assertGreater(len(replaced), 0)
        self.assertLess(replaced, set(self.objects(url[len("s3://crawls/"):] + "/")))
        said = self.quired("append", "--existing", "skip", "--delete-replaced", "0", url,
                           documents / "page002")
        self.assertRegex(said, r"deleted \d+ replaced object")
        left = self.objects(url[len("s3://crawls/"):] + "/")
        self.assertEqual([name for name in left if name in replaced or "replaced" in name], [])
        self.quired("verify", url)
        large = self.scratch / "large"
        large.write_bytes(random.Random(7).randbytes(40 << 20))
        key = "large.quire/segment-00000000"
        self.client.create_multipart_upload(Bucket="crawls", Key=key)
        said = self.quired("build", "-o", "s3://crawls/large.quire", "--codec", "lz4",
                           "--segment-size", "64MiB", large)
        self.assertIn("removed 1 unfinished upload", said)
        self.assertNotIn("Uploads", self.client.list_multipart_uploads(Bucket="crawls"))
        self.quired("verify", "s3://crawls/large.quire")
        for i in range(2):
            self.quired("build", "-q", "-o", f"s3://crawls/all/parts/{i}", "--like", self.archive,
                        "--first-segment", str(100 * i), documents / f"page00{i}")
        self.quired("join", "-q", "-o", "s3://crawls/all", "s3://crawls/all/parts/0",
                    "s3://crawls/all/parts/1")
        self.quired("verify", "s3://crawls/all")


class MotoTest(StoreCase):
    def test_moto(self):
        modules = moto_modules()
        self.port = free_port()
        self.start_store("/usr/bin/python3", "-m", "moto.server", "-H", "127.0.0.1", "-p",
                         str(self.port), environment={"PYTHONPATH": str(modules)})
        self.check_store()
        self.check_uploads()


class VersityTest(StoreCase):
    program = None

    def setUp(self):
        super().setUp()
        if self.program is None:
            self.skipTest("runs with --versitygw PROGRAM only")

    def test_versitygw(self):
        self.port = free_port()
        root = self.scratch / "versity"
        root.mkdir()
        self.start_store(self.program, "--port", f"127.0.0.1:{self.port}", "--region", REGION,
                         "--access", KEY, "--secret", SECRET, "posix", root)
        self.check_store()
        self.check_uploads()
        # It refuses bad signatures.
        refused = self.serve(cache="refused", expect_start=False, environment={
            **self.environment, "AWS_SECRET_ACCESS_KEY": SECRET[::-1]})
        self.assertEqual(refused.process.wait(PATIENCE_S), 1)
        refused.reader.join(PATIENCE_S)
        self.assertIn("refuses access (403)", refused.said)


if __name__ == "__main__":
    if "--versitygw" in sys.argv:
        at = sys.argv.index("--versitygw")
        VersityTest.program = sys.argv[at + 1]
        del sys.argv[at:at + 2]
    unittest.main(verbosity=2)
