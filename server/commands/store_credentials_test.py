#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests from where `quired serve` takes the credentials of s3://, against services on the loopback."""
import datetime
import http.server
import json
import os
import re
import signal
import threading
import time
import unittest
import unittest.mock
import urllib.parse

# deploy/bootstrap.sh installs python3-botocore.
import botocore.session
import botocore.utils

from remote_case import PATIENCE_S, RemoteCase, Server

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
# Another address than the store's: a proxy is in force for it.
HOST = "127.0.0.2"
ROLES = "/latest/meta-data/iam/security-credentials/"
STS_ANSWER = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult><Credentials><SessionToken>{Token}</SessionToken>
  <SecretAccessKey>{SecretAccessKey}</SecretAccessKey><Expiration>{Expiration}</Expiration>
  <AccessKeyId>{AccessKeyId}</AccessKeyId></Credentials></AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


def keys(name, lifetime_s=6 * 3600):
    expiry = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=lifetime_s)
    return {"AccessKeyId": name, "SecretAccessKey": SECRET, "Token": "TOKEN" + name,
            "Expiration": expiry.strftime("%Y-%m-%dT%H:%M:%SZ")}


class Services:
    """The metadata of an instance and of a container, and STS."""

    def __init__(self):
        self.instance = keys("INSTANCE")
        # Answered in place of everything.
        self.status = None
        self.requests = []
        services = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                services.requests.append((self.command, self.path, dict(self.headers), body))
                status, text = services.answer(self.command, self.path, self.headers, body)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_PUT = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        self.url = f"http://{HOST}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, method, path, headers, body):
        if self.status is not None:
            return self.status, "<Error><Code>AccessDenied</Code></Error>"
        if (method, path) == ("PUT", "/latest/api/token"):
            good = headers["x-aws-ec2-metadata-token-ttl-seconds"] == "21600"
            return (200, "METATOKEN") if good else (400, "")
        if method == "GET" and path.startswith(ROLES):
            if headers["x-aws-ec2-metadata-token"] != "METATOKEN":
                return 401, ""
            if self.instance is None:
                return 404, "no role"
            return 200, "web-role" if path == ROLES else json.dumps(self.instance)
        if (method, path) == ("GET", "/container"):
            good = headers["Authorization"] == "Basic CONTAINERTOKEN"
            return (200, json.dumps(keys("CONTAINER"))) if good else (403, "")
        if (method, path) == ("POST", "/"):
            form = urllib.parse.parse_qs(body, strict_parsing=True)
            good = (form["Action"] == ["AssumeRoleWithWebIdentity"]
                    and form["Version"] == ["2011-06-15"] and form["RoleArn"] == ["arn:role/web"]
                    and form["WebIdentityToken"] == ["JWT/+="]
                    and re.match(r"quired-\d+$", form["RoleSessionName"][0]))
            return (200, STS_ANSWER.format(**keys("IDENTITY"))) if good else (400, "")
        return 404, ""


class StoreCredentialsTest(RemoteCase):
    def setUp(self):
        super().setUp()
        self.services = Services()
        self.addCleanup(self.services.stop)
        # Key ids that the store has seen; "" without a signature.
        self.seen = []

        def check(_method, _path, headers):
            found = re.search(r"Credential=(\w+)/", headers.get("authorization", ""))
            self.seen.append(found[1] if found else "")

        self.store.check = check
        (self.scratch / ".aws").mkdir()
        # Metadata is never asked for by a proxy.
        self.proxy = {"http_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1"}
        self.imds = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.services.url,
                     "AWS_EC2_METADATA_DISABLED": "false"}
        token = self.scratch / "container-token"
        token.write_text("Basic CONTAINERTOKEN\n")
        self.container = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.services.url}/container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)}
        token = self.scratch / "web-token"
        token.write_text("JWT/+=")
        self.identity = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(token),
                         "AWS_ROLE_ARN": "arn:role/web",
                         "AWS_ENDPOINT_URL_STS": f"{self.services.url}/",
                         # A proxy may be used.
                         "no_proxy": f"127.0.0.1,{HOST}"}

    def write(self, name, text):
        (self.scratch / ".aws" / name).write_text(text)

    def write_program(self, text):
        program = self.scratch / "give keys"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o700)
        return f"credential_process = '{program}' \"an argument\"\n"

    def serve(self, environment, **options):
        return Server(self, "--store-endpoint", self.store.url, archive="docs=s3://bucket/docs.quire",
                      environment={**self.proxy, **environment}, **options)

    def check_refused(self, environment, *texts):
        """The start fails with the texts, and no request is unsigned."""
        server = self.serve(environment, expect_start=False)
        self.assertEqual(server.process.wait(PATIENCE_S), 1)
        server.reader.join(PATIENCE_S)
        for text in texts:
            self.assertIn(text, server.said)
        for secret in SECRET, "JWT/", "CONTAINERTOKEN", "METATOKEN":
            self.assertNotIn(secret, server.said)
        self.assertEqual(self.store.requests, [])

    def wait_until(self, condition):
        end = time.monotonic() + PATIENCE_S
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_order_is_that_of_botocore(self):
        pair = "aws_access_key_id = {}\naws_secret_access_key = " + SECRET + "\n"
        process = self.write_program(
            'echo \'{"Version": 1, "AccessKeyId": "PROCESS", "SecretAccessKey": "S"}\'')
        # From the last source to the first: each is added to those before.
        sources = [
            ("iam-role", "INSTANCE", lambda: self.imds),
            ("container-role", "CONTAINER", lambda: {
                **self.container, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic CONTAINERTOKEN"}),
            ("config-file", "CONFIG", lambda: self.write("config", "[profile web]\n"
                                                         + pair.format("CONFIG"))),
            ("custom-process", "PROCESS", lambda: self.write("config", "[profile web]\n" + process
                                                             + pair.format("CONFIG"))),
            ("shared-credentials-file", "FILE", lambda: self.write(
                "credentials", "[web]\n" + pair.format("FILE"))),
            ("assume-role-with-web-identity", "IDENTITY", lambda: self.identity),
            ("env", "VARIABLE", lambda: {"AWS_ACCESS_KEY_ID": "VARIABLE",
                                         "AWS_SECRET_ACCESS_KEY": SECRET})]
        environment = {}
        for number, (method, key, add) in enumerate(sources):
            with self.subTest(method=method):
                environment.update(add() or {})
                if number == 2:
                    environment["AWS_PROFILE"] = "web"
                foreign = {name: value for name, value in os.environ.items()
                           if not name.startswith("AWS_")}
                with unittest.mock.patch.dict(
                        os.environ, {**foreign, **environment, "HOME": str(self.scratch)},
                        clear=True), unittest.mock.patch.object(
                            # Older ones know fewer addresses of the loopback.
                            botocore.utils.ContainerMetadataFetcher, "_ALLOWED_HOSTS", [HOST]):
                    found = botocore.session.Session().get_credentials()
                self.assertEqual(found.method, method)
                self.seen.clear()
                server = self.serve(environment)
                self.assertEqual(set(self.seen), {key})
                self.assertEqual(server.stop(), 0)
                self.assertNotIn(SECRET, server.said)

    def test_instance_role_is_renewed_and_kept(self):
        self.services.instance = keys("FIRST", lifetime_s=4)
        server = self.serve(self.imds)
        self.assertIn("credentials for object stores: instance role web-role, until ", server.said)
        self.assertEqual(set(self.seen), {"FIRST"})
        self.assertEqual([request[:2] for request in self.services.requests[:3]],
                         [("PUT", "/latest/api/token"), ("GET", ROLES), ("GET", ROLES + "web-role")])
        self.services.instance = keys("SECOND")
        offset = 0

        def is_renewed():
            nonlocal offset
            offset += 100_000
            self.check_range(server, offset, 1000)
            return self.seen[-1] == "SECOND"

        self.wait_until(is_renewed)
        self.assertEqual(server.metric("quire_store_credential_failures_total"), 0)
        self.services.status = 503
        for count in 1, 2:
            server.process.send_signal(signal.SIGHUP)
            server.wait_for("credentials for object stores stays unchanged: ", count)
        self.assertGreaterEqual(server.metric("quire_store_credential_failures_total"), 2)
        self.assertEqual(server.said.count("no new credentials for object stores: instance role"), 1)
        self.check_all(server)
        self.assertEqual(set(self.seen[-5:]), {"SECOND"})
        self.services.status = None
        self.services.instance = keys("THIRD")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("credentials for object stores: read again")
        self.assertEqual(server.stop(), 0)
        self.assertNotIn(SECRET, server.said)
        self.assertNotIn("METATOKEN", server.said)

    def test_public_buckets_stay_unsigned(self):
        for name, environment, count in (
                ("disabled", {**self.imds, "AWS_EC2_METADATA_DISABLED": "true"}, 0),
                ("no role", self.imds, 2)):
            with self.subTest(name):
                self.services.instance = None
                self.services.requests.clear()
                self.seen.clear()
                server = self.serve(environment, cache=name)
                self.check_range(server, 0, 1000)
                self.assertEqual(set(self.seen), {""})
                self.assertEqual(len(self.services.requests), count)
                self.assertIn("requests are not signed", server.said)
                self.assertEqual(server.stop(), 0)

    def test_archives_outside_of_s3_ask_for_nothing(self):
        server = Server(self, environment={**self.imds, **self.container})
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("credentials for object stores: read again")
        self.assertEqual(self.services.requests, [])

    def test_broken_sources_are_named(self):
        self.services.status = 403
        self.check_refused(self.identity, "web identity (role arn:role/web): ",
                           f"{self.services.url} answered 403 AccessDenied")
        self.check_refused(self.container, "container role (AWS_CONTAINER_CREDENTIALS_*): ",
                           f"{self.services.url} answered 403")
        self.check_refused({**self.identity, "AWS_WEB_IDENTITY_TOKEN_FILE": "/nowhere/token"},
                           "web identity", "/nowhere/token: does not exist")
        self.write("config", "[default]\n" + self.write_program(
            f"echo {SECRET}; echo 'no login' >&2; exit 7"))
        self.check_refused({}, "credential_process of profile default: ",
                           "ended with exit code 7: no login")


if __name__ == "__main__":
    unittest.main(verbosity=2)
