# SPDX-License-Identifier: Apache-2.0
"""TLS, client certificates, tokens and unix sockets against a real server."""
import asyncio
import os
import pathlib
import subprocess
import tempfile
import unittest

import quire_archive as quire
from package_harness import LiveServer, QUIRED, build, environment
from certificates import Authority


class SecurityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = directory = pathlib.Path(
            cls.enterClassContext(tempfile.TemporaryDirectory()))
        pages = directory / "pages"
        pages.mkdir()
        (pages / "page").write_bytes(b"contents")
        cls.archive = build(directory / "docs.quire", pages)
        cls.authority = Authority(directory, "authority")
        cls.other = Authority(directory, "other")
        cls.pem, cls.key = cls.authority.sign("server")
        cls.token_file = directory / "reader.token"
        made = subprocess.run([QUIRED, "token", "new", "reader", "-o", cls.token_file],
                              check=True, capture_output=True, text=True)
        cls.access = directory / "access"
        cls.access.write_text(made.stdout)

    def serve(self, *flags):
        return LiveServer(QUIRED, [self.archive], *flags)

    def read(self, server, **options):
        with quire.connect(server, attempts_max=1, **options) as client:
            return client["docs"].read("page")

    def test_tls_and_tokens(self):
        with self.serve("--tls-cert", self.pem, "--tls-key", self.key,
                        "--access", self.access) as server:
            trusted = {"ca_file": str(self.authority.pem)}
            token = self.token_file.read_text().strip()
            for options in ({"token": token}, {"token_file": str(self.token_file)}):
                self.assertEqual(self.read(server.address, **trusted, **options), b"contents")
            named = server.address.replace("127.0.0.1", "localhost")
            self.assertEqual(self.read(named, **trusted, token=token), b"contents")
            with environment(QUIRE_CA=str(self.authority.pem), QUIRE_SERVER=server.address,
                             QUIRE_TOKEN_FILE=str(self.token_file)):
                self.assertEqual(self.read(None), b"contents")

            async def run():
                async with quire.connect_async(server.address, **trusted, token=token) as client:
                    return await client["docs"].read("page")
            self.assertEqual(asyncio.run(run()), b"contents")
            for options in (trusted, {**trusted, "token": token[:-1] + "?"}):
                with self.assertRaises(quire.CredentialsRejected) as caught:
                    self.read(server.address, **options)
                self.assertEqual(caught.exception.reason, "CREDENTIALS_REJECTED")
            for options in ({"ca_file": str(self.other.pem)},
                            {**trusted, "server_name": "example.org"}):
                with self.assertRaises(quire.QuireError) as caught:
                    self.read(server.address, **options, token=token)
                self.assertIn(caught.exception.code, ("UNAUTHENTICATED", "UNAVAILABLE"))
                self.assertEqual(caught.exception.reason, "")
            with self.assertRaises(quire.UnavailableError):
                self.read(server.address, token=token)

    def test_client_certificates(self):
        pem, key = self.authority.sign("client")
        os.chmod(key, 0o600)
        with self.serve("--tls-cert", self.pem, "--tls-key", self.key,
                        "--tls-client-ca", self.authority.pem) as server:
            options = {"ca_file": str(self.authority.pem), "cert_file": str(pem)}
            self.assertEqual(self.read(server.address, **options, key_file=str(key)), b"contents")
            with self.assertRaises(quire.UnavailableError):
                self.read(server.address, ca_file=str(self.authority.pem))
            os.chmod(key, 0o644)
            with self.assertRaisesRegex(PermissionError, "can be read by all users"):
                self.read(server.address, **options, key_file=str(key))
            self.assertEqual(self.read(server.address, **options, key_file=str(key),
                                       allow_readable_secrets=True), b"contents")

    def test_files_that_hold_something_else(self):
        page = str(self.directory / "pages" / "page")
        os.chmod(page, 0o600)
        with self.assertRaisesRegex(ValueError, "must hold certificates in PEM form"):
            self.read("127.0.0.1:9", ca_file=page)
        with self.assertRaisesRegex(ValueError, "must look like ID.SECRET"):
            self.read("127.0.0.1:9", token="two words")
        with self.assertRaises(FileNotFoundError):
            self.read("127.0.0.1:9", token_file="/nonexistent")

    def test_a_token_over_a_unix_socket(self):
        address = f"unix:{self.directory}/socket"
        with subprocess.Popen([QUIRED, "serve", self.archive, "--listen", address,
                               "--access", self.access], stderr=subprocess.PIPE,
                              text=True) as server:
            try:
                for line in server.stderr:
                    if "listening on" in line:
                        break
                self.assertEqual(self.read(address, token_file=str(self.token_file)), b"contents")
            finally:
                server.terminate()


if __name__ == "__main__":
    unittest.main()
