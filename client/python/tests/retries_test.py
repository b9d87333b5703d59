# SPDX-License-Identifier: Apache-2.0
"""Calls that the server refuses with a delay, and the metadata of repeated calls."""
import asyncio
import threading
import time
import unittest

import grpc

import quire_archive as quire
from fake_archive import BUSY, DATA, DESCRIPTION, HANDLERS, LARGE, answer
from package_harness import FakeServer, fail
from quire_archive import _messages as messages
from quire_archive import errors
from quire_archive._core import Core
from quire_archive._options import Options
from quire_archive._retries import Retries

CODE = grpc.StatusCode
OPENING = (CODE.UNAVAILABLE, "ARCHIVE_OPENING", 0.001)
QUOTA = (CODE.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", 0.001)
# Only a hang takes this long.
PATIENCE_S = 60


class Refusing:
    """Refuses the first calls of each method, in this way, one after the other."""

    def __init__(self, handler, refusals):
        self._handler = handler
        self._refusals = list(refusals)
        self.attempts = []

    def __call__(self, request, context):
        self.attempts.append(dict(context.invocation_metadata()).get("quire-attempt"))
        if self._refusals:
            fail(context, *self._refusals.pop(0))
        return self._handler(request, context)


class RetriesTest(unittest.TestCase):
    # Requests of a client.
    REQUESTS = [
        lambda archive: archive.client.archives(),
        lambda archive: archive.info(),
        lambda archive: archive.read(3),
        lambda archive: archive.read(LARGE),
        lambda archive: archive.get_many([1, 2, BUSY]),
        lambda archive: archive.documents(),
        lambda archive: archive.stream_range(0, 9)]

    def serve(self, refusals, **handlers):
        """A server that so refuses each method."""
        server = self.enterContext(FakeServer())
        given = {**server.handlers, **HANDLERS, **handlers}
        server.handlers = {name: Refusing(handler, refusals) for name, handler in given.items()}
        server.description.update(DESCRIPTION)
        return server

    def connect(self, server, **options):
        return self.enterContext(quire.connect(
            server.address, **{"deadline": PATIENCE_S, "idle_max": PATIENCE_S,
                               "retry_backoff": 0.001, **options}))

    def test_waits_as_often_as_told(self):
        for request in self.REQUESTS:
            server = self.serve([OPENING, QUOTA] * 4)
            client = self.connect(server, attempts_max=1, encoding="identity")
            result = request(client["a"])
            if hasattr(result, "__next__"):
                list(map(lambda found: getattr(found, "data", found), result))
        server = self.serve([OPENING, QUOTA] * 4)
        self.assertEqual(self.connect(server, attempts_max=1, encoding="stored")["a"].read(0),
                         DATA)
        self.assertEqual(len(server.handlers["GetDictionary"].attempts), 9)

    def test_waits_as_often_as_told_with_asyncio(self):
        async def run(request, server):
            async with quire.connect_async(server.address, attempts_max=1, retry_backoff=0.001,
                                           encoding="identity") as client:
                result = request(client["a"])
                if hasattr(result, "__aiter__"):
                    async for found in result:
                        getattr(found, "data", found)
                else:
                    await result

        for request in self.REQUESTS:
            asyncio.run(run(request, self.serve([OPENING, QUOTA] * 4)))

    def test_ends_at_the_time_limit_with_the_error_of_the_server(self):
        told = (CODE.UNAVAILABLE, "ARCHIVE_OPENING", 0.02)
        server = self.serve([told] * 1000)
        client = self.connect(server, deadline=0.3, idle_max=0.3)
        # On a busy machine the time may end within an attempt.
        text = r"as the test wants; gave up after 0\.\d+ s and \d+ attempts, (as the server asks " \
               r"to wait 0\.02 s|the last one without an answer) and the deadline is 0\.3 s; " \
               r"allow more time"
        for perform in (lambda: client["a"].info(), lambda: list(client["a"].documents())):
            with self.assertRaisesRegex(quire.ArchiveOpening, text) as caught:
                perform()
            self.assertEqual(caught.exception.retry_after, 0.02)
        server.handlers["GetArchive"] = server.get_archive
        with self.assertRaisesRegex(quire.ArchiveOpening, "idle_max is 0.3 s"):
            list(client["a"].stream_range(0, 9))

        # The last attempt has no answer.
        came = threading.Event()
        self.addCleanup(came.set)
        server = self.serve([OPENING], Read=lambda *_: came.wait(PATIENCE_S) and answer())
        with self.assertRaisesRegex(quire.ArchiveOpening, "2 attempts, the last one without an"):
            self.connect(server, deadline=0.3)["a"].read(0)

    def test_time_limits_may_be_infinite(self):
        async def run(address, seconds):
            async with quire.connect_async(address, deadline=seconds, idle_max=seconds) as client:
                return (await client["a"].read(3), len([d async for d in client["a"].documents()]),
                        [piece async for piece in client["a"].stream_range(0, 9)])

        for seconds in (1e10, float("inf")):
            server = self.serve([])
            archive = self.connect(server, deadline=seconds, idle_max=seconds,
                                   encoding="identity")["a"]
            found = (archive.read(3), len(list(archive.documents())),
                     list(archive.stream_range(0, 9)))
            self.assertEqual(found, (DATA, 2, [DATA]))
            self.assertEqual(asyncio.run(run(server.address, seconds)), found)

    def test_does_not_begin_a_wait_that_is_too_long(self):
        server = self.serve([(CODE.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", 0.9)] * 9)
        with self.assertRaisesRegex(quire.QuotaExceeded, "one attempt, as the server asks to "
                                                         "wait 0.9 s"):
            self.connect(server, deadline=0.5)["a"].read(0)
        self.assertEqual(server.calls, ["Read"])

    def test_delays_are_bounded_and_differ(self):
        core = Core(Options())
        told = quire.ServerBusy("busy", code="RESOURCE_EXHAUSTED", retry_after=1.0)
        delays = [Retries(core).delay_after(told) for _ in range(100)]
        self.assertGreaterEqual(min(delays), 1.0)
        self.assertLessEqual(max(delays), 1.2)
        self.assertGreater(len(set(delays)), 50)
        told.retry_after = 0.0
        retries = Retries(core, float("inf"))
        delays = [retries.delay_after(told) for _ in range(20)]
        self.assertGreaterEqual(delays[0], 0.01)
        self.assertGreaterEqual(delays[-1], 0.2)
        told.retry_after = 1e12
        self.assertIsNone(Retries(core).delay_after(told))
        self.assertLessEqual(Retries(core, float("inf")).delay_after(told), 36)

    def test_takes_the_code_of_the_server_where_a_proxy_reset_the_call(self):
        class Reset:
            """The grpc.RpcError of a call that was reset after its end."""
            code = staticmethod(lambda: CODE.CANCELLED)
            details = staticmethod(lambda: "Received RST_STREAM with error code 8")
            sent = messages.RpcStatus(code=CODE.UNAVAILABLE.value[0], message="it opens")
            sent.details.add(
                type_url="type.googleapis.com/google.rpc.ErrorInfo",
                value=messages.RpcErrorInfo(reason="ARCHIVE_OPENING",
                                            domain="quire").SerializeToString())
            trailing_metadata = staticmethod(
                lambda: (("grpc-status-details-bin", Reset.sent.SerializeToString()),))

        error = errors.from_rpc(Reset, "server")
        self.assertEqual((type(error), error.code, str(error)),
                         (quire.ArchiveOpening, "UNAVAILABLE", "it opens"))

    def test_counts_attempts_for_proxies(self):
        draining = (CODE.UNAVAILABLE, "DRAINING")
        server = self.serve([QUOTA, OPENING, draining, OPENING, QUOTA, draining])
        client = self.connect(server, encoding="identity")
        client["a"].read(LARGE)
        for name in ("Read", "ReadStream"):
            self.assertEqual(server.handlers[name].attempts,
                             [None, None, None, "1", "1", "1", "2"])
        list(client["a"].documents())
        # The first page, then the second, which is requested at once.
        self.assertEqual(server.handlers["ListDocuments"].attempts,
                         [None, None, None, "1", "1", "1", "2", None])

    def test_close_ends_a_wait(self):
        refused = threading.Event()

        def refuse(_request, context):
            refused.set()
            fail(context, CODE.UNAVAILABLE, "ARCHIVE_OPENING", 0.99)

        server = self.serve([], Read=refuse)
        client = self.connect(server)
        raised = []

        def run():
            try:
                client["a"].read(0)
            except quire.QuireError as error:
                raised.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        self.assertTrue(refused.wait(PATIENCE_S))
        # Until it waits.
        time.sleep(0.2)
        client.close()
        thread.join(PATIENCE_S)
        self.assertEqual([type(error) for error in raised], [quire.CallCancelled])

        async def run_async():
            async_client = quire.connect_async(server.address)
            task = asyncio.ensure_future(async_client["a"].read(0))
            await asyncio.sleep(0.3)
            await async_client.close()
            with self.assertRaises(quire.CallCancelled):
                await task
        asyncio.run(run_async())


if __name__ == "__main__":
    unittest.main()
