#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve` with TLS, and its clients: who is accepted, and the messages to others."""
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "loadtest" / "harness"))
from certificates import Authority  # pylint: disable=wrong-import-position
from served_case import (PATIENCE_S, PROGRAMS, ServedCase, await_text,
                         run, start)  # pylint: disable=wrong-import-position


class TlsTest(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.authority = Authority(cls.directory, "authority")
        cls.other = Authority(cls.directory, "other")
        cls.good = cls.authority.sign("good")
        cls.client = cls.authority.sign("client", "URI:spiffe://example.org/client")

    def start(self, *arguments):
        server, said = start(self, self.archive, "--listen", "127.0.0.1:0", *arguments)
        return server, said.split()[-1]

    def start_with(self, certificate, key, *arguments):
        return self.start("--tls-cert", certificate, "--tls-key", key, *arguments)

    def ask(self, address, *arguments, **environment):
        return run("quire", "--server", address, "--timeout", "30s", "archives", *arguments,
                   **environment)

    def assert_refused(self, answer, reason):
        self.assertIn(reason, answer.stderr)
        # In our own words, not gRPC's.
        self.assertTrue(answer.stderr.startswith("quire: "), answer.stderr)
        self.assertNotIn("ssl_transport", answer.stderr)
        self.assertEqual(answer.returncode, 3, answer.stderr)
        self.assertEqual(answer.stdout, "")

    def test_serves_those_who_trust_it(self):
        _, address = self.start_with(*self.good)
        port = address.rpartition(":")[2]
        answer = self.ask(address, "--ca", self.authority.pem)
        self.assertIn("docs", answer.stdout, answer.stderr)
        answer = self.ask(f"localhost:{port}", QUIRE_CA=str(self.authority.pem))
        self.assertIn("docs", answer.stdout, answer.stderr)
        self.assert_refused(self.ask(address, "--ca", self.other.pem),
                            "the server's certificate is not accepted: it has expired, or no")
        self.assert_refused(self.ask(address, "--tls"),
                            "the server's certificate is not accepted: it has expired, or no")
        self.assert_refused(self.ask(address), "does it want TLS (--tls, --ca)")
        load = run("quire-loadtest", "docs", "--server", address, "--ca", self.authority.pem,
                   "--requests", "200", "--connections", "4")
        self.assertEqual(load.returncode, 0, load.stdout + load.stderr)

    def test_a_certificate_must_have_the_name_that_was_called(self):
        certificate, key = self.authority.sign("elsewhere", "DNS:archive.example.org")
        _, address = self.start_with(certificate, key)
        self.assert_refused(self.ask(address, "--ca", self.authority.pem),
                            "it is not for the name 127.0.0.1; --tls-name says")
        answer = self.ask(address, "--ca", self.authority.pem, "--tls-name",
                          "archive.example.org")
        self.assertIn("docs", answer.stdout, answer.stderr)

    def test_a_server_without_tls_is_called_one(self):
        _, address = self.start()
        self.assert_refused(self.ask(address, "--ca", self.authority.pem),
                            "what answers there does not speak TLS")

    def test_lets_in_clients_that_its_authority_has_signed(self):
        _, address = self.start_with(*self.good, "--tls-client-ca", self.authority.pem)
        trust = ["--ca", self.authority.pem]
        answer = self.ask(address, *trust, "--cert", self.client[0], "--key", self.client[1])
        self.assertIn("docs", answer.stdout, answer.stderr)
        answer = self.ask(address, *trust, QUIRE_CERT=str(self.client[0]),
                          QUIRE_KEY=str(self.client[1]))
        self.assertIn("docs", answer.stdout, answer.stderr)
        closed = "or a certificate that it trusts (--cert, --key)?"
        self.assert_refused(self.ask(address, *trust), closed)
        stranger = self.other.sign("stranger")
        self.assert_refused(
            self.ask(address, *trust, "--cert", stranger[0], "--key", stranger[1]), closed)
        old = self.authority.sign("old", days=-1)
        self.assert_refused(self.ask(address, *trust, "--cert", old[0], "--key", old[1]), closed)

    def copy_of_good(self, name):
        paths = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        for path, source in zip(paths, self.good):
            shutil.copy(source, path)
        return paths

    def reload(self, server, text):
        """The check of the files may be faster than the signal, and reports the same."""
        server.send_signal(signal.SIGHUP)
        return await_text(self, server, text)

    def test_takes_up_a_new_certificate_and_drops_no_call(self):
        certificate, key = self.copy_of_good("renewed")
        server, address = self.start_with(certificate, key)
        # It may connect before or after the certificate changes.
        both = self.directory / "both.pem"
        both.write_text(self.authority.pem.read_text() + self.other.pem.read_text())
        load = subprocess.Popen(
            [PROGRAMS / "quire-loadtest", "docs", "--server", address, "--ca", both,
             "--requests", "3000", "--rate", "1000"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(load.stdout.close)
        for i in range(2):
            fresh = self.other.sign(f"fresh{i}")
            shutil.copy(fresh[0], certificate)
            self.reload(server, "is not the key of the certificate")
            shutil.copy(fresh[1], key)
            self.reload(server, "new connections get the certificate that expires at")
        report = load.communicate(timeout=PATIENCE_S)[0]
        self.assertEqual(load.returncode, 0, report)
        self.assertIn("docs", self.ask(address, "--ca", self.other.pem).stdout)
        self.assertEqual(self.ask(address, "--ca", self.authority.pem).returncode, 3)

    def test_sees_a_new_certificate_by_itself(self):
        certificate, key = self.copy_of_good("watched")
        server, address = self.start_with(certificate, key)
        fresh = self.other.sign("unasked")
        shutil.copy(fresh[1], key)
        await_text(self, server, "is not the key of the certificate")
        self.assertIn("docs", self.ask(address, "--ca", self.authority.pem).stdout)
        shutil.copy(fresh[0], certificate)
        await_text(self, server, "new connections get the certificate that expires at")
        self.assertIn("docs", self.ask(address, "--ca", self.other.pem).stdout)

    def test_keeps_its_certificate_when_the_new_one_is_of_no_use(self):
        certificate, key = self.copy_of_good("kept")
        server, address = self.start_with(certificate, key, "--tls-client-ca", self.authority.pem)
        mine = ["--ca", self.authority.pem, "--cert", self.client[0], "--key", self.client[1]]
        text = certificate.read_text()
        old = self.authority.sign("outdated", days=-1)
        for change, reason in [
                (lambda: certificate.write_text(text[:len(text) // 2]),
                 "must hold a certificate in PEM form"),
                (lambda: certificate.write_text(text + text[:len(text) // 2]),
                 "is malformed after its first certificate"),
                (lambda: certificate.write_text(""), "must hold a certificate in PEM form"),
                (certificate.unlink, "cannot be read: No such file or directory"),
                (lambda: (shutil.copy(old[0], certificate), shutil.copy(old[1], key)),
                 "expired at ")]:
            change()
            with self.subTest(reason=reason):
                self.reload(server, reason)
                self.assertIn("docs", self.ask(address, *mine).stdout)
        shutil.copy(self.good[0], certificate)
        shutil.copy(self.good[1], key)
        self.reload(server, "the certificate: unchanged")

    def test_refuses_to_start_with_the_reason(self):
        certificate, key = self.good
        old = self.authority.sign("expired", days=-1)
        locked = self.directory / "locked.key"
        readable = self.directory / "readable.key"
        readable.write_bytes(key.read_bytes())
        readable.chmod(0o644)
        subprocess.run(["openssl", "ec", "-in", key, "-aes256", "-passout", "pass:secret", "-out",
                        locked], check=True, capture_output=True)
        for arguments, code, reason in [
                (["--tls-cert", certificate], 2, "must be given together"),
                (["--tls-key", key], 2, "must be given together"),
                (["--tls-client-ca", certificate], 2, "must be given together"),
                (["--tls-cert", key, "--tls-key", key], 1, "must hold a certificate"),
                (["--tls-cert", certificate, "--tls-key", certificate], 1,
                 "must hold a private key"),
                (["--tls-cert", certificate, "--tls-key", locked], 1, "without a passphrase"),
                (["--tls-cert", certificate, "--tls-key", self.client[1]], 1, "is not the key of"),
                (["--tls-cert", certificate, "--tls-key", readable], 1,
                 "readable.key: can be read by all users"),
                # Then the next fault is found.
                (["--tls-cert", certificate, "--tls-key", readable, "--allow-readable-secrets",
                  "--tls-client-ca", key], 1, "must hold a certificate"),
                (["--tls-cert", certificate, "--tls-key", self.directory], 1, "cannot be read"),
                (["--tls-cert", old[0], "--tls-key", old[1]], 1, "expired at "),
                (["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", key], 1,
                 "must hold a certificate"),
                (["--tls-cert", certificate, "--tls-key", key, "--listen",
                  f"unix:{self.directory}/socket"], 2, "a unix socket needs none")]:
            with self.subTest(arguments=arguments):
                address = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
                refused = run("quired", "serve", self.archive, *address, *arguments)
                self.assertIn(reason, refused.stderr)
                self.assertEqual(refused.returncode, code, refused.stderr)


if __name__ == "__main__":
    unittest.main()
