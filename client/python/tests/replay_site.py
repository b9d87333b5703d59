# SPDX-License-Identifier: Apache-2.0
"""A site with what browsers ask for in various ways, and a crawl of it by warcio."""
import gzip
import http.server
import io
import urllib.parse
import warnings

import brotli
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from replay_crawl import OTHER_PAGES, SITE, chunked, make_picture
from replay_crawl import STYLE as PLAIN_STYLE
from replay_film import make_film

PAGE = b"""<!doctype html><html><head><title>A crawled page</title>
<link rel="stylesheet" href="/style.css"></head>
<body><p id="text">Text of the page</p><p id="script">no script</p><p id="moved">no redirect</p>
<p id="missing">nothing missing</p><p id="brotli">no brotli</p><p id="posted">no answer</p>
<p id="headed">no page</p><div id="box"></div><img id="picture" src="picture.png">
<img id="again" src="again.png"><video id="film" src="film.webm" muted preload="auto"></video>
<iframe id="latin" src="/latin"></iframe><script src="script.js"></script>
<script src="brotli.js"></script></body></html>"""
STYLE = PLAIN_STYLE + b"p { width: 400px }\niframe { width: 200px; height: 100px; border: 0 }\n"
SCRIPT = b"""const show = (name, text) => { document.getElementById(name).textContent = text; };
show("script", "script ran");
fetch("/moved").then((r) => r.text()).then((text) => show("moved", text));
fetch("/missing").then((r) => r.text().then((text) => show("missing", r.status + " " + text)));
fetch("/headed").then((r) => r.text()).then((text) => show("headed", text));
fetch("/search", {method: "POST", headers: {"Content-Type": "application/x-www-form-urlencoded"},
                  body: "q=cats"}).then((r) => r.text()).then((text) => show("posted", text));"""
LATIN = "<body style='margin: 0'>caf\u00e9 \u00fcber</body>"
# What the scripts of the page show.
SHOWN = {"text": "Text of the page", "script": "script ran", "moved": "arrived by redirect",
         "missing": "404 is gone", "brotli": "brotli ran", "headed": "the page, not its head",
         "posted": "found cats"}
FORM = ("Content-Type", "application/x-www-form-urlencoded")


def answers():
    """(method, name, body of the request, status, headers, body) of each capture."""
    def text(name, status, kind, body, *headers, method="GET", asked=b""):
        fields = [("Content-Type", kind), *headers]
        if ("Transfer-Encoding", "chunked") not in headers:
            # pywb answers ranges of what has a length.
            fields.append(("Content-Length", str(len(body))))
        return method, name, asked, status, fields, body

    return [
        text("", "200 OK", "text/html; charset=utf-8", chunked(gzip.compress(PAGE)),
             ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")),
        text("style.css", "200 OK", "text/css", STYLE),
        text("script.js", "200 OK", "text/javascript", SCRIPT),
        text("brotli.js", "200 OK", "text/javascript", brotli.compress(
            b'document.getElementById("brotli").textContent = "brotli ran";'), ("Content-Encoding", "br")),
        text("picture.png", "200 OK", "image/png", make_picture()),
        text("film.webm", "200 OK", "video/webm", make_film(), ("Accept-Ranges", "bytes")),
        text("latin", "200 OK", "text/html; charset=iso-8859-1", LATIN.encode("latin-1")),
        text("moved", "302 Found", "text/plain", b"", ("Location", SITE + "arrived")),
        text("arrived", "200 OK", "text/plain", b"arrived by redirect"),
        text("missing", "404 Not Found", "text/plain", b"is gone"),
        text("headed", "200 OK", "text/plain", b"", method="HEAD"),
        text("headed", "200 OK", "text/plain", b"the page, not its head"),
        text("search", "200 OK", "text/plain", b"found dogs", method="POST", asked=b"q=dogs"),
        text("search", "200 OK", "text/plain", b"found cats", method="POST", asked=b"q=cats")]


class CrawledSite(http.server.BaseHTTPRequestHandler):
    """The site of the crawl. Its pages are asked for as of a proxy or of a host."""

    def answer(self):
        name = urllib.parse.urlsplit(self.path).path[1:]
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        for method, found, request, status, headers, body in answers():
            if (self.command, "picture.png" if name == "again.png" else name, asked) == (
                    method, found, request):
                break
        else:
            status, headers, body = "404 Not Found", [], b""
        # Browsers accept brotli by https only.
        if ("Content-Encoding", "br") in headers:
            body = brotli.decompress(body)
            headers = [headers[0], ("Content-Length", str(len(body)))]
        self.protocol_version = "HTTP/1.1"
        self.send_response_only(int(status[:3]))
        for field in headers:
            self.send_header(*field)
        if not any(field[0] in ("Transfer-Encoding", "Content-Length") for field in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_HEAD = answer

    def log_message(self, *_):
        pass


def write_site(path):
    """Writes a .warc.gz as a crawler that uses warcio does."""
    with open(path, "wb") as file, warnings.catch_warnings():
        # warcio leaves its buffers to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        writer = WARCWriter(file, gzip=True)
        date = {"WARC-Date": "2021-06-15T12:30:45Z"}

        def response(name, status, headers, body):
            return writer.create_warc_record(
                SITE + name, "response", payload=io.BytesIO(body), warc_headers_dict=dict(date),
                http_headers=StatusAndHeaders(status, headers, protocol="HTTP/1.1"))

        for method, name, asked, status, headers, body in answers():
            record = response(name, status, headers, body)
            if method == "GET":
                writer.write_record(record)
                continue
            request = writer.create_warc_record(
                SITE + name, "request", payload=io.BytesIO(asked), warc_headers_dict=dict(date),
                http_headers=StatusAndHeaders(
                    f"{method} /{name} HTTP/1.1", [FORM, ("Content-Length", str(len(asked)))],
                    is_http_request=True))
            writer.write_request_response_pair(request, record)
        picture = response("picture.png", "200 OK", [("Content-Type", "image/png")],
                           make_picture())
        writer.ensure_digest(picture, block=False, payload=True)
        writer.write_record(writer.create_revisit_record(
            SITE + "again.png", picture.rec_headers.get_header("WARC-Payload-Digest"),
            SITE + "picture.png", date["WARC-Date"],
            http_headers=StatusAndHeaders("200 OK", [("Content-Type", "image/png")],
                                          protocol="HTTP/1.1"),
            warc_headers_dict=dict(date)))
        for number in range(OTHER_PAGES):
            writer.write_record(response(f"other/{number}?n={number}", "200 OK",
                                         [("Content-Type", "text/html")],
                                         b"<p>page %d</p>" % number))
