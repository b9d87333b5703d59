#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""quire-http with curl, wget and nginx.

usage: http_programs_test.py QUIRED QUIRE_HTTP
"""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from gateway_case import GatewayCase, LARGE, run_tests
from live_gateway import PATIENCE_S, RawConnection
from live_nginx import start_nginx

SITE = """
  proxy_cache_path {directory}/cache keys_zone=quire:1m;
  server {{
    listen unix:{directory}/nginx.sock;
    merge_slashes off;
    add_header X-Cache $upstream_cache_status;
{location}
  }}
"""


class ProgramTest(GatewayCase):
    """Programs that people use."""

    def run_program(self, *command):
        assert shutil.which(command[0]), f"{command[0]}: deploy/bootstrap.sh installs it"
        done = subprocess.run([str(word) for word in command], check=False, capture_output=True,
                              timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, (command, done.stderr))
        return done.stdout

    def test_curl(self):
        data = self.documents[LARGE]
        url = self.gateway.url + self.path(LARGE)
        self.assertTrue(self.run_program("curl", "-sf", url) == data)
        self.assertEqual(self.run_program("curl", "-sf", "-r", "100-199", url), data[100:200])
        partial = self.directory / "curl.part"
        partial.write_bytes(data[:1_000_000])
        self.run_program("curl", "-sf", "-C", "-", "-o", partial, url)
        self.assertTrue(partial.read_bytes() == data)
        # A page, with its tag.
        tag, page = self.directory / "tag", self.directory / "page"
        page_url = f"{self.gateway.url}/v1/web/page/http://example.org/plain"
        for _ in range(2):
            self.run_program("curl", "-sf", "--etag-save", tag, "--etag-compare", tag, "-o", page,
                             page_url)
            self.assertTrue(page.read_bytes() == self.plain_page)

    def test_wget_resumes(self):
        for path, data in ((self.path(LARGE), self.documents[LARGE]),
                           ("/v1/web/page/http://example.org/large", self.large_page)):
            target = self.directory / "wget" / path.rpartition("/")[2]
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data[:1_234_567])
            self.run_program("wget", "-q", "-c", "-P", target.parent, self.gateway.url + path)
            self.assertTrue(target.read_bytes() == data)

    def start_nginx(self):
        """The configuration of docs/http.md; returns the path of its socket."""
        text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "http.md").read_text()
        location = re.search(r"^      location / \{\n.*?^      \}\n", text, re.DOTALL | re.MULTILINE)[0]
        for before, after in (("http://127.0.0.1:7480", self.gateway.url), ("slice 1m", "slice 64k")):
            self.assertIn(before, location)
            location = location.replace(before, after)
        directory = self.directory / "nginx"
        directory.mkdir()
        start_nginx(self, directory, SITE.format(directory=directory, location=location))
        return directory / "nginx.sock"

    def test_nginx_with_slices(self):
        nginx_socket = self.start_nginx()
        uuid = self.uuid()

        def ask(path, **headers):
            with RawConnection(str(nginx_socket)) as connection:
                return connection.ask(path, **headers)

        def answered():
            return self.gateway.metric('quire_http_requests_total{status="206"}')

        for name in LARGE, "site//twice.txt", "deep//large file#?.bin", "site/0/page-000.html":
            data = self.documents[name]
            path = self.path(name)
            cached = path.replace("/v1/docs/", f"/v1/docs@{uuid}/")
            for target in path, cached:
                reply = ask(target)
                self.assertEqual(reply.status, 200, (target, reply))
                self.assertTrue(reply.body == data, target)
                first = len(data) // 3
                part = ask(target, Range=f"bytes={first}-{first + 99_999}")
                self.assertEqual(part.status, 206, (target, part))
                self.assertTrue(part.body == data[first:first + 100_000], target)
                self.assertEqual(ask(target, Range="bytes=-5").body, data[-5:])
                self.assertEqual(ask(target, Range=f"bytes={len(data)}-").status, 416)
            # Contents named by uuid come from the cache of nginx.
            before = answered()
            reply = ask(cached)
            self.assertTrue(reply.body == data)
            self.assertEqual(reply.headers["x-cache"], "HIT")
            self.assertEqual(answered(), before)
        # Paths are not normalised on the way.
        for path in "/v1/docs/doc/site/twice.txt", "/v1/docs//doc/empty.txt":
            self.assertEqual(ask(path).status, 404, path)
        target = self.directory / "nginx.part"
        target.write_bytes(self.documents[LARGE][:777_777])
        self.run_program("curl", "-sf", "--unix-socket", nginx_socket, "-C", "-", "-o", target,
                         f"http://localhost{self.path(LARGE)}")
        self.assertTrue(target.read_bytes() == self.documents[LARGE])


if __name__ == "__main__":
    run_tests()
