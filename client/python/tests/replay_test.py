# SPDX-License-Identifier: Apache-2.0
"""A crawl made by warcio, replayed from an archive by pywb and by replayweb.page in Chromium;
and its .warc.gz, kept as it is, with an index that names offsets in it.

Second opinions on the indexes: cdxj-indexer, wacz validate, unzip.

Environment: QUIRE_HTTP is the gateway; REPLAY_PAGE the directory of the npm package
replaywebpage; REPLAY_CAPTURES the number of further pages of the crawl.
"""
import gzip
import http.server
import io
import json
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from PIL import Image
from selenium import webdriver
from selenium.common.exceptions import TimeoutException
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from surt import surt
from warcio.archiveiterator import ArchiveIterator

import quire_archive as quire
from quire_archive import web
from package_harness import LiveServer, QUIRED, SEED, build
from random_urls import random_url
from replay_crawl import BACKGROUND, BOX, OTHER_PAGES, PICTURE, SITE, make_picture
from replay_film import FRAME_COUNT, colour_of
from replay_site import LATIN, PAGE, SHOWN, STYLE, CrawledSite, write_site
# pylint: disable=wrong-import-order
from gateway_case import warc_record
from live_gateway import LiveGateway

QUIRE_HTTP = os.environ["QUIRE_HTTP"]
REPLAY_PAGE = pathlib.Path(os.environ["REPLAY_PAGE"])
PATIENCE_SECONDS = 90
URL_COUNT = 2000


def cdxj_indexer(warc):
    """Its sorted index of a file."""
    return subprocess.run(
        [sys.executable, "-c", "from cdxj_indexer.main import main; main()", "-s",
         "--records", "response,revisit,resource,conversion", warc],
        check=True, capture_output=True, text=True).stdout


def parsed(line):
    """Key and time of a line of an index, and its object."""
    head, _, fields = line.partition(" {")
    return head, json.loads("{" + fields)


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(url):
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
                return answer.read()
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def installed(program):
    path = shutil.which(program)
    if path is None:
        raise RuntimeError(f"there is no {program}: run deploy/bootstrap.sh replay")
    return path


def start_browser(profile, resolver="MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"):
    """By default it reaches nothing but this machine."""
    options = webdriver.ChromeOptions()
    options.binary_location = installed("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-background-networking", "--force-color-profile=srgb",
                 "--window-size=1000,1600", f"--user-data-dir={profile}",
                 "--autoplay-policy=no-user-gesture-required",
                 f"--host-resolver-rules={resolver}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options,
                            service=webdriver.ChromeService(installed("chromedriver")))


# The page by an index without keys for methods, as that of cdxj-indexer without -p, and by
# replayweb.page, which finds such answers by fields that quire-web does not write.
WITHOUT_METHODS = {name: text for name, text in SHOWN.items() if name not in ("headed", "posted")}
# Elements of the page whose screenshots are compared.
PICTURED = ("text", "box", "picture", "again", "latin")
SEEK = """
    const [second, done] = arguments, film = document.getElementById("film");
    film.addEventListener("seeked", () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [film.videoWidth, film.videoHeight];
      const context = canvas.getContext("2d");
      context.drawImage(film, 0, 0);
      done([...context.getImageData(20, 20, 1, 1).data].slice(0, 3));
    }, {once: true});
    film.currentTime = second;"""


def shown_in(browser, name):
    return browser.find_element(By.ID, name).text


def wait_for_page(browser, shown=SHOWN):
    """Waits until scripts have run, and all pictures are there."""
    found = {}

    def is_shown(_):
        found.update({name: shown_in(browser, name) for name in shown})
        found["film"] = browser.execute_script(
            "return document.readyState === 'complete'"
            " && document.getElementById('film').readyState >= 2")
        return found == {**shown, "film": True}
    try:
        WebDriverWait(browser, PATIENCE_SECONDS, ignored_exceptions=[Exception]).until(is_shown)
    except TimeoutException:
        raise AssertionError(f"the page shows {found}") from None


def pictures_of(browser):
    """Screenshots by the elements' names."""
    return {name: Image.open(io.BytesIO(
        browser.find_element(By.ID, name).screenshot_as_png)).convert("RGB") for name in PICTURED}


def colours(picture):
    """Those of the picture without its edges."""
    return {colour for _, colour in picture.crop(
        (2, 2, picture.width - 2, picture.height - 2)).getcolors()}


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class ReplayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.files = cls.directory / "files"
        cls.files.mkdir()
        kept = cls.directory / "kept"
        kept.mkdir()
        cls.warc = kept / "crawl.warc.gz"
        write_site(cls.warc)
        draw = random.Random(SEED)
        cls.urls = sorted({random_url(draw).strip() for _ in range(URL_COUNT)})
        (cls.directory / "urls.warc").write_bytes(b"".join(
            warc_record("resource", url, "2021-06-15T12:30:45Z", b"text", "text/plain")
            for url in cls.urls))
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            build(cls.directory / "urls.quire", cls.directory / "urls.warc"),
            build(cls.directory / "web.quire", cls.warc),
            # The file as it is, stored inflated.
            build(cls.directory / "kept.quire", "--inflate", "auto", kept)]))
        with quire.connect(cls.server.address) as client:
            cls.uuids = {name: client[name].info().uuid for name in ("web", "kept")}
        for arguments in (["cdxj", "web", "-o", f"{cls.directory}/web.cdxj"],
                          ["wacz", "web", "--dir", str(cls.files)]):
            assert web.main([*arguments, "--server", cls.server.address]) == 0
        cls.gateway = cls.enterClassContext(LiveGateway(
            QUIRE_HTTP, cls.server.address, "--files", cls.files, "--allow-origin", "*"))
        cls.pictures = cls.pictures_of_the_site()
        cls.browser = start_browser(cls.directory / "profile")
        cls.addClassCleanup(cls.browser.quit)

    @classmethod
    def pictures_of_the_site(cls):
        """Screenshots of the elements of the page as crawled, by their names."""
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), CrawledSite) as site:
            threading.Thread(target=site.serve_forever, daemon=True).start()
            host = urllib.parse.urlsplit(SITE).hostname
            browser = start_browser(cls.directory / "live", resolver=(
                f"MAP {host}:80 127.0.0.1:{site.server_port}, MAP * ~NOTFOUND, "
                "EXCLUDE 127.0.0.1, EXCLUDE localhost"))
            try:
                browser.get(SITE)
                wait_for_page(browser)
                return pictures_of(browser)
            finally:
                browser.quit()
                site.shutdown()

    def check_page(self, shown=SHOWN):
        """Compares the page with the one that was crawled."""
        wait_for_page(self.browser, shown)
        for name, text in shown.items():
            self.assertEqual(shown_in(self.browser, name), text)
        pictures = pictures_of(self.browser)
        for name in PICTURED:
            self.assertEqual(pictures[name].size, self.pictures[name].size, name)
            self.assertEqual(pictures[name].tobytes(), self.pictures[name].tobytes(), name)
        for name, colour in (("box", BOX), ("picture", PICTURE), ("again", PICTURE)):
            self.assertEqual(colours(pictures[name]), {colour}, name)
        self.assertIn(BACKGROUND, colours(pictures["text"]))
        self.assertIn(LATIN[LATIN.index(">") + 1:LATIN.index("</")], self.browser.execute_script(
            "return document.getElementById('latin').contentDocument.body.textContent"))

    def check_seeks(self):
        for second in (FRAME_COUNT - 5, 3, FRAME_COUNT // 2):
            found = self.browser.execute_async_script(SEEK, second + 0.5)
            self.assertLess(max(abs(a - b) for a, b in zip(found, colour_of(second))), 12,
                            (second, found))

    # --- Tests.

    def path_of(self, archive):
        """The URL that precedes the filename of an index."""
        return f"{self.gateway.url}/v1/{archive}@{self.uuids[archive]}/"

    def test_pywb(self):
        port = free_port()
        (self.directory / "kept.cdxj").write_text(cdxj_indexer(self.warc))
        collections = {
            "web": {"index_paths": f"{self.directory}/web.cdxj",
                    "archive_paths": self.path_of("web")},
            # An index that was there before the archive.
            "kept": {"index_paths": f"{self.directory}/kept.cdxj",
                     "archive_paths": self.path_of("kept") + "doc/"},
            # The index in the archive.
            "served": {"index": {"type": "cdx", "replay_url": "", "api_url":
                                 f"{self.gateway.url}/v1/web/cdx?url={{url}}"
                                 "&closest={closest}&sort=closest"},
                       "archive_paths": f"{self.gateway.url}/v1/"}}
        (self.directory / "config.yaml").write_text(json.dumps(
            {"framed_replay": False, "collections": collections}))
        with open(self.directory / "pywb.log", "wb") as log, subprocess.Popen(
                [sys.executable, "-c", "from pywb.apps.cli import wayback; wayback()", "-b",
                 "127.0.0.1", "-p", str(port), "-d", self.directory],
                cwd=self.directory, stdout=log, stderr=log) as pywb:
            try:
                wait_for(f"http://127.0.0.1:{port}/")
                for name in collections:
                    self.check_pywb(f"http://127.0.0.1:{port}/{name}/", name != "kept")
            except BaseException:
                print((self.directory / "pywb.log").read_text()[-5000:], file=sys.stderr)
                raise
            finally:
                pywb.terminate()

    def check_pywb(self, root, has_methods):
        # The bytes of the crawl, not rewritten.
        for name, body in (("", PAGE), ("style.css", STYLE), ("picture.png", make_picture()),
                           ("arrived", b"arrived by redirect")):
            found = wait_for(f"{root}20210615123045id_/{SITE}{name}")
            if found[:2] == b"\x1f\x8b":
                found = gzip.decompress(found)
            self.assertEqual(found, body, name)
        with self.assertRaises(urllib.error.HTTPError) as raised:
            urllib.request.urlopen(f"{root}2021id_/{SITE}missing")
        self.assertEqual((raised.exception.code, raised.exception.read()), (404, b"is gone"))
        self.browser.get(f"{root}2021/{SITE}")
        self.check_page(SHOWN if has_methods else WITHOUT_METHODS)
        self.check_seeks()

    def test_warcio_reads_ranges_of_a_file_that_is_kept(self):
        url = self.path_of("kept") + "doc/crawl.warc.gz"
        self.assertEqual(wait_for(url), self.warc.read_bytes())
        for line in random.Random(SEED).sample(cdxj_indexer(self.warc).splitlines(), 50):
            fields = json.loads(line[line.index("{"):])
            begin, end = int(fields["offset"]), int(fields["offset"]) + int(fields["length"])
            found = wait_for(urllib.request.Request(
                url, headers={"Range": f"bytes={begin}-{end - 1}"}))
            (record,) = ArchiveIterator(io.BytesIO(found), check_digests="raise")
            self.assertEqual(record.rec_headers["WARC-Target-URI"], fields["url"])
            record.content_stream().read()

    def test_replay_page(self):
        site = self.directory / "site"
        (site / "replay").mkdir(parents=True)
        shutil.copy(REPLAY_PAGE / "ui.js", site)
        shutil.copy(REPLAY_PAGE / "sw.js", site / "replay")
        (site / "index.html").write_text(
            '<!doctype html><script src="ui.js"></script><replay-web-page '
            f'source="{self.gateway.url}/files/web.wacz" url="{SITE}" replayBase="replay/" '
            'embed="replayonly" style="height: 700px"></replay-web-page>')
        server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *rest: QuietHandler(*rest, directory=site))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        start = time.monotonic()
        self.browser.get(f"http://127.0.0.1:{server.server_port}/index.html")
        try:
            WebDriverWait(self.browser, PATIENCE_SECONDS).until(lambda _: self.enter_frames())
            wait_for_page(self.browser, WITHOUT_METHODS)
            print(f"replayweb.page: {OTHER_PAGES:,} further captures, "
                  f"shown after {time.monotonic() - start:.1f} s")
            self.check_page(WITHOUT_METHODS)
            self.check_seeks()
        finally:
            self.browser.switch_to.default_content()

    def enter_frames(self):
        """Enters the innermost frame, through shadow roots; True if the page is in it."""
        self.browser.switch_to.default_content()
        for _ in range(5):
            # The page has a frame, too.
            if self.browser.find_elements(By.ID, "missing"):
                return True
            frame = self.browser.execute_script("""
                const find = (root) => {
                  for (const node of root.querySelectorAll("*")) {
                    if (node.tagName === "IFRAME") return node;
                    const found = node.shadowRoot && find(node.shadowRoot);
                    if (found) return found;
                  }
                  return null;
                };
                return find(document);""")
            if frame is None:
                break
            self.browser.switch_to.frame(frame)
        return bool(self.browser.find_elements(By.ID, "missing"))

    def download(self):
        path = self.directory / "whole.wacz"
        with urllib.request.urlopen(f"{self.gateway.url}/files/web.wacz") as answer:
            path.write_bytes(answer.read())
        return path

    def test_second_opinions_on_the_wacz(self):
        path = self.download()
        subprocess.run(["unzip", "-tqq", path], check=True)
        said = subprocess.run(
            [sys.executable, "-c", "from wacz.main import main; raise SystemExit(main())",
             "validate", "-f", path], check=False, capture_output=True, text=True)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertIn("validation succeeded", said.stdout.lower(), said.stderr)

    def test_cdxj_indexer_agrees(self):
        warc = self.directory / "space"
        with urllib.request.urlopen(f"{self.gateway.url}/v1/web/space") as answer:
            warc.write_bytes(answer.read())
        # It does not count the two line ends after an uncompressed record.
        expected = re.sub(r'(?<="length": ")\d+', lambda match: str(int(match[0]) + 4),
                          cdxj_indexer(warc))
        # It has the keys of URLs for answers to all methods.
        found = sorted(re.sub(r"\?__wb_method=\S+", "", line)
                       for line in (self.directory / "web.cdxj").read_text().splitlines())
        self.assertEqual(found, expected.splitlines())

    # --- The index in the archive.

    def asked(self, archive, **parameters):
        """Lines of an answer of captures."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.gateway.url}/v1/{archive}/cdx?{query}") as answer:
            return answer.read().decode().splitlines()

    def test_index_of_the_archive_is_that_of_quire_web(self):
        expected = (self.directory / "web.cdxj").read_text().splitlines()
        self.assertGreater(len(expected), OTHER_PAGES)
        found = [line.replace(f"web@{self.uuids['web']}/space", "space")
                 for line in self.asked("web", url=SITE, matchType="domain")]
        self.assertEqual(list(map(parsed, found)), list(map(parsed, expected)))
        self.assertEqual(sorted(parsed(line)[0].partition(" ")[0] for line in found
                                if "__wb_method" in line),
                         ["example,crawled)/headed?__wb_method=head",
                          "example,crawled)/search?__wb_method=post&q=cats",
                          "example,crawled)/search?__wb_method=post&q=dogs"])

    def test_keys_of_the_archive_are_those_of_surt(self):
        compared = 0
        for url in self.urls:
            try:
                key = surt(url)
            except Exception:  # pylint: disable=broad-except
                continue
            # Quire escapes bytes, takes http:/host for http://host, and ends ".." at the root.
            if (not re.fullmatch("[!-~]+", key) or re.match("https?:/[^/]", url, re.I)
                    or ".." in key):
                continue
            found = [parsed(line)[1]["url"] for line in self.asked("urls", urlkey=key)]
            self.assertIn(url, found, f"seed {SEED}: {key}")
            compared += 1
        self.assertGreater(compared, len(self.urls) // 2)


if __name__ == "__main__":
    unittest.main()
