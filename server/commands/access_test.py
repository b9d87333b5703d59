#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired token new` and `quired serve --access` from the command line, with TLS
and without."""
import datetime
import json
import pathlib
import re
import signal
import stat
import sys
import time
import unittest
import urllib.request

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
from certificates import Authority  # pylint: disable=wrong-import-position
from served_case import (PATIENCE_S, ServedCase, await_text, metrics_url,
                         run, start)  # pylint: disable=wrong-import-position


class AccessTest(ServedCase):
    def token(self, name, *arguments):
        """Returns the file of a new token, and its line."""
        path = self.directory / f"{self.id().rpartition('.')[2]}-{name}.token"
        made = run("quired", "token", "new", name, "-o", path, *arguments)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertEqual(made.stderr, "")
        return path, made.stdout

    def start(self, rules, *arguments, listen="127.0.0.1:0"):
        self.access = self.directory / f"{self.id().rpartition('.')[2]}.access"
        self.access.write_text(rules)
        server, self.said = start(
            self, f"docs={self.archive}", f"private={self.archive}", "--listen", listen,
            "--access", self.access, *arguments)
        return server, self.said.split()[-1]

    def ask(self, address, *arguments):
        return run("quire", "--server", address, *arguments)

    def test_a_token_opens_what_it_is_for(self):
        reader, line = self.token("reader", "--archives", "doc*", "--expires", "2999-01-01")
        self.assertEqual(stat.S_IMODE(reader.stat().st_mode), 0o600)
        self.assertNotIn(reader.read_text().strip().partition(".")[2], line)
        server, address = self.start(line)
        mine = ["--token-file", reader]
        listed = self.ask(address, *mine, "archives")
        self.assertIn("docs", listed.stdout, listed.stderr)
        self.assertNotIn("private", listed.stdout)
        self.assertIn("<p>page 3</p>", self.ask(address, *mine, "get", "docs", "page03").stdout)
        for encoding in "fsst", "stored", "auto":
            scanned = self.ask(address, *mine, "-e", encoding, "scan", "docs")
            self.assertEqual(scanned.returncode, 0, scanned.stderr)
        hidden = self.ask(address, *mine, "get", "private", "page03")
        absent = self.ask(address, *mine, "get", "nothing", "page03")
        self.assertEqual(hidden.returncode, 1)
        self.assertEqual(hidden.stderr, absent.stderr.replace("nothing", "private"))
        load = run("quire-loadtest", "docs", "--server", address, *mine, "--requests", "200")
        self.assertEqual(load.returncode, 0, load.stdout + load.stderr)
        refused = self.ask(address, "archives")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("no valid credentials", refused.stderr)
        # Token removed.
        self.access.write_text("")
        server.send_signal(signal.SIGHUP)
        await_text(self, server, "access: 0 identities")
        self.assertEqual(self.ask(address, *mine, "archives").returncode, 3)

    def test_a_token_is_taken_over_a_unix_socket(self):
        reader, line = self.token("reader")
        _, address = self.start(line, listen=f"unix:{self.directory}/socket")
        answer = self.ask(address, "--token-file", reader, "get", "docs", "page03")
        self.assertIn("<p>page 3</p>", answer.stdout, answer.stderr)
        self.assertIn("no valid credentials", self.ask(address, "archives").stderr)

    def test_an_expired_token_is_named_in_the_log_and_one_that_expires_soon(self):
        reader, line = self.token("reader")
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)
        log = self.directory / "expired.log"
        server, address = self.start(
            line.rstrip() + " expires=2020-01-01\n"
            + line.replace("reader", "other").rstrip() + f" expires={soon:%Y-%m-%d}\n",
            "--access-log", log)
        answer = self.ask(address, "--token-file", reader, "archives")
        self.assertIn("no valid credentials", answer.stderr)
        self.assertNotIn("EXPIRED", answer.stderr)
        server.send_signal(signal.SIGHUP)
        said = await_text(self, server, "access: identities expire soon").splitlines()[-1]
        self.assertIn("warning", said)
        self.assertIn(f"token:other at {soon:%Y-%m-%d} 00:00:00 UTC", said)
        self.assertNotIn("token:reader", said)
        server.terminate()
        self.assertEqual(server.wait(PATIENCE_S), 0)
        logged = json.loads(log.read_text().splitlines()[0])
        self.assertEqual(logged["reason"], "CREDENTIALS_EXPIRED")
        self.assertIn("token:reader", logged.values())

    def test_calls_and_bytes_of_an_identity_are_metrics(self):
        reader, line = self.token("reader")
        log = self.directory / "metrics.log"
        server, address = self.start(line, "--metrics", "127.0.0.1:0", "--access-log", log)
        url = metrics_url(self.said)
        answer = self.ask(address, "--token-file", reader, "get", "docs", "page03")
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.ask(address, "archives")
        # The last call is counted after the client has its answer.
        until = time.monotonic() + PATIENCE_S
        pattern = r'quire_identity_sent_bytes_total{identity="token:reader"} (\d+)'
        while True:
            with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
                metrics = page.read().decode()
            found = re.search(pattern, metrics)
            if found and int(found.group(1)) >= len(answer.stdout):
                break
            self.assertLess(time.monotonic(), until, metrics)
        self.assertRegex(metrics, r'quire_identity_calls_total{identity="token:reader"} [1-9]')
        self.assertEqual(len(re.findall("^quire_identity_calls_total", metrics, re.MULTILINE)), 2)
        server.terminate()
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_a_certificate_is_known_by_its_names(self):
        authority = Authority(self.directory, "access-authority")
        certificate, key = authority.sign("server")
        reader, line = self.token("reader")
        rules = line + ("certificate spiffe://example.org/crawler archives=docs rights=list,read\n"
                        "certificate lister.example.org archives=docs rights=list\n")
        _, address = self.start(rules, "--tls-cert", certificate, "--tls-key", key,
                                "--tls-client-ca", authority.pem)
        trust = ["--ca", authority.pem]
        crawler = authority.sign("crawler",
                                 "DNS:lister.example.org,URI:spiffe://example.org/crawler")
        answer = self.ask(address, *trust, "--cert", crawler[0], "--key", crawler[1], "get",
                          "docs", "page03")
        self.assertIn("<p>page 3</p>", answer.stdout, answer.stderr)
        lister = authority.sign("lister", "DNS:lister.example.org")
        mine = [*trust, "--cert", lister[0], "--key", lister[1]]
        self.assertIn("docs", self.ask(address, *mine, "archives").stdout)
        denied = self.ask(address, *mine, "get", "docs", "page03")
        self.assertIn("may be listed with these credentials, but not read", denied.stderr)
        self.assertEqual(denied.returncode, 3)
        # The common name is ignored.
        other = authority.sign("lister.example.org", "DNS:other.example.org")
        answer = self.ask(address, *trust, "--cert", other[0], "--key", other[1], "archives")
        self.assertIn("no valid credentials", answer.stderr)
        # A token needs no certificate; a wrong token with a certificate is refused.
        answer = self.ask(address, *trust, "--token-file", reader, "archives")
        self.assertIn("private", answer.stdout, answer.stderr)
        wrong = self.directory / "wrong.token"
        wrong.write_text("reader.wrong")
        wrong.chmod(0o600)
        answer = self.ask(address, *mine, "--token-file", wrong, "archives")
        self.assertEqual(answer.returncode, 3, answer.stdout)

    def test_a_token_may_need_a_certificate(self):
        authority = Authority(self.directory, "both-authority")
        certificate, key = authority.sign("both-server")
        reader, line = self.token("reader")
        rules = line.rstrip() + " certificate=spiffe://example.org/crawler\n"
        tls = ["--tls-cert", certificate, "--tls-key", key]
        server, address = self.start(rules, *tls, "--tls-client-ca", authority.pem)
        self.assertNotIn("need a client certificate", self.said)
        mine = ["--ca", authority.pem, "--token-file", reader]
        self.assertIn("no valid credentials", self.ask(address, *mine, "archives").stderr)
        for name, code in (("other", 3), ("crawler", 0)):
            signed = authority.sign(f"both-{name}", f"URI:spiffe://example.org/{name}")
            shown = ["--cert", signed[0], "--key", signed[1]]
            answer = self.ask(address, *mine, *shown, "archives")
            self.assertEqual(answer.returncode, code, answer.stderr)
            # A certificate alone is not enough.
            answer = self.ask(address, "--ca", authority.pem, *shown, "archives")
            self.assertIn("no valid credentials", answer.stderr)
        # A later rule needs none.
        self.access.write_text(line)
        server.send_signal(signal.SIGHUP)
        await_text(self, server, "access: 1 identities")
        self.assertEqual(self.ask(address, *mine, "archives").returncode, 0)
        self.start(rules, *tls)
        self.assertIn("1 identities need a client certificate, and none is asked for; give "
                      "--tls-client-ca", self.said)

    def test_the_client_refuses_secrets_that_all_users_can_read(self):
        reader, line = self.token("reader")
        _, address = self.start(line)
        readable = self.directory / "readable.token"
        readable.write_bytes(reader.read_bytes())
        readable.chmod(0o644)
        refused = self.ask(address, "--token-file", readable, "archives")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(f"{readable}: can be read by all users", refused.stderr)
        answer = self.ask(address, "--token-file", readable, "--allow-readable-secrets",
                          "archives")
        self.assertIn("docs", answer.stdout, answer.stderr)

    def test_nothing_is_readable_without_credentials(self):
        _, line = self.token("reader")
        _, address = self.start(line)
        with grpc.insecure_channel(address) as channel:
            def call(method, request):
                try:
                    return channel.unary_unary(method)(request, timeout=PATIENCE_S)
                except grpc.RpcError as error:
                    return error.code()
            for method in "ListArchives", "GetArchive", "Read", "ListDocuments", "GetSymbolTable":
                self.assertEqual(call(f"/quire.v1.Archive/{method}", b"\x0a\x04docs"),
                                 grpc.StatusCode.UNAUTHENTICATED)
            # Malformed requests do not bypass the check.
            self.assertEqual(call("/quire.v1.Archive/ListArchives", b"\xff" * 1000),
                             grpc.StatusCode.UNAUTHENTICATED)
            health = "/grpc.health.v1.Health/Check"
            self.assertEqual(call(health, b""), b"\x08\x01")
            for archive in "docs", "nothing":
                name = f"quire.v1.Archive/{archive}".encode()
                self.assertEqual(call(health, b"\x0a" + bytes([len(name)]) + name),
                                 grpc.StatusCode.NOT_FOUND)
            reflect = channel.stream_stream(
                "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
            with self.assertRaises(grpc.RpcError) as refused:
                list(reflect(iter([b"\x3a\x00"]), timeout=PATIENCE_S))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_says_what_is_wrong_with_rules(self):
        rules = self.directory / "bad.access"
        for text, reason in [("reader\n", "bad.access: line 1: must be token ID"),
                             ("\ntoken reader colour=red\n", "line 2: settings must be"),
                             ("certificate a.example.org right=read\n",
                              "the line must be: certificate NAME archives=GLOB[,GLOB]... rights="),
                             (None, "bad.access: cannot be read")]:
            rules.unlink(missing_ok=True)
            if text is not None:
                rules.write_text(text)
            refused = run("quired", "serve", self.archive, "--access", rules)
            self.assertIn(reason, refused.stderr)
            self.assertEqual(refused.returncode, 1)

    def test_makes_tokens_that_differ_and_overwrites_none(self):
        first, one = self.token("reader")
        second = run("quired", "token", "new", "reader")
        self.assertNotEqual(one, second.stdout)
        secret = second.stderr.splitlines()[1]
        self.assertRegex(secret, r"^reader\.[A-Za-z0-9_-]{43}$")
        again = run("quired", "token", "new", "reader", "-o", first)
        self.assertEqual(again.returncode, 1)
        self.assertIn("File exists", again.stderr)
        self.assertEqual(again.stdout, "")
        for arguments, reason in [(["a.b"], "a token's ID must be"),
                                  (["a", "--archives", "x y"],
                                   "--archives must have no blanks, got \"x y\""),
                                  (["a", "--archives", "x\ny"], "must have no blanks"),
                                  (["a", "--rights", "write"], "rights must be"),
                                  (["a", "--expires", "soon"], "expires must be"),
                                  (["a", "--expires", "2020-01-01"],
                                   "--expires must be in the future, got 2020-01-01")]:
            refused = run("quired", "token", "new", *arguments)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(reason, refused.stderr)
            self.assertEqual(refused.stdout, "")


if __name__ == "__main__":
    unittest.main()
