# SPDX-License-Identifier: Apache-2.0
"""What the clients make of servers that fail, are silent, or lie."""
import asyncio
import contextlib
import io
import random
import socket
import threading
import time
import unittest
import unittest.mock

import xxhash

import quire_archive as quire
from faulty_case import CODE, DATA, FaultyCase, answer, failing, result
from package_harness import SEED, fail
from quire_archive import _messages as messages
from quire_archive import _options, _program, errors
from quire_archive._batch import encode_item
from quire_archive.records import fill, resolve


class FaultsTest(FaultyCase):
    def test_programs_print_no_controls_of_a_server(self):
        server = self.serve(GetArchive=lambda _request, context: context.abort(
            CODE.NOT_FOUND, "\x1b]0;title\x07 \x9b2J \u202f none\n"))

        def ask():
            return server.client["a"].pinned()

        with contextlib.redirect_stderr(io.StringIO()) as printed:
            self.assertEqual(_program.run_program("quire-web", ask), 1)
        text = printed.getvalue()
        self.assertTrue(text.startswith("quire-web: "), text)
        self.assertTrue(text.endswith("\n"))
        self.assertNotRegex(text[:-1], "[\x00-\x1f\x7f-\x9f]")
        self.assertIn("\\x1B]0;title\\x07 \\xC2\\x9B2J \u202f none", text)
        self.assertEqual(_program.printable("\udcff\ud800"), "\\xFF\\xED\\xA0\\x80")

    def test_every_reason_has_a_class(self):
        reasons = set(messages.ERROR_REASONS) - {"ERROR_REASON_UNSPECIFIED"}
        self.assertEqual(reasons, set(errors.CLASSES))
        for reason, kind in errors.CLASSES.items():
            self.assertTrue(issubclass(kind, quire.QuireError))
            self.assertIs(getattr(quire, kind.__name__), kind)
            with self.subTest(reason=reason):
                # pylint: disable=protected-access
                handler = failing(99, CODE[kind._code], reason)
                server = self.serve(Read=handler, ReadStream=handler)
                with self.assertRaises(kind) as caught:
                    self.connect(server.address, attempts_max=1)["a"].read(0)
                self.assertEqual(caught.exception.reason, reason)
                self.assertIn("as the test wants", str(caught.exception))

    def test_a_new_reason_and_no_details(self):
        server = self.serve(Read=failing(1, CODE.DATA_LOSS, "NEW_REASON"))
        with self.assertRaises(quire.QuireError) as caught:
            server.client["a"].read(0)
        self.assertEqual((caught.exception.reason, caught.exception.code),
                         ("NEW_REASON", "DATA_LOSS"))
        server = self.serve(Read=failing(1, CODE.DEADLINE_EXCEEDED))
        with self.assertRaises(quire.DeadlinePassed):
            server.client["a"].read(0)

    def test_repeats_what_may_be_repeated(self):
        for code, reason, delay in [(CODE.UNAVAILABLE, "", None),
                                    (CODE.UNAVAILABLE, "ARCHIVE_OPENING", 0.01),
                                    (CODE.RESOURCE_EXHAUSTED, "SERVER_BUSY", 0.02)]:
            server = self.serve(Read=failing(3, code, reason, delay))
            self.assertEqual(server.client["a"].read(0), DATA)
            self.assertEqual(server.calls.count("Read"), 4)
            server = self.serve(Read=failing(999, code, reason, delay))
            with self.assertRaises(quire.QuireError) as caught:
                self.connect(server.address, deadline=0.4)["a"].read(0)
            self.assertEqual((caught.exception.code, caught.exception.retry_after),
                             (code.name, delay))
            # A delay of the server is waited for until the deadline.
            (self.assertEqual if delay is None else self.assertGreater)(
                server.calls.count("Read"), 4)

    def test_repeats_calls_that_a_proxy_ended(self):
        def cut(code, message):
            left = [2]

            def handle(_request, context):
                if left[0]:
                    left[0] -= 1
                    context.abort(code, message)
                return answer()
            return handle

        reset = "Received RST_STREAM with error code 2"
        window = "frame of size 16384 overflows local window of 100"
        for code, message in [(CODE.INTERNAL, reset), (CODE.INTERNAL, window),
                              (CODE.UNKNOWN, "Stream removed")]:
            server = self.serve(Read=cut(code, message))
            self.assertEqual(server.client["a"].read(0), DATA)
            self.assertEqual(server.calls.count("Read"), 3)
        for code, message in [(CODE.INTERNAL, "a bug"), (CODE.UNKNOWN, reset)]:
            server = self.serve(Read=cut(code, message))
            with self.assertRaises(quire.QuireError):
                server.client["a"].read(0)
            self.assertEqual(server.calls.count("Read"), 1)

    def test_does_not_repeat_what_cannot_succeed(self):
        for code, reason in [(CODE.NOT_FOUND, "DOCUMENT_NOT_FOUND"), (CODE.INTERNAL, ""),
                             (CODE.DATA_LOSS, "BLOCK_DAMAGED"),
                             (CODE.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")]:
            server = self.serve(Read=failing(1, code, reason))
            with self.assertRaises(quire.QuireError):
                server.client["a"].read(0)
            self.assertEqual(server.calls.count("Read"), 1)
        server = self.serve(Read=failing(1, CODE.UNAVAILABLE))
        with self.assertRaises(quire.ServerUnreachable):
            self.connect(server.address, attempts_max=1)["a"].read(0)

    def test_wrong_answers_are_refused(self):
        wrong = answer()
        wrong["document"]["ordinal"] = 1
        for bad, kind in [
                (answer(checksum=1), quire.AnswerDamaged),
                (answer(range={"offset": 100, "size_bytes": 8}), quire.ServerFault),
                (answer(range={"offset": 99, "size_bytes": 9}), quire.ServerFault),
                (answer(encoding=messages.STORED), quire.ServerFault),
                (answer(encoding=77), quire.ServerFault),
                (answer(document=None), quire.ServerFault), (wrong, quire.ServerFault)]:
            server = self.serve(Read=lambda *_, bad=bad: bad)
            with self.assertRaises(kind):
                server.client["a"].read(0)
            self.assertEqual(server.calls.count("Read"), 1)

    def test_wrong_stored_blocks_are_refused(self):
        def details(*blocks, **changes):
            return {"codec": "zlib", "blocks": blocks, **changes}
        block = {"stored_size_bytes": 9, "size_bytes": 9, "is_uncoded": True}
        good = details(block)
        server = self.serve(Read=lambda *_: answer(encoding=messages.STORED, details=good))
        client = self.connect(server.address, encoding="stored")
        self.assertEqual(client["a"].read(0), DATA)
        for bad in [
                None, details(), details(block, block), details(block, front_cut_size_bytes=9),
                details({**block, "size_bytes": 8}), details({**block, "is_uncoded": False}),
                details({**block, "size_bytes": 1 << 31, "is_uncoded": False}),
                details({**block, "has_recipe": True}),
                details({**block, "is_uncoded": False}, codec="zstd"),
                details({**block, "is_uncoded": False}, codec="xz"),
                details({**block, "is_uncoded": False}, codec="none"),
                details({**block, "is_uncoded": False}, codec="rlz")]:
            good = bad
            with self.assertRaises(quire.AnswerDamaged, msg=bad):
                client["a"].read(0)

    def test_a_bomb_in_a_stored_block_is_not_decoded(self):
        # A frame that claims 2^40 bytes.
        frame = bytes.fromhex("28b52ffde0") + (1 << 40).to_bytes(8, "little") + bytes(9)
        bad = {"codec": "zstd", "blocks": [{"stored_size_bytes": len(frame), "size_bytes": 9}]}
        server = self.serve(Read=lambda *_: answer(
            encoding=messages.STORED, details=bad, data=frame,
            checksum=xxhash.xxh3_64_intdigest(frame)))
        with self.assertRaises(quire.AnswerDamaged):
            self.connect(server.address, encoding="stored")["a"].read(0)

    # --- Batches.

    def test_items_are_those_that_protobuf_encodes(self):
        draw = random.Random(SEED)
        numbers = [0, 1, 127, 128, 16_383, 16_384, 2**32, 2**64 - 1]
        for _ in range(3000):
            tag = draw.choice([*numbers, draw.randrange(2**draw.randint(1, 64))])
            offset, size = (draw.choice([*numbers, draw.randrange(2**63)]) for _ in range(2))
            name = draw.randbytes(draw.choice((0, 1, 99, 100, 125, 126, 127, 128, 200, 17_000)))
            key = draw.choice((name, offset, quire.Span(offset, size),
                               quire.Key(name), quire.Key(name, range=(offset, size)),
                               quire.Key(name, record_types=["response"]),
                               quire.Key(offset, range=(3, size))))
            item = messages.BatchReadRequest().items.add(tag=tag)
            fill(resolve(key), item)
            found = messages.BatchReadRequest.FromString(encode_item(tag, resolve(key)))
            self.assertEqual(found.items[0], item, f"seed {SEED}: {key!r}")

    def test_a_batch_survives_broken_streams(self):
        numbers = []

        def batch(requests, context):
            """Answers one item of each stream's first message, in reverse, then breaks."""
            request = next(requests)
            if len(request.items) == 1:
                yield {"results": [result(request.items[0].tag)]}
                return
            numbers.append([item.document.ordinal for item in request.items])
            yield {"results": [result(request.items[-1].tag)]}
            fail(context, CODE.UNAVAILABLE, "DEVICE_FAILED")

        server = self.serve(BatchRead=batch)
        answers = list(server.client["a"].get_many(range(9)))
        self.assertEqual([a.key for a in answers], list(range(9)))
        self.assertEqual([a.data for a in answers], [DATA + b"%d" % n for n in range(9)])
        self.assertEqual(numbers, [list(range(end)) for end in range(9, 1, -1)])

    def test_errors_of_items_and_of_the_batch(self):
        def batch(requests, _context):
            for request in requests:
                for item in request.items:
                    reply = result(item.tag)
                    if item.tag == 1:
                        reply = {"tag": 1, "status": {
                            "code": 5, "reason": messages.ERROR_REASONS["DOCUMENT_NOT_FOUND"],
                            "message": "absent"}}
                    if item.tag == 2:
                        reply["checksum"] = 1
                    yield {"results": [reply]}

        server = self.serve(BatchRead=batch)
        first, absent, damaged, last = server.client["a"].get_many(range(4))
        self.assertEqual((first.data, last.data), (DATA + b"0", DATA + b"3"))
        self.assertIsInstance(absent.error, quire.DocumentNotFound)
        self.assertIsInstance(damaged.error, quire.AnswerDamaged)
        with self.assertRaisesRegex(quire.DocumentNotFound, "absent"):
            absent.data  # pylint: disable=pointless-statement

        for replies, kind in [
                ([{"results": [result(99)]}], quire.ServerFault),
                ([{"results": [result(0), result(0)]}], quire.ServerFault),
                ([], quire.AnswerDamaged), ([{"results": [result(0)]}], quire.AnswerDamaged)]:
            server = self.serve(BatchRead=lambda *_, replies=replies: iter(replies))
            for ordered in (True, False):
                with self.assertRaises(kind):
                    list(server.client["a"].get_many(range(2), ordered=ordered))

    def test_what_is_too_large_is_streamed(self):
        def batch(requests, _context):
            for request in requests:
                yield {"results": [{"tag": item.tag, "status": {
                    "code": 8, "reason": messages.ERROR_REASONS["LIMIT_EXCEEDED"]}}
                    for item in request.items]}

        def stream(request, context):
            number = request.document.ordinal
            if number == 1:
                fail(context, CODE.NOT_FOUND, "DOCUMENT_NOT_FOUND")
            whole = answer(DATA * 2, number)
            for at in (0, len(DATA)):
                yield {**whole, "range": {"offset": 100 + at, "size_bytes": len(DATA)},
                       "data": DATA, "checksum": xxhash.xxh3_64_intdigest(DATA)}

        server = self.serve(BatchRead=batch, ReadStream=stream)
        first, absent = server.client["a"].get_many(range(2))
        self.assertEqual(first.data, DATA * 2)
        self.assertIsInstance(absent.error, quire.DocumentNotFound)

    def test_a_stream_that_always_breaks_is_given_up(self):
        def stream(_request, context):
            if server.calls.count("ReadStream") > 100:
                fail(context, CODE.NOT_FOUND, "DOCUMENT_NOT_FOUND")
            yield {**answer(DATA * 2), "range": {"offset": 100, "size_bytes": len(DATA)},
                   "data": DATA, "checksum": xxhash.xxh3_64_intdigest(DATA)}
            fail(context, CODE.UNAVAILABLE, "DEVICE_FAILED")

        server = self.serve(Read=failing(99, CODE.RESOURCE_EXHAUSTED, "LIMIT_EXCEEDED"),
                            ReadStream=stream)
        with self.assertRaises(quire.DeviceFailed):
            self.connect(server.address, idle_max=0.2)["a"].read(0)

    def test_messages_of_a_batch_are_within_the_limits(self):
        sizes = []

        def batch(requests, _context):
            for request in requests:
                sizes.append(len(request.items))
                yield {"results": [result(item.tag) for item in request.items]}

        server = self.serve(BatchRead=batch)
        self.assertEqual(len(list(server.client["a"].get_many(range(2500)))), 2500)
        self.assertLessEqual(max(sizes), 100)
        self.assertEqual(sum(sizes), 2500)

    # --- Silence.

    def test_a_silent_server(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def silent(*_):
            release.wait(30)
            return iter(())

        server = self.serve(Read=silent, ReadStream=silent, BatchRead=silent, Scan=silent)
        archive = self.connect(server.address, deadline=0.3, idle_max=0.3)["a"]
        for call in (lambda: archive.read(0), lambda: list(archive.get_many([0])),
                     lambda: list(archive.stream_range())):
            started = time.monotonic()
            with self.assertRaises(quire.DeadlinePassed) as caught:
                call()
            self.assertIsInstance(caught.exception, TimeoutError)
            # Generous: only a hang takes this long.
            self.assertLess(time.monotonic() - started, 20)

        async def run():
            async with quire.connect_async(server.address, deadline=0.3,
                                           idle_max=0.3) as client:
                with self.assertRaises(quire.DeadlinePassed):
                    await client["a"].read(0)
                with self.assertRaises(quire.DeadlinePassed):
                    async for _ in client["a"].get_many([0]):
                        pass
        asyncio.run(run())

    def test_closing_an_asyncio_client_does_not_cancel_tasks(self):
        began, release = threading.Event(), threading.Event()
        self.addCleanup(release.set)

        def silent(_requests, _context):
            began.set()
            release.wait(30)
            return iter(())

        server = self.serve(Read=silent, Scan=silent)

        async def take(stream):
            return [piece async for piece in stream]

        async def run():
            for call in (lambda archive: archive.read(0),
                         lambda archive: take(archive.stream_range())):
                began.clear()
                client = quire.connect_async(server.address, deadline=30)
                running = asyncio.ensure_future(call(client["a"]))
                await asyncio.get_running_loop().run_in_executor(None, began.wait, 20)
                await client.close()
                with self.assertRaises(quire.CallCancelled):
                    await running
                # A task that is cancelled itself stays so.
                began.clear()
                running = asyncio.ensure_future(call(client["a"]))
                await asyncio.get_running_loop().run_in_executor(None, began.wait, 20)
                running.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await running
                await client.close()
        asyncio.run(run())

    def test_a_call_ends_when_its_client_is_closed(self):
        def batch(requests, _context):
            for request in requests:
                yield {"results": [result(item.tag) for item in request.items]}

        server = self.serve(BatchRead=batch, Read=lambda *_: answer())
        client = self.connect(server.address)
        answers = client["a"].get_many(range(10**9))
        next(answers)
        client.close()
        # It would continue with a new connection, as after a cut one.
        with self.assertRaisesRegex(quire.CallCancelled, "the client was closed during the call"):
            for _ in answers:
                pass
        self.assertEqual(server.calls.count("BatchRead"), 1)
        self.assertEqual(client["a"].read(0), DATA)

        async def run():
            async with quire.connect_async(server.address) as client:
                answers = client["a"].get_many(range(10**9))
                await answers.__anext__()
                await client.close()
                with self.assertRaisesRegex(quire.CallCancelled, "was closed during the call"):
                    async for _ in answers:
                        pass
                self.assertEqual(await client["a"].read(0), DATA)
        asyncio.run(run())
        self.assertEqual(server.calls.count("BatchRead"), 2)

    def test_a_client_that_is_closed_as_a_call_begins(self):
        server = self.serve(Read=lambda *_: answer(), ListDocuments=lambda *_: {},
                            Scan=lambda *_: iter(()))
        archive = server.client["a"]
        # pylint: disable=protected-access
        connect = server.client._call

        def connect_and_close(method):
            call = connect(method)
            if method != "GetArchive":
                server.client.close()
            return call

        for call in (lambda: archive.read(0), lambda: list(archive),
                     lambda: list(archive.stream_range(0, 9))):
            with unittest.mock.patch.object(server.client, "_call", connect_and_close), \
                    self.assertRaisesRegex(quire.CallCancelled, "closed during the call"):
                call()
        self.assertEqual(archive.read(0), DATA)

    def test_keys_that_are_cancelled_do_not_end_a_batch_early(self):
        def batch(requests, _context):
            for request in requests:
                yield {"results": [result(item.tag) for item in request.items]}

        server = self.serve(BatchRead=batch)

        async def keys():
            yield 0
            # As from a task of the caller's that was cancelled.
            raise asyncio.CancelledError

        async def run(ordered):
            async with quire.connect_async(server.address) as client:
                with self.assertRaises(asyncio.CancelledError):
                    async for _ in client["a"].get_many(keys(), ordered=ordered):
                        pass
        for ordered in (True, False):
            asyncio.run(run(ordered))

    def test_no_server(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            with self.assertRaisesRegex(quire.ServerUnreachable, f"no connection to {address}"):
                self.connect(address, attempts_max=2)["a"].read(0)


class OptionsTest(unittest.TestCase):
    def test_bad_options_are_named(self):
        for options, message in [
                ({"server": "nowhere"}, "HOST:PORT"), ({"server": "a:70000"}, "1 to 65535"),
                ({"server": "a/b:1"}, "not a server address"), ({"deadline": 0}, "deadline"),
                ({"attempts_max": 0}, "attempts_max must be 1 to 100, got 0"),
                ({"encoding": "fsst"}, "identity"), ({"cert_file": "x"}, "together"),
                ({"retry_backoff": 0}, "retry_backoff"),
                ({"server": "192.0.2.1:1", "token": "a.b"}, "where all can read it"),
                ({"token": "a.b", "token_file": "x"}, "not both")]:
            with self.assertRaisesRegex(ValueError, message):
                quire.connect(**options)
        with self.assertRaisesRegex(TypeError, "unknown option colour"):
            quire.connect(colour="red")

    def test_the_environment(self):
        variables = {"QUIRE_SERVER": "unix:/s", "QUIRE_TOKEN_FILE": "t", "QUIRE_CA": "c"}
        made = _options.make_options(None, {}, variables)
        self.assertEqual((made.server, made.token_file, made.ca_file), ("unix:/s", "t", "c"))
        made = _options.make_options("localhost:1", {"token": "x.y"}, variables)
        self.assertEqual((made.server, made.token, made.token_file),
                         ("localhost:1", "x.y", None))
        self.assertNotIn("x.y", repr(made))
        self.assertEqual(_options.make_options(None, {}, {}).server, "127.0.0.1:7420")

    def test_local_addresses(self):
        for address, is_local in [("127.0.0.1:1", True), ("127.9.9.9:1", True), ("[::1]:1", True),
                                  ("localhost:1", True), ("unix:/a", True),
                                  ("dns:///localhost:1", True), ("192.0.2.1:1", False),
                                  ("example.org:1", False), ("dns://1.1.1.1/localhost:1", False),
                                  ("ipv4:127.0.0.1:1,192.0.2.1:1", False)]:
            self.assertEqual(_options.is_local(address), is_local, address)


if __name__ == "__main__":
    unittest.main()
