# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: archives, a real server, and one that misbehaves.

Environment: QUIRED and QUIRE are the programs.
"""
import concurrent.futures
import contextlib
import os
import pathlib
import random
import subprocess
import sys

import grpc

_ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(_ROOT / "loadtest" / "harness"), str(_ROOT / "loadtest" / "checks")]
# pylint: disable=wrong-import-position,unused-import
from live_server import LiveServer, make_documents, write_corpus

from quire_archive import _messages

QUIRED = os.environ["QUIRED"]
QUIRE = os.environ["QUIRE"]
PACKAGE_TESTS = pathlib.Path(__file__).resolve().parent
# Seed of random tests; set it to run others.
SEED = int(os.environ.get("QUIRE_TEST_SEED", "20261125"))


def build(out, *arguments):
    """Builds an archive at `out`."""
    subprocess.run([QUIRED, "build", "--quiet", "--force", "-o", str(out), *map(str, arguments)],
                   check=True)
    return out


def random_documents(count, seed=SEED):
    """(id, bytes) as they lie in an archive: small, empty and large ones, any bytes as ids."""
    draw = random.Random(seed)
    words = [draw.randbytes(draw.randint(2, 12)) for _ in range(500)]
    documents = []
    for number in range(count):
        size = draw.choice((0, 1, 50, 2000, 2000, 20_000))
        data = b"".join(draw.choices(words, k=size // 7 + 1))[:size]
        documents.append((f"dir-{number % 5}/sub-{number % 3}/page-{number:05}", data))
    # More than one message holds.
    documents.append(("large/one", b"".join(draw.choices(words, k=300_000))))
    documents.append(("large/two \u00e4\u20ac", draw.randbytes(1_900_000)))
    return sorted(documents, key=lambda document: document[0].encode())


class FakeServer:
    """Answers each call with a function of the test: handlers[METHOD](request, context).

    The request of BatchRead is the iterator of its messages.
    """

    def __init__(self, **handlers):
        self.handlers = {"ListArchives": self.list_archives, "GetArchive": self.get_archive,
                         **handlers}
        self.calls = []
        # The method of each call and its metadata quire-archive, if any.
        self.archives_of_calls = []
        self.limits = {"read_size_bytes_max": 1 << 20, "chunk_size_bytes_max": 1 << 20,
                       "batch_message_items_max": 100, "batch_pending_items_max": 1000}
        self.description = {"name": "a", "uuid": "u", "size_bytes": 1000, "document_count": 10,
                            "codec": "zstd"}
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
            "quire.v1.Archive", {name: self._handler(name, method)
                                 for name, method in _messages.METHODS.items()}),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self):
        self._server.start()
        return self

    def __exit__(self, *_):
        self._server.stop(None).wait()

    def _handler(self, name, method):
        make = getattr(grpc, f"{method.kind}_rpc_method_handler")

        def answer(request, context):
            self.calls.append(name)
            self.archives_of_calls.append((name, *(
                value for key, value in context.invocation_metadata() if key == "quire-archive")))
            found = self.handlers[name](request, context)
            if not method.kind.endswith("stream"):
                return found if not isinstance(found, dict) else method.response(**found)
            return (method.response(**message) if isinstance(message, dict) else message
                    for message in found)
        return make(answer, request_deserializer=method.request.FromString,
                    response_serializer=method.response.SerializeToString)

    def list_archives(self, _request, _context):
        return {"archives": [self.description], "limits": self.limits}

    def get_archive(self, _request, _context):
        return {"archive": self.description, "limits": self.limits}


def fail(context, code, reason="", retry_seconds=None, **metadata):
    """Ends a call with an error as Quire's server does."""
    details = []
    if reason:
        info = _messages.RpcErrorInfo(reason=reason, domain="quire", metadata=metadata)
        details.append(("ErrorInfo", info))
    if retry_seconds is not None:
        retry = _messages.RpcRetryInfo()
        retry.retry_delay.nanos = int(retry_seconds * 1e9)
        details.append(("RetryInfo", retry))
    status = _messages.RpcStatus(code=code.value[0], message="as the test wants")
    for name, message in details:
        status.details.add(type_url=f"type.googleapis.com/google.rpc.{name}",
                           value=message.SerializeToString())
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, "as the test wants")


@contextlib.contextmanager
def environment(**values):
    """Sets environment variables; None removes one."""
    before = {name: os.environ.get(name) for name in values}
    try:
        for name, value in values.items():
            _set_variable(name, value)
        yield
    finally:
        for name, value in before.items():
            _set_variable(name, value)


def _set_variable(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
