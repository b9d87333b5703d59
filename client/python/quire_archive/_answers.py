# SPDX-License-Identifier: Apache-2.0
"""Answers that carry bytes: decoded, and checked against the request."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Tuple

from xxhash import xxh3_64_intdigest

from . import _messages as messages
from . import _stored
from ._steps import Steps
from .errors import AnswerDamaged, DictionaryNotFound, DocumentWithdrawn, ServerFault
from .records import WITHDRAWN_TYPE, Answer, Document, Target, make_document

if TYPE_CHECKING:
    from ._core import Core


class Decoding:
    """Encoding of the answers of one call, and their decoder."""

    def __init__(self, core: Core, is_stored: bool, archive: str = "") -> None:
        self._core = core
        # For stored answers.
        self._archive = archive
        self._decoder = _stored.Decoder() if is_stored else None
        # Dictionary of the answer that was prepared last.
        self.dictionary: Any = None

    def set(self, request: Any) -> None:
        """Sets the accepted encodings of a request."""
        del request.accepted_encodings[:]
        if self._decoder is not None:
            request.accepted_encodings.append(messages.STORED)

    def prepare(self, message: Any) -> Steps[None]:
        """Fetches the dictionary of an answer if it is missing. Raises DictionaryNotFound also
        if the server withholds it since documents were withdrawn."""
        self.dictionary = None
        if message.encoding != messages.STORED or self._decoder is None:
            return
        needed = self._decoder.dictionary_hash(message.details)
        if needed is not None:
            dictionaries = self._core.dictionaries
            self.dictionary = dictionaries.get(needed)
            if self.dictionary is None:
                try:
                    data = yield from self._core.fetch_dictionary(self._archive, needed)
                except DocumentWithdrawn as error:
                    raise DictionaryNotFound(str(error)) from None
                self.dictionary = dictionaries.add(needed, data)

    def text(self, message: Any, dictionary: Any) -> bytes:
        """The checked bytes of an answer; `dictionary`: that of prepare(). Thread-safe."""
        data: bytes = message.data
        if xxh3_64_intdigest(data) != message.checksum:
            raise AnswerDamaged("received bytes do not match their checksum")
        size: int = message.range.size_bytes
        if message.encoding == messages.IDENTITY:
            if len(data) != size:
                raise ServerFault(f"the server sent {len(data)} bytes, named {size} bytes")
            return data
        if message.encoding != messages.STORED or self._decoder is None:
            raise ServerFault(f"the server sent wire encoding {message.encoding}, which was not "
                              "asked for")
        return self._decoder.decode(message.details, data, size, dictionary)


def expected_span(target: Target, document: Optional[Document]) -> Tuple[int, int]:
    """Offset and size that an answer must have. Raises ServerFault."""
    name, part = target.name, target.part
    if name is None:
        assert part is not None
        return part
    if document is None:
        raise ServerFault("the server did not say which document it sent")
    if (document.ordinal if isinstance(name, int) else document.id) != name:
        raise ServerFault(f"the server sent document {document.ordinal} for another one")
    if part is None:
        return document.offset, document.size
    if part[0] + part[1] > document.size:
        raise ServerFault("the server answered a part past the end of the document")
    return document.offset + part[0], part[1]


def make_readable(message: Any) -> Document:
    """The document of an answer. Raises DocumentWithdrawn if the bytes are only zeros, which
    stand for what was removed for good."""
    document = make_document(message)
    if document.record_type == WITHDRAWN_TYPE:
        raise DocumentWithdrawn(f"document {document.ordinal} was removed for good",
                                reason="DOCUMENT_WITHDRAWN")
    return document


def check_answer(target: Target, message: Any, decoding: Decoding) -> Answer:
    """The answer of a ReadResponse or BatchResult. REQUIRES: decoding.prepare()."""
    document = make_readable(message.document) if message.HasField("document") else None
    span = message.range
    offset, size = span.offset, span.size_bytes
    key, name, part = target
    # The first is true of most answers, and quick.
    if (document is None or (document.id != name and document.ordinal != name)
            or part is not None
            or document.offset != offset or document.size != size) \
            and (offset, size) != expected_span(target, document):
        raise ServerFault(f"the server sent {size} bytes at offset {offset} for {key!r}")
    if message.encoding != messages.IDENTITY:
        return Answer(key, document, decoding.text(message, decoding.dictionary))
    data = message.data
    if xxh3_64_intdigest(data) != message.checksum or len(data) != size:
        decoding.text(message, decoding.dictionary)
    return Answer(key, document, data)
