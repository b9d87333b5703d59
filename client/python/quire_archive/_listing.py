# SPDX-License-Identifier: Apache-2.0
"""Pages of lists of documents and of captures, as steps (_steps.py)."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from . import _messages as messages
from . import _options
from ._steps import ArchiveName, Finish, Start, Steps
from .errors import QuireError, ServerFault
from .records import (WITHDRAWN_TYPE, Document, Time, field_value, make_document,
                      to_first_millisecond, to_id, to_milliseconds)

if TYPE_CHECKING:
    from ._core import Core

PAGE_SIZE = 4000


class Pages:
    """Pages of a listing; the next one is requested while the caller has one."""

    METHOD: str

    def __init__(self, core: Core, archive: ArchiveName, request: Any) -> None:
        self._core = core
        self._archive = archive.name
        self._request = archive.set(request)
        self._started: Any = None
        self._has_ended = False

    def next_page(self) -> Steps[Any]:
        """None at the end."""
        while not self._has_ended:
            page = yield from self._receive()
            self._check(page)
            if not page.HasField("next_page_token"):
                self._has_ended = True
                return page
            if page.next_page_token == self._request.page_token:
                raise ServerFault("the server's list does not end")
            self._request.page_token = page.next_page_token
            self._started = yield Start(self.METHOD, self._archive, self._request,
                                        _options.call_timeout(self._core.options.deadline))
            # A page can be empty, as all of it is withdrawn or does not match.
            if self._has_entries(page):
                return page
        return None

    def _check(self, page: Any) -> None:
        """Raises ServerFault."""

    @staticmethod
    def _has_entries(page: Any) -> bool:
        raise NotImplementedError

    def _receive(self) -> Steps[Any]:
        started, self._started = self._started, None
        failed: Optional[QuireError] = None
        if started is not None:
            try:
                return (yield Finish(started))
            except QuireError as error:
                failed = error
        return (yield from self._core.call(self.METHOD, self._archive, self._request, failed))


class Lister(Pages):
    """Pages of documents."""

    METHOD = "ListDocuments"

    def __init__(self, core: Core, archive: ArchiveName, prefix: Optional[bytes],
                 delimiter: Optional[bytes], first_ordinal: int,
                 page_size: int = PAGE_SIZE, fields: Sequence[str] = (),
                 where: Optional[str] = None) -> None:
        super().__init__(core, archive, messages.ListDocumentsRequest(page_size=page_size))
        if prefix is not None and first_ordinal:
            raise ValueError("documents() takes a prefix or first_ordinal, and not both: "
                             "those with a prefix come by id")
        self._prefix = prefix
        self._next_ordinal = first_ordinal
        if prefix is None:
            self._request.first_ordinal = first_ordinal
        else:
            self._request.prefix = prefix
            if delimiter is not None:
                self._request.delimiter = delimiter
        if isinstance(fields, str):
            raise TypeError(f"fields must be a list of names, got {fields!r}")
        self._fields = tuple(fields)
        self._request.fields.extend(self._fields)
        if where is not None:
            self._request.filter = where
        # In archive order: documents that were passed over, and the first of the last ones
        # that are neighbours.
        self.unlisted_count = 0
        self.unlisted_ordinal: Optional[int] = None

    def _check(self, page: Any) -> None:
        if self._request.HasField("filter") and not page.is_filtered:
            raise ServerFault("the server does not know filters: ask one of a newer version, "
                              "or leave out `where`")

    @staticmethod
    def _has_entries(page: Any) -> bool:
        return bool(page.documents or page.common_prefixes or page.HasField("columns"))

    def documents_of(self, page: Any) -> List[Document]:
        """The documents of a page, checked; none that are withdrawn."""
        documents = [document for document in map(self._make_document, page.documents)
                     if document.record_type != WITHDRAWN_TYPE]
        if self._prefix is None:
            next_ordinal = self._next_ordinal
            for document in documents:
                if document.ordinal != next_ordinal:
                    self._note_unlisted(next_ordinal, document.ordinal)
                next_ordinal = document.ordinal + 1
            self._next_ordinal = next_ordinal
        elif self._prefix:
            for document in documents:
                if not document.id.startswith(self._prefix):
                    raise ServerFault("the server listed a document without the prefix")
        return documents

    def _make_document(self, message: Any) -> Document:
        document = make_document(message)
        if len(message.fields) != len(self._fields):
            raise ServerFault(f"the server sent {len(message.fields)} fields of a document, "
                              f"expected {len(self._fields)}: it does not know fields")
        if self._fields:
            document.fields = dict(zip(self._fields, map(field_value, message.fields)))
        return document

    def note_end(self, document_count: int) -> None:
        """Notes the documents after the last one of the list, in archive order."""
        if self._next_ordinal < document_count:
            self._note_unlisted(self._next_ordinal, document_count)

    def _note_unlisted(self, begin: int, end: int) -> None:
        if end < begin:
            raise ServerFault(f"the server listed document {end} where {begin} was next")
        self.unlisted_count += end - begin
        self.unlisted_ordinal = begin


class CapturePages(Pages):
    """Pages of captures."""

    METHOD = "ListCaptures"

    @staticmethod
    def _has_entries(page: Any) -> bool:
        return bool(page.captures)


def make_capture_request(url: Union[bytes, str, None], key: Union[bytes, str, None], match: str,
                         since: Optional[Time], until: Optional[Time], closest: Optional[Time],
                         newest_first: bool, where: Optional[str]) -> Any:
    """The request of Archive.captures(). Raises ValueError."""
    if url is not None and key is not None:
        raise ValueError("captures() takes a URL or a key, and not both")
    if url is None and key is None and (match != "exact" or newest_first or closest is not None):
        raise ValueError("match, closest and newest_first need a URL or a key")
    if match not in messages.CAPTURE_MATCHES:
        raise ValueError(f"match must be one of {', '.join(messages.CAPTURE_MATCHES)}, "
                         f"got {match!r}")
    request = messages.ListCapturesRequest(newest_first=newest_first)
    if url is not None:
        request.url = to_id(url)
    elif key is not None:
        request.key = to_id(key)
    if url is not None or key is not None:
        request.match = messages.CAPTURE_MATCHES[match]
    if since is not None:
        request.from_ms = to_first_millisecond(since)
    if until is not None:
        request.until_ms = to_milliseconds(until)
    if closest is not None:
        request.closest_ms = to_first_millisecond(closest)
    if where is not None:
        request.filter = where
    return request
