# SPDX-License-Identifier: Apache-2.0
"""Pages of listings, checked."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from . import _messages as messages
from ._steps import ArchiveName, Finish, Start, Steps
from .errors import QuireError, ServerFault
from .records import WITHDRAWN_TYPE, Document, field_value, make_document

if TYPE_CHECKING:
    from ._core import Core

PAGE_SIZE = 4000


class Lister:
    """Pages of a listing; the next one is requested while the caller has one."""

    METHOD = "ListDocuments"

    def __init__(self, core: Core, archive: ArchiveName, prefix: Optional[bytes],
                 delimiter: Optional[bytes], first_ordinal: int,
                 page_size: int = PAGE_SIZE, fields: Sequence[str] = (),
                 where: Optional[str] = None) -> None:
        self._core = core
        self._archive = archive.name
        self._request = archive.set(messages.ListDocumentsRequest(page_size=page_size))
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
        self._started: Any = None
        self._has_ended = False
        # In archive order: documents that were passed over, and the first of the last ones
        # that are neighbours.
        self.unlisted_count = 0
        self.unlisted_ordinal: Optional[int] = None

    def next_page(self) -> Steps[Any]:
        """None at the end."""
        while not self._has_ended:
            page = yield from self._receive()
            if self._request.HasField("filter") and not page.is_filtered:
                raise ServerFault("the server does not know filters: ask one of a newer version, "
                                  "or leave out `where`")
            if not page.HasField("next_page_token"):
                self._has_ended = True
                return page
            if page.next_page_token == self._request.page_token:
                raise ServerFault("the server's list of documents does not end")
            self._request.page_token = page.next_page_token
            self._started = yield Start(self.METHOD, self._archive, self._request,
                                        self._core.options.deadline)
            # A page of withdrawn documents only is empty.
            if self._has_entries(page):
                return page
        return None

    @staticmethod
    def _has_entries(page: Any) -> bool:
        return bool(page.documents or page.common_prefixes or page.HasField("columns"))

    def _receive(self) -> Steps[Any]:
        started, self._started = self._started, None
        failed: Optional[QuireError] = None
        if started is not None:
            try:
                return (yield Finish(started))
            except QuireError as error:
                failed = error
        return (yield from self._core.call(self.METHOD, self._archive, self._request, failed))

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
