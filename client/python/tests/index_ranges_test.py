# SPDX-License-Identifier: Apache-2.0
"""The indexes of quire-web, as replay tools use them through the gateway: a range for each
capture, and a WACZ that is read in parts. Browsers are in replay_test.py.

Environment: QUIRE_HTTP is the gateway.
"""
import hashlib
import io
import json
import os
import pathlib
import random
import tempfile
import unittest
import urllib.request
import zipfile

from warcio.archiveiterator import ArchiveIterator

import quire_archive as quire
from quire_archive import web
from package_harness import LiveServer, QUIRED, SEED, build
from replay_crawl import PAGE, SITE, write_crawl
# pylint: disable=wrong-import-order
from live_gateway import LiveGateway

QUIRE_HTTP = os.environ["QUIRE_HTTP"]


def get(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.read()


class IndexRangesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.files = cls.directory / "files"
        cls.files.mkdir()
        write_crawl(cls.directory / "crawl.warc.gz")
        cls.server = cls.enterClassContext(LiveServer(QUIRED, [
            build(cls.directory / "web.quire", cls.directory / "crawl.warc.gz")]))
        with quire.connect(cls.server.address) as client:
            cls.uuid = client["web"].info().uuid
        for arguments in (["cdxj", "web", "-o", f"{cls.directory}/web.cdxj"],
                          ["wacz", "web", "--dir", str(cls.files)]):
            assert web.main([*arguments, "--server", cls.server.address]) == 0
        cls.gateway = cls.enterClassContext(LiveGateway(
            QUIRE_HTTP, cls.server.address, "--files", cls.files))

    def test_each_line_names_the_range_of_its_record(self):
        lines = (self.directory / "web.cdxj").read_text().splitlines()
        self.assertEqual(lines, sorted(lines))
        home = [line for line in lines if json.loads(line[line.index("{"):])["url"] == SITE]
        for line in [*home, *random.Random(SEED).sample(lines, 40)]:
            fields = json.loads(line[line.index("{"):])
            begin, size = int(fields["offset"]), int(fields["length"])
            found = get(f"{self.gateway.url}/v1/web@{self.uuid}/{fields['filename']}",
                        Range=f"bytes={begin}-{begin + size - 1}")
            # Before the iterator goes on, which drops the record.
            records = ArchiveIterator(io.BytesIO(found), check_digests="raise")
            record = next(records)
            self.assertEqual(record.rec_headers["WARC-Target-URI"], fields["url"])
            self.assertEqual(record.http_headers.get_statuscode(), fields["status"])
            text = record.content_stream().read()
            self.assertEqual(list(records), [])
            if line in home:
                self.assertEqual(text, PAGE)

    def test_the_wacz_is_whole_and_read_in_parts(self):
        url = f"{self.gateway.url}/files/web.wacz"
        with zipfile.ZipFile(io.BytesIO(get(url))) as whole:
            self.assertIsNone(whole.testzip())
            package = json.loads(whole.read("datapackage.json"))
            for resource in package["resources"]:
                data = whole.read(resource["path"])
                self.assertEqual(resource["hash"], f"sha256:{hashlib.sha256(data).hexdigest()}")
            name = next(each for each in whole.namelist() if each.startswith("archive/"))
            warc = whole.getinfo(name)
            pages = whole.read("pages/pages.jsonl").decode().splitlines()
        self.assertIn(SITE, [json.loads(line).get("url") for line in pages])
        self.assertEqual(warc.compress_type, zipfile.ZIP_STORED)
        space = get(f"{self.gateway.url}/v1/web/space")
        self.assertEqual(warc.file_size, len(space))
        # The local header has the name and, as a rule, an extra field.
        head = get(url, Range=f"bytes={warc.header_offset}-{warc.header_offset + 29}")
        begin = warc.header_offset + 30 + sum(
            int.from_bytes(head[at:at + 2], "little") for at in (26, 28))
        draw = random.Random(SEED)
        for _ in range(20):
            first = draw.randrange(len(space))
            last = min(len(space) - 1, first + draw.choice((0, 100, 50_000)))
            self.assertEqual(get(url, Range=f"bytes={begin + first}-{begin + last}"),
                             space[first:last + 1])


if __name__ == "__main__":
    unittest.main()
