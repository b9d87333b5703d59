# SPDX-License-Identifier: Apache-2.0
"""Reads compressed document archives, or those of a Quire server.

    import quire_archive

    docs = quire_archive.open("docs.quire")    # or s3://bucket/web.quire; starts a private server
    page = docs["manual/index.html"]

    with quire_archive.connect("127.0.0.1:7420") as client:
        docs = client["docs"]
        page = docs.read("manual/index.html")
        for answer in docs.get_many(["a.html", "b.html"]):
            print(answer.key, len(answer.data))

Start at open(), connect(), Client and Archive; with asyncio at connect_async().
"""
from . import errors
from .aio import AsyncArchive, AsyncClient, connect_async
from .client import Archive, Client, connect
from .errors import *  # noqa: F403  pylint: disable=wildcard-import,unused-wildcard-import
from .private_server import OpenedArchive, open  # pylint: disable=redefined-builtin
from .records import (Answer, AnyKey, ArchiveInfo, Capture, Document, Key, Payload, Prefix, Span,
                      Time, WithdrawnCount, parse_period)

__version__ = "0.1.0"
__all__ = ["Answer", "AnyKey", "Archive", "ArchiveInfo", "AsyncArchive", "AsyncClient", "Capture",
           "Client", "Document", "Key", "OpenedArchive", "Payload", "Prefix", "Span", "Time",
           "WithdrawnCount", "connect", "connect_async", "parse_period"]
# Without open: `from quire_archive import *` would hide the builtin.
__all__ += errors.__all__
