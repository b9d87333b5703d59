# SPDX-License-Identifier: Apache-2.0
"""The metadata by which proxies route calls: quire-archive, in each call for an archive."""
import asyncio
import unittest

import quire_archive as quire
from fake_archive import DESCRIPTION, HANDLERS, LARGE
from package_harness import FakeServer
from quire_archive import _options

class ArchiveMetadataTest(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(FakeServer(**HANDLERS))
        self.server.description.update(DESCRIPTION)

    # Requests of a client, and the calls that they make.
    STEPS = [
        (lambda archive: archive.client.archives(), [("ListArchives",)]),
        (lambda archive: archive.info(), [("GetArchive", "a")]),
        (lambda archive: archive.read(3), [("Read", "a")]),
        (lambda archive: archive.read_range(100, 9), [("Read", "a")]),
        (lambda archive: archive.read(LARGE), [("Read", "a"), ("ReadStream", "a")]),
        (lambda archive: archive.get_many([1, 2]), [("BatchRead", "a")]),
        (lambda archive: archive.documents(), [("ListDocuments", "a")] * 2),
        (lambda archive: archive.stream_range(0, 9), [("GetArchive", "a"), ("Scan", "a")])]

    def check(self, perform, close):
        """`perform(request, **options)` carries out a request of a new or the same client."""
        calls = self.server.archives_of_calls
        for request, expected in self.STEPS:
            perform(request)
            self.assertEqual(calls, expected)
            calls.clear()
        # Limits are asked of the archive's server.
        for request, expected in (self.STEPS[3], self.STEPS[5]):
            close()
            perform(request)
            self.assertEqual(calls, [("ListArchives", "a"), *expected])
            calls.clear()
        close()
        perform(lambda archive: archive.read(0), encoding="stored")
        self.assertEqual(calls, [("GetArchive", "a"), ("Read", "a"), ("GetDictionary", "a")])

    def test_blocking(self):
        clients = []

        def perform(request, **options):
            if not clients:
                clients.append(quire.connect(self.server.address,
                                             **{"encoding": "identity", **options}))
            result = request(clients[0]["a"])
            if hasattr(result, "__next__"):
                list(result)

        def close():
            clients.pop().close()
        self.check(perform, close)
        close()

    def test_asyncio(self):
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        clients = []

        async def run(request):
            result = request(clients[0]["a"])
            if hasattr(result, "__aiter__"):
                async for _ in result:
                    pass
            else:
                await result

        def perform(request, **options):
            if not clients:
                clients.append(quire.connect_async(self.server.address,
                                                   **{"encoding": "identity", **options}))
            loop.run_until_complete(run(request))

        def close():
            loop.run_until_complete(clients.pop().close())
        self.check(perform, close)
        close()

    def test_a_name_that_no_archive_has_is_left_out(self):
        with quire.connect(self.server.address) as client:
            for name in ("", "a b", "a\nb: c", "d\u00f6", "a/b", "a" * 129):
                client[name].info()
                self.assertEqual(self.server.archives_of_calls.pop(), ("GetArchive",), name)
            for name in ("a" * 128, "A-b_c.9"):
                client[name].info()
                self.assertEqual(self.server.archives_of_calls.pop(), ("GetArchive", name))

    def test_metadata_of_a_token_stays(self):
        token = [("authorization", "Bearer x")]
        self.assertEqual(_options.with_route(token, "a"), [*token, ("quire-archive", "a")])
        self.assertEqual(_options.with_route(token, ""), token)
        self.assertEqual(_options.with_route(token, "", 2), [*token, ("quire-attempt", "2")])
        self.assertEqual(token, [("authorization", "Bearer x")])
        self.assertIsNone(_options.with_route(None, ""))


if __name__ == "__main__":
    unittest.main()
