#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve` with archives in an object store, end to end: a server, a store that lies as
asked, and every byte compared."""
import hashlib
import hmac
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse
import urllib.request

# deploy/bootstrap.sh installs python3-botocore.
import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.utils

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
from certificates import Authority  # noqa: E402
from live_nginx import start_nginx
from remote_case import CHUNK, PATIENCE_S, QUIRE, QUIRED, RemoteCase, Server, run
from test_level import nightly

METRICS = pathlib.Path(__file__).resolve().parents[1] / "service" / "metrics" / "METRICS.md"
KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SITE = """
  server {{
    listen 127.0.0.1:{port} {options};
    root {root};
    {settings}
  }}
"""


def signature_of(path, headers, region):
    """Returns the signature of a GET by the documentation of Signature Version 4."""
    signed = re.search(r"SignedHeaders=([^,]*)", headers["authorization"])[1].split(";")
    date = headers["x-amz-date"]
    lines = "".join(f"{name}:{headers[name]}\n" for name in signed)
    canonical = "\n".join(("GET", path, "", lines, ";".join(signed),
                           hashlib.sha256(b"").hexdigest()))
    scope = f"{date[:8]}/{region}/s3/aws4_request"
    text = "\n".join(("AWS4-HMAC-SHA256", date, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()))
    key = b"AWS4" + SECRET.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


def botocore_signature_of(url, headers, region):
    credentials = botocore.credentials.Credentials(KEY, SECRET, headers.get("x-amz-security-token"))
    auth = botocore.auth.S3SigV4Auth(credentials, "s3", region)
    signed = re.search(r"SignedHeaders=([^,]*)", headers["authorization"])[1].split(";")
    request = botocore.awsrequest.AWSRequest(
        "GET", url, headers={name: headers[name] for name in signed})
    request.context["timestamp"] = headers["x-amz-date"]
    text = auth.string_to_sign(request, auth.canonical_request(request))
    return auth.signature(text, request)


class RemoteArchiveTest(RemoteCase):
    def test_reads_every_byte(self):
        server = Server(self)
        opening = len(self.store.requests)
        # MANIFEST, dictionary and symbol table, then at most two for each segment.
        segments = len(list(self.archive.glob("segment-*")))
        self.assertGreater(segments, 2)
        self.assertLessEqual(opening, 3 + 2 * segments)
        self.check_range(server, 3_000_000, 5_000)
        self.assertLessEqual(len(self.store.requests) - opening, 2)
        self.check_all(server)
        self.store.clear()
        self.check_all(server)
        self.assertEqual(self.store.requests, [])
        self.assertLessEqual(server.resident_bytes(), 256 << 20)
        self.assertGreater(server.metric("quire_store_cache_hits_total"), 0)
        self.assertGreater(server.metric('quire_store_requests_total{outcome="good"}'), opening)
        for request in self.store.requests:
            self.assertRegex(request.headers.get("range", "bytes=0-1"), r"^bytes=\d+-\d+$")
        with urllib.request.urlopen(server.metrics_url, timeout=PATIENCE_S) as page:
            exported = set(re.findall(r"^# TYPE (quire_store_\w+) (\w+)$", page.read().decode(),
                                      re.MULTILINE))
        documented = re.findall(r"^\| `(quire_store_\w+)` \| (\w+) \|", METRICS.read_text(),
                                re.MULTILINE)
        self.assertEqual(set(documented), exported)
        self.assertEqual(server.stop(), 0)

    def test_restart_with_a_warm_cache_makes_one_conditional_get(self):
        server = Server(self)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        self.store.clear()
        server = Server(self)
        self.assertEqual([(request.path, request.status) for request in self.store.requests],
                         [("/bucket/docs.quire/MANIFEST", 304)])
        self.check_all(server)
        self.assertEqual(len(self.store.requests), 1)
        # Also after a kill.
        server.stop(signal.SIGKILL)
        server = Server(self)
        self.check_all(server)
        self.assertEqual(len(self.store.requests), 2)

    def test_cache_stays_below_its_size(self):
        size = 2 << 20
        server = Server(self, size=str(size))
        for _ in range(2):
            self.check_all(server)
        draw = random.Random(2)
        for _ in range(20):
            self.check_range(server, draw.randrange(len(self.text) - 1000), 1000)
            self.assertLessEqual(server.cache_bytes(), size + CHUNK)
        self.assertLessEqual(server.metric("quire_store_cache_bytes"), size)
        self.assertGreater(server.metric("quire_store_cache_evictions_total"), 0)
        # The indexes stay.
        self.assertEqual(server.stop(), 0)
        self.store.clear()
        Server(self, size=str(size))
        self.assertEqual([request.status for request in self.store.requests], [304])

    def test_refuses_a_cache_that_is_too_small_for_the_indexes(self):
        server = Server(self, size="64KiB", expect_start=False)
        self.assertEqual(server.process.wait(PATIENCE_S), 1)
        server.reader.join(PATIENCE_S)
        self.assertIn("give --store-cache more", server.said)

    def test_refuses_file_systems_without_holes(self):
        # As ext3, NFS before 4.2 and vfat answer.
        program = ("import errno, os, seccomp, sys\n"
                   "rules = seccomp.SyscallFilter(seccomp.ALLOW)\n"
                   "rules.add_rule(seccomp.ERRNO(errno.EOPNOTSUPP), 'fallocate')\n"
                   "rules.load()\n"
                   "os.execv(sys.argv[1], sys.argv[1:])\n")
        refused = run("/usr/bin/python3", "-c", program, QUIRED, "serve",
                      f"docs={self.store.url}/bucket/docs.quire", "--listen", "127.0.0.1:0",
                      "--store-cache", f"{self.scratch}/cache:64MiB", text=True)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("does not support holes in files", refused.stderr)
        self.assertEqual(self.store.requests, [])

    def test_damaged_chunks_are_read_again(self):
        server = Server(self)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        for path in server.cache.rglob("segment-*"):
            with path.open("r+b") as file:
                file.seek(CHUNK + 5_000)
                file.write(b"damage" * 100)
        self.store.clear()
        server = Server(self)
        self.check_all(server)
        self.assertGreater(server.metric("quire_store_cache_damaged_total"), 0)
        self.assertEqual(server.metric("quire_block_failures_total"), 0)
        self.assertEqual(server.stop(), 0)
        # Their copies were corrected.
        self.store.clear()
        server = Server(self)
        self.check_all(server)
        self.assertEqual([request.status for request in self.store.requests], [304])

    def test_damaged_indexes_are_read_again(self):
        server = Server(self)
        self.assertEqual(server.stop(), 0)
        for path in server.cache.rglob("segment-*"):
            with path.open("r+b") as file:
                file.seek(-2_000, os.SEEK_END)
                file.write(b"damage")
        server = Server(self)
        self.check_all(server)

    def test_store_that_lies_gives_errors_and_never_wrong_bytes(self):
        server = Server(self)
        before = server.metric('quire_store_requests_total{outcome="refused"}')
        for lie in "ignore_range", "shift_range", "wrong_length", "no_etag", "wrong_total":
            with self.subTest(lie=lie):
                self.store.lies.set(lie)
                got = server.range(5_000_000, 10_000)
                self.assertNotEqual(got.returncode, 0)
                self.assertEqual(got.stdout, b"")
                self.store.lies.clear()
        self.assertGreater(server.metric('quire_store_requests_total{outcome="refused"}'), before)
        self.check_all(server)

    def test_short_failures_are_retried(self):
        server = Server(self)
        for i, lie in enumerate(("status_503", "status_429", "status_500", "truncate", "close")):
            with self.subTest(lie=lie):
                self.store.lies.set(lie, 3)
                self.check_range(server, 1_000_000 * (i + 1), 3_000)
                self.store.lies.clear()
        self.assertGreaterEqual(server.metric("quire_store_retries_total"), 10)
        self.check_all(server)

    def test_long_failures_are_answered_with_an_error(self):
        server = Server(self)
        self.store.lies.set("status_503")
        self.store.clear()
        got = server.range(4_000_000, 100)
        self.assertNotEqual(got.returncode, 0)
        self.assertIn(b"could not be read", got.stderr)
        self.assertIn("the store answered 503 (tried 4 times)", server.said)
        self.assertEqual(len(self.store.gets("segment")) % 4, 0)
        self.store.lies.clear()
        self.check_all(server)

    def build_rows(self, text):
        """Builds bucket/rows.quire, whose documents have this text and a field "name" of several
        chunks. Returns the names."""
        draw = random.Random(1)
        names = ["".join(draw.choices("abcdefgh", k=200)) for _ in range(1000)]
        rows = self.scratch / "rows.jsonl"
        rows.write_text("".join(json.dumps({"id": f"row{n:04}", "name": name, "t": text}) + "\n"
                                for n, name in enumerate(names)))
        built = run(QUIRED, "build", "--quiet", "-o", self.bucket / "rows.quire", "--split", "lines",
                    "--id-field", "id", "--text-field", "t", "--field", "name", rows)
        self.assertEqual(built.returncode, 0, built.stderr)
        return names

    def test_fields_of_empty_documents_are_read_from_the_store(self):
        names = self.build_rows("")
        server = Server(self, archive=f"rows={self.store.url}/bucket/rows.quire")
        listed = run(QUIRE, "-s", server.address, "ls", "--json", "--fields", "name", "rows")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertEqual([json.loads(line)["fields"]["name"]
                          for line in listed.stdout.splitlines()], names)

    def test_a_scrub_reads_fields_from_the_store(self):
        self.build_rows("text")
        options = {"archive": f"rows={self.store.url}/bucket/rows.quire"}
        whole = "archive rows: scrubbed: 0 damaged blocks or indexes"
        server = Server(self, "--scrub-interval", "1h", **options)
        server.wait_for(whole)
        self.assertEqual(server.stop(), 0)

        def damage(directory):
            (path,) = directory.rglob("segment-*")
            with path.open("r+b") as file:
                file.seek(path.stat().st_size // 2)
                file.write(b"damage")

        # The local copy is replaced.
        damage(server.cache)
        server = Server(self, "--scrub-interval", "1h", **options)
        server.wait_for(whole)
        self.assertGreater(server.metric("quire_store_cache_damaged_total"), 0)
        self.assertEqual(server.stop(), 0)
        damage(self.bucket / "rows.quire")
        server = Server(self, "--scrub-interval", "1h", cache="other", **options)
        server.wait_for("archive rows: scrubbed: 1 damaged block or index")
        self.assertIn("container data: checksum", server.said)
        self.assertEqual(server.metric('quire_scrub_damaged_blocks{archive="rows"}'), 1)

    def test_rules_with_filters_read_fields_from_the_store(self):
        names = self.build_rows("text")
        rules = self.scratch / "withdrawn"
        rules.write_text('rows where name prefix "a" block\n')
        server = Server(self, "--withdrawn", rules,
                        archive=f"rows={self.store.url}/bucket/rows.quire")

        def expect_listed(first):
            listed = run(QUIRE, "-s", server.address, "ls", "rows")
            self.assertEqual(listed.stdout.decode().split(),
                             [f"row{n:04}" for n, name in enumerate(names) if name[0] not in first])

        expect_listed("a")
        rules.write_text("")
        server.stop()
        # Nothing is served while the store withholds the fields.
        server = Server(self, "--withdrawn", rules, cache="other",
                        archive=f"rows={self.store.url}/bucket/rows.quire")
        expect_listed("")
        rules.write_text('rows where name prefix "b" block\n')
        self.store.lies.set("status_503", path="segment")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("archive rows: all of its documents are withheld until a reload can match")
        self.assertIn("segment-00000000: the fields of document 0 cannot be read: ", server.said)
        expect_listed("abcdefgh")
        self.assertNotEqual(run(QUIRE, "-s", server.address, "get", "rows", "row0000").returncode, 0)
        self.store.lies.clear()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("rules of withdrawal: taken up from", count=2)
        expect_listed("b")

    @nightly
    def test_a_store_that_does_not_answer_is_no_damage(self):
        server = Server(self, "--scrub-interval", "1h", "--scrub-rate", "1MiB")
        self.store.lies.set("status_503", path="segment")
        # A line at most for each second.
        server.wait_for("a read from an object store failed", count=4)
        damaged = 'quire_scrub_damaged_blocks{archive="docs"}'
        self.assertEqual(server.metric(damaged), 0)
        self.assertNotIn("damaged", server.said)
        self.store.lies.clear()
        server.wait_for("docs: scrubbed: 0 damaged blocks or indexes")
        self.assertEqual(server.metric(damaged), 0)

    def test_signs_requests_and_reads_credentials_again(self):
        seen = []

        def check(method, path, headers):
            seen.append(headers.get("authorization", ""))
            return None if f"Credential={KEY}/" in seen[-1] else 403

        self.store.check = check
        credentials = self.scratch / ".aws" / "credentials"
        credentials.parent.mkdir()
        credentials.write_text(f"[default]\naws_access_key_id = OLDKEY\n"
                               f"aws_secret_access_key = {SECRET}\n")
        options = {"archive": "docs=s3://bucket/docs.quire"}
        arguments = ("--store-endpoint", self.store.url, "--store-region", "eu-central-1")
        server = Server(self, *arguments, expect_start=False, **options)
        self.assertEqual(server.process.wait(PATIENCE_S), 1)
        server.reader.join(PATIENCE_S)
        self.assertIn("refuses access (403)", server.said)
        self.assertNotIn(SECRET, server.said)
        credentials.write_text(credentials.read_text().replace("OLDKEY", KEY))
        server = Server(self, *arguments, **options)
        self.assertIn("/eu-central-1/s3/aws4_request", seen[-1])
        self.check_range(server, 0, 1000)
        # Keys are rotated without a signal.
        credentials.write_text(credentials.read_text().replace(KEY, "NEWKEY"))
        self.store.check = lambda method, path, headers: (
            None if "Credential=NEWKEY/" in headers.get("authorization", "") else 403)
        self.check_all(server)

    def test_signatures_of_odd_keys(self):
        key = "a b+c:d/\u00e4~(1)&=,'/docs.quire"
        shutil.copytree(self.archive, self.bucket / key)
        environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
                       "AWS_SESSION_TOKEN": "token/+="}
        region = "eu-west-1"
        server = Server(self, "--store-endpoint", self.store.url, archive=f"docs=s3://bucket/{key}",
                        environment={**environment, "AWS_REGION": region})
        self.check_range(server, 3_000_000, 1000)
        self.assertGreater(len(self.store.requests), 5)
        for request in self.store.requests:
            found = re.search(r"Signature=(\w+)$", request.headers["authorization"])[1]
            self.assertEqual(request.headers["x-amz-security-token"], "token/+=")
            self.assertEqual(found, signature_of(request.path, request.headers, region))
            self.assertEqual(found, botocore_signature_of(
                self.store.url + request.path, request.headers, region))
            self.assertEqual(request.path, botocore.utils.percent_encode(
                urllib.parse.unquote(request.path), safe="/~"))
        self.assertNotIn(SECRET, server.said)

    def start_nginx(self, options="", settings=""):
        """Serves the bucket on the port of the store, which stops. Returns nginx's directory."""
        directory = self.scratch / "nginx"
        directory.mkdir()
        # A port that was free a moment ago.
        port = self.store.port
        self.store.stop()
        start_nginx(self, directory, SITE.format(port=port, root=self.scratch / "store",
                                                 options=options, settings=settings))
        return directory

    def test_reads_over_tls_with_a_private_authority(self):
        authority = Authority(self.scratch, "authority")
        other = Authority(self.scratch, "other")
        certificate, key = authority.sign("store")
        self.start_nginx("ssl", f"ssl_certificate {certificate}; ssl_certificate_key {key};")
        archive = f"docs=https://127.0.0.1:{self.store.port}/bucket/docs.quire"
        # The system does not know it, nor does another authority's file.
        for options in {}, {"arguments": ("--store-ca", str(other.pem))}:
            server = Server(self, *options.get("arguments", ()), archive=archive,
                            expect_start=False)
            self.assertEqual(server.process.wait(PATIENCE_S), 1)
            server.reader.join(PATIENCE_S)
            self.assertIn("certificate", server.said)
        for options in ({"arguments": ("--store-ca", str(authority.pem))},
                        {"environment": {"AWS_CA_BUNDLE": str(authority.pem)}}):
            server = Server(self, *options.get("arguments", ()), archive=archive,
                            environment=options.get("environment"))
            self.check_all(server)
            self.assertEqual(server.stop(), 0)
        for path in "missing.pem", self.archive / "MANIFEST":
            refused = run(QUIRED, "serve", archive, "--store-cache", f"{self.scratch}/c:1GiB",
                          "--store-ca", path, text=True)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn("expected a PEM file of certificates", refused.stderr)

    @nightly
    def test_reads_from_nginx(self):
        directory = self.start_nginx()
        server = Server(self)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)
        server = Server(self)
        self.check_all(server)
        text = self.replace()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("docs: replaced")
        self.assertEqual(server.scan().stdout, text)
        statuses = set(re.findall(r'" (\d+) \d+ "', (directory / "access.log").read_text()))
        self.assertLessEqual(statuses, {"200", "206", "304", "412"})

    def test_shares_gets(self):
        server = Server(self)
        self.store.delay_s = 0.3
        self.store.clear()
        # Documents of one chunk, by several clients at once.
        answers = []
        threads = [threading.Thread(target=lambda i=i: answers.append(
            server.range(3_000_000 + i, 50).stdout == self.text[3_000_000 + i:3_000_050 + i]))
                   for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [True] * 6)
        ranges = [request.headers["range"] for request in self.store.gets("segment")]
        self.assertEqual(len(ranges), len(set(ranges)), ranges)

    def test_batch_makes_one_get_a_missing_run(self):
        server = Server(self)
        self.store.clear()
        draw = random.Random(5)
        ranges = sorted((draw.randrange(len(self.text) - 500), 500) for _ in range(256))
        got = server.batch(ranges)
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(got.stdout, b"".join(self.text[a:a + b] for a, b in ranges))
        # No byte is read twice, and GETs are of at most 4 MiB.
        chunks = []
        for request in self.store.gets("segment"):
            first, last = map(int, request.headers["range"][6:].split("-"))
            self.assertLessEqual(last - first + 1, (4 << 20) + 2 * CHUNK)
            chunks += [(request.path, chunk) for chunk in range(first // CHUNK, last // CHUNK + 1)]
        self.assertEqual(len(chunks), len(set(chunks)))

    def test_batch_reads_no_wide_gaps(self):
        server = Server(self)
        self.store.clear()
        # In one segment, some 700 KB of the file apart.
        ranges = [(2_300_000, 100), (3_300_000, 100)]
        self.assertEqual(server.batch(ranges).stdout,
                         b"".join(self.text[a:a + b] for a, b in ranges))
        self.assertLess(sum(request.sent for request in self.store.gets("segment")), 200_000)

    @nightly
    def test_hedges_slow_requests(self):
        server = Server(self)
        self.store.delay_s = 0.01
        draw = random.Random(6)
        for _ in range(60):
            self.check_range(server, draw.randrange(len(self.text) - 100), 100)
        # A silent request takes until that is noticed, and is tried again; a hedge is sooner.
        # Earlier ones may have used up what hedges may be, so more than one has the chance.
        for _ in range(5):
            retries = server.metric("quire_store_retries_total")
            self.store.lies.set("stall", 1, "segment")
            while self.store.lies.left["stall"]:
                self.check_range(server, draw.randrange(len(self.text) - 100), 100)
            if server.metric("quire_store_retries_total") == retries:
                break
        else:
            self.fail("no hedge answered for a silent request")
        self.assertGreaterEqual(server.metric("quire_store_hedges_total"), 1)

    def test_full_disk_serves_without_caching(self):
        # The limit on file sizes fails writes past it, as a full disk does.
        limit = 700_000
        server = Server(self)
        subprocess.run(["prlimit", f"--pid={server.process.pid}", f"--fsize={limit}"], check=True)
        self.check_all(server)
        self.assertGreater(server.metric("quire_store_cache_bypasses_total"), 0)
        self.assertEqual(server.stop(), 0)
        self.store.clear()
        server = Server(self)
        self.check_all(server)
        self.assertGreater(len(self.store.gets("segment")), 0)

    def test_switches_to_a_new_archive(self):
        server = Server(self)
        self.check_range(server, 1_000_000, 100)
        more = self.directory / "more"
        if not more.exists():
            more.mkdir()
            (more / "last").write_bytes(random.Random(3).randbytes(100_000))
        grown = self.scratch / "grown.quire"
        shutil.copytree(self.archive, grown)
        appended = run(QUIRED, "append", "--quiet", grown, more)
        self.assertEqual(appended.returncode, 0, appended.stderr)
        for path in sorted(grown.iterdir(), key=lambda path: path.name == "MANIFEST"):
            if not (self.bucket / "docs.quire" / path.name).exists() or path.name == "MANIFEST":
                shutil.copy(path, self.bucket / "docs.quire" / path.name)
        self.store.clear()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("has grown")
        # Only what is new.
        self.assertLessEqual(len(self.store.requests), 4)
        got = server.scan()
        self.assertEqual(got.stdout, self.text + (more / "last").read_bytes())

    def test_a_reload_stays_with_the_store_and_its_copies(self):
        config = self.scratch / "quired.toml"
        config.write_text(f'store-endpoint = "{self.store.url}"\n')
        server = Server(self, "--config", config, archive="docs=s3://bucket/docs.quire")
        self.check_all(server)
        copies = sorted(server.cache.glob("docs-*"))
        self.store.clear()
        config.write_text('store-endpoint = "http://127.0.0.1:1"\n')
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("needs a restart")
        server.wait_for("archive docs: unchanged")
        self.assertEqual([(request.path, request.status) for request in self.store.requests],
                         [("/bucket/docs.quire/MANIFEST", 304)])
        self.assertEqual(sorted(server.cache.glob("docs-*")), copies)
        self.check_all(server)
        self.assertEqual(server.stop(), 0)

    def test_finds_a_replaced_archive_by_itself(self):
        for ignores in False, True:
            with self.subTest(store_ignores_if_match=ignores):
                shutil.rmtree(self.bucket / "docs.quire")
                shutil.copytree(self.archive, self.bucket / "docs.quire")
                self.store.lies.set("ignore_if_match", None if ignores else 0)
                server = Server(self, cache=f"cache{ignores}")
                text = self.replace()
                # Its GETs are refused; the new MANIFEST is found.
                got = server.range(4_000_000, 100)
                self.assertNotEqual(got.returncode, 0)
                self.assertIn(b"could not be read", got.stderr)
                server.wait_for("docs: replaced")
                self.assertEqual(server.scan().stdout, text)
                # Files that the new manifest does not name are gone.
                names = {path.name for path in (self.directory / "other.quire").iterdir()}
                left = {path.name for path in server.cache.glob("docs-*/*")}
                self.assertEqual(left, names | {"ETAGS"})
                self.assertEqual(server.stop(), 0)

    def test_finds_a_new_archive_after_it_failed_to_open(self):
        server = Server(self)
        text = self.replace()
        # As a copy to the store that is not finished, or was begun with MANIFEST.
        table = next((self.directory / "other.quire").glob("symbols-*"))
        (self.bucket / "docs.quire" / table.name).unlink()
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("the store does not have it (404)")
        shutil.copy(table, self.bucket / "docs.quire")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("docs: replaced")
        self.assertEqual(server.scan().stdout, text)

    def test_a_kill_never_pairs_a_manifest_with_the_tag_of_another(self):
        server = Server(self)
        self.assertEqual(server.stop(), 0)
        old = self.scratch / "old"
        os.rename(self.bucket / "docs.quire", old)
        (self.bucket / "docs.quire").mkdir()
        self.replace()
        # Once the new MANIFEST is in the cache, and before the opening has ended.
        self.store.lies.set("stall", path="segment")
        server = Server(self, expect_start=False)
        manifest = (self.bucket / "docs.quire" / "MANIFEST").read_bytes()
        end = time.monotonic() + PATIENCE_S
        while ([path.read_bytes() for path in server.cache.glob("docs-*/MANIFEST")] != [manifest]
               and time.monotonic() < end):
            time.sleep(0.01)
        server.stop(signal.SIGKILL)
        self.store.lies.clear()
        # The store has the old archive again, with its old ETags.
        shutil.rmtree(self.bucket / "docs.quire")
        os.rename(old, self.bucket / "docs.quire")
        self.check_all(Server(self))

    @nightly
    def test_objects_copied_again_are_found(self):
        server = Server(self)
        for path in (self.bucket / "docs.quire").glob("segment-*"):
            os.utime(path)
        got = server.range(4_000_000, 100)
        self.assertNotEqual(got.returncode, 0)
        server.wait_for("same contents in new files")
        self.check_all(server)

    def test_stops_while_the_store_is_silent(self):
        server = Server(self, "--drain-timeout", "1s")
        self.store.lies.set("stall")
        reading = threading.Thread(target=server.range, args=(3_000_000, 100))
        reading.start()
        end = time.monotonic() + PATIENCE_S
        while not [request for request in self.store.gets("segment")
                   if request.status == 206] or time.monotonic() > end:
            time.sleep(0.01)
        time.sleep(0.2)
        begun = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 1 + 2 + 5)
        reading.join()

    def test_stops_while_it_opens(self):
        self.store.lies.set("stall", path="MANIFEST")
        server = Server(self, expect_start=False)
        end = time.monotonic() + PATIENCE_S
        while not self.store.requests and time.monotonic() < end:
            time.sleep(0.01)
        begun = time.monotonic()
        self.assertEqual(server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 4)

    def test_opening_makes_one_copy_of_each_segment(self):
        self.store.lies.set("stall", path="segment")
        server = Server(self, expect_start=False)
        end = time.monotonic() + PATIENCE_S
        while not self.store.gets("segment") and time.monotonic() < end:
            time.sleep(0.01)
        files = []
        for fd in pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir():
            try:
                files.append(os.readlink(fd))
            except FileNotFoundError:
                pass
        copies = [path for path in files if str(server.cache) in path and "segment-" in path]
        self.assertEqual(len(copies), len(list(self.archive.glob("segment-*"))), copies)
        self.assertEqual(server.stop(), 0)

    def test_stopped_store_fails_the_start(self):
        self.store.stop()
        server = Server(self, expect_start=False)
        self.assertEqual(server.process.wait(PATIENCE_S), 1)
        server.reader.join(PATIENCE_S)
        self.assertIn("MANIFEST", server.said)
        self.assertIn("(tried 4 times)", server.said)

    def test_check_config(self):
        config = self.scratch / "quired.toml"
        config.write_text(f'store-cache = "{self.scratch}/cache:64MiB"\n[archives]\n'
                          f'docs = "{self.store.url}/bucket/docs.quire"\n')
        server = Server(self)
        checked = run(QUIRED, "check-config", config)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(list(server.cache.glob("trial-*")), [])
        # A second server may not use the cache.
        second = Server(self, expect_start=False)
        self.assertEqual(second.process.wait(PATIENCE_S), 1)
        second.reader.join(PATIENCE_S)
        self.assertIn("another process uses this cache", second.said)
        # Paths are relative to the file.
        config.write_text(config.read_text().replace(f"{self.scratch}/cache:", "relative:"))
        checked = run(QUIRED, "check-config", config)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertEqual(list((self.scratch / "relative").iterdir()), [])
        shutil.rmtree(self.bucket / "docs.quire")
        checked = run(QUIRED, "check-config", config)
        self.assertEqual(checked.returncode, 2)
        self.assertIn(b"does not have it (404)", checked.stderr)

    def test_usual_mistakes(self):
        for arguments, message in (
                (["docs=s3://bucket/docs.quire"], "need --store-cache DIR:SIZE"),
                (["docs=s3://bucket/docs.quire", "--store-cache", "cache"],
                 "--store-cache must be DIR:SIZE"),
                (["docs=s3:///docs.quire", "--store-cache", f"{self.scratch}/c:1GiB"],
                 "names no bucket"),
                (["docs=https://user@host/x", "--store-cache", f"{self.scratch}/c:1GiB"],
                 "credentials do not belong in a URL"),
                (["docs=https://host/x", "--store-cache", f"{self.scratch}/c:1GiB",
                  "--store-chunk", "1000"], "multiple of 4KiB"),
        ):
            with self.subTest(arguments=arguments):
                refused = run(QUIRED, "serve", *arguments, text=True)
                self.assertEqual(refused.returncode, 2, refused.stderr)
                self.assertIn(message, refused.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
