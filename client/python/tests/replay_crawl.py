# SPDX-License-Identifier: Apache-2.0
"""A small crawl, written as a crawler that uses warcio does."""
import gzip
import io
import os
import struct
import warnings
import zlib

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

SITE = "http://crawled.example/"
BACKGROUND, BOX, PICTURE = (10, 120, 200), (250, 230, 20), (200, 30, 40)
OTHER_PAGES = int(os.environ.get("REPLAY_CAPTURES", "3000"))

PAGE = b"""<!doctype html><html><head><title>A crawled page</title>
<link rel="stylesheet" href="/style.css"></head>
<body><p id="text">Text of the page</p><p id="script">no script</p><p id="moved">no redirect</p>
<p id="missing">nothing missing</p><div id="box"></div><img id="picture" src="picture.png">
<script src="script.js"></script></body></html>"""
STYLE = (f"body {{ background: rgb{BACKGROUND}; margin: 0 }}\n#box {{ background: rgb{BOX}; "
         "width: 200px; height: 100px }\nimg { width: 200px; height: 100px }\n").encode()
SCRIPT = b"""document.getElementById("script").textContent = "script ran";
fetch("/moved").then((r) => r.text()).then((text) => {
  document.getElementById("moved").textContent = text; });
fetch("/missing").then((r) => r.text().then((text) => {
  document.getElementById("missing").textContent = r.status + " " + text; }));"""


def make_picture():
    """A PNG of one colour."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = b"".join(b"\0" + bytes(PICTURE) * 8 for _ in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def chunked(body, size=50):
    return b"".join(b"%x\r\n%s\r\n" % (len(body[at:at + size]), body[at:at + size])
                    for at in range(0, len(body), size)) + b"0\r\n\r\n"


def write_crawl(path):
    """Writes a .warc.gz as a crawler that uses warcio does."""
    with open(path, "wb") as file, warnings.catch_warnings():
        # warcio leaves its buffers to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        writer = WARCWriter(file, gzip=True)

        def add(name, status, headers, body):
            headers = StatusAndHeaders(status, headers, protocol="HTTP/1.1")
            writer.write_record(writer.create_warc_record(
                SITE + name, "response", payload=io.BytesIO(body), http_headers=headers,
                warc_headers_dict={"WARC-Date": "2021-06-15T12:30:45Z"}))

        add("", "200 OK", [("Content-Type", "text/html; charset=utf-8"),
                           ("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")],
            chunked(gzip.compress(PAGE)))
        add("style.css", "200 OK", [("Content-Type", "text/css")], STYLE)
        add("script.js", "200 OK", [("Content-Type", "text/javascript")], SCRIPT)
        add("picture.png", "200 OK", [("Content-Type", "image/png")], make_picture())
        add("moved", "302 Found", [("Location", SITE + "arrived"), ("Content-Length", "0")], b"")
        add("arrived", "200 OK", [("Content-Type", "text/plain")], b"arrived by redirect")
        add("missing", "404 Not Found", [("Content-Type", "text/plain")], b"is gone")
        for number in range(OTHER_PAGES):
            add(f"other/{number}?n={number}", "200 OK", [("Content-Type", "text/html")],
                b"<p>page %d</p>" % number)
