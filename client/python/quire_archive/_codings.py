# SPDX-License-Identifier: Apache-2.0
"""Layers of the body of an HTTP message: chunks, and content codings.

The rules are those of client/quire/payload/chunk_decoder.cc and content_decoder.cc;
payload_test.py compares both.
"""
from __future__ import annotations

import re
import zlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._stored import optional_module
from .errors import LimitExceeded

brotli = optional_module("brotli")
zstandard = optional_module("zstandard")

# White space in ASCII.
BLANK = " \t\n\v\f\r"
_CHUNK_LINE_SIZE_MAX = 16 << 10
_CHUNK_DIGITS_MAX = 16
# First part of a body by which chunks are recognised.
_CHUNK_TRIAL_SIZE = 64 << 10
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]+)[ \t\n\v\f\r]*(?:;.*)?", re.DOTALL)
# First bytes, and the others, of the magic numbers of skippable frames.
_SKIPPABLE_FIRST = [bytes([byte]) for byte in range(0x50, 0x60)]
_SKIPPABLE = b"\x2a\x4d\x18"
# RFC 8878, section 7.
_ZSTD_WINDOW_SIZE_MAX = 8 << 20
# Output is bounded after each of these.
_PIECE_SIZE = 16 << 10
# First part of a body by which a coding without a signature is recognised, and bound on
# what is decoded of it for that.
_TRIAL_SIZE = 4 << 10
_TRIAL_OUTPUT_SIZE_MAX = 64 << 10
# Headers that usual encoders write, and no text has.
_USUAL_ZLIB_HEADERS = (b"\x78\x01", b"\x78\x9c", b"\x78\xda")
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
_FEW_BYTES = 64
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
# A byte of brotli can decode to 16 MiB.
_BROTLI_PIECE_SIZE = 64
UINT64_MAX = 2**64 - 1


def ascii_lower(text: str) -> str:
    """In lower case, as headers are compared: U+212A, for example, is not a k."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


class Fault(Exception):
    """The payload is malformed; `data` is the output so far.

    `is_end`: it ends too early, and nothing else is wrong.
    """

    def __init__(self, message: str, data: bytes = b"", is_end: bool = False) -> None:
        super().__init__(message)
        self.data = data
        self.is_end = is_end


# --- Codings. Each takes a whole body and returns (decoded, was it coded). Raises
# Fault with the output before the error. `is_whole`: False if bytes of the body are
# missing, which is reported elsewhere; then what there is of it is decoded.

class Output:
    """Bytes of one layer, bounded."""

    def __init__(self, size_max: int) -> None:
        self._size_max = size_max
        self._parts: List[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Appends. Raises LimitExceeded."""
        self.size += len(part)
        if self.size > self._size_max:
            raise LimitExceeded(f"the payload decodes to more than {self._size_max} bytes, "
                                "size_max")
        self._parts.append(part)

    def fault(self, message: str) -> Fault:
        """After what was decoded."""
        return Fault(message, self.data())

    def end(self, message: str) -> Fault:
        """The body ends too early."""
        return Fault(f"the body is cut short{message}", self.data(), is_end=True)

    def data(self) -> bytes:
        """All of it."""
        return b"".join(self._parts)


_Decoded = Tuple[bytes, bool]
Coding = Callable[[bytes, bool, Output], _Decoded]


def decode_chunked(body: bytes, is_whole: bool, out: Output) -> _Decoded:
    first = body[:_CHUNK_TRIAL_SIZE]
    # An empty body needs no chunks.
    if not body or (not is_whole and _is_cut_before_text(first)):
        return b"", True
    if not _seems_chunked(first, len(body) < _CHUNK_TRIAL_SIZE):
        return _unchanged(body, out)
    at = 0
    while True:
        line, end = _chunk_line(body, at)
        if line is None:
            if len(body) - at > _CHUNK_LINE_SIZE_MAX:
                raise _malformed_chunk(out, body[at:], "begin")
            if is_whole:
                raise out.end(": its last chunk is missing")
            return out.data(), True
        size = _chunk_size(line)
        if size is None:
            raise _malformed_chunk(out, body[at:], "begin")
        if size == 0:
            return _skip_trailer(body, end, out)
        chunk = body[end:end + size]
        out.add(chunk)
        at = end + size
        if len(chunk) < size:
            if is_whole:
                raise out.end(f": {size - len(chunk)} bytes of a chunk are missing")
            return out.data(), True
        line, end = _chunk_line(body, at)
        if line is None and len(body) - at <= _CHUNK_LINE_SIZE_MAX:
            if is_whole:
                raise out.end(" at the end of a chunk")
            return out.data(), True
        if line is None or line:
            raise _malformed_chunk(out, body[at:], "end")
        at = end


def _chunk_size(line: bytes) -> Optional[int]:
    """Of the line before a chunk; None if it is none."""
    match = _CHUNK_SIZE.fullmatch(line)
    # int() takes long for many digits.
    digits = match.group(1).lstrip(b"0") if match is not None else b""
    if match is None or len(digits) > _CHUNK_DIGITS_MAX:
        return None
    return int(digits or b"0", 16)


def _seems_chunked(text: bytes, is_end: bool) -> Optional[bool]:
    """Tells if a body that begins with `text` is chunked; None if more bytes are needed.

    `is_end`: it has no more. A body that is not chunked may begin with a line of
    hexadecimal digits, so the first chunk must end as it should.
    """
    if not text:
        return None
    is_all = is_end or len(text) >= _CHUNK_TRIAL_SIZE
    line_end = text.find(b"\n", 0, _CHUNK_LINE_SIZE_MAX)
    if line_end < 0:
        return False if is_all or len(text) > _CHUNK_LINE_SIZE_MAX else None
    size = _chunk_size(text[:line_end].rstrip(BLANK.encode()))
    if size is None:
        return False
    rest = text[line_end + 1:]
    if size == 0:
        trial = _seems_trailer(rest, is_end)
        return False if trial is None and is_all else trial
    after = rest[size:].lstrip(b" \t\v\f\r")
    if after:
        return after[:1] == b"\n"
    # In messages over HTTP the lines end with CR LF.
    return text[:line_end].endswith(b"\r") if is_all else None


def _seems_trailer(rest: bytes, is_end: bool) -> Optional[bool]:
    """The same of a body that begins with an empty chunk, by what follows that."""
    while True:
        line, has_end, rest = rest.partition(b"\n")
        if not has_end:
            return False if is_end else None
        line = line.rstrip(BLANK.encode())
        if not line:
            break
        if line.find(b":") < 1:
            return False
    if rest.strip(b"\r\n"):
        return False
    return True if is_end else None


def _is_cut_before_text(first: bytes) -> bool:
    """A body that was cut may be chunked, and was cut before the text of its first chunk."""
    if _seems_chunked(first, False) is not None:
        return False
    line, has_end, _ = first.partition(b"\n")
    size = _chunk_size(line.rstrip(BLANK.encode()))
    return size == 0 if has_end else size is not None


def _chunk_line(body: bytes, at: int) -> Tuple[Optional[bytes], int]:
    """The line at `at` without its end, and the offset after it; None if it does not end."""
    end = body.find(b"\n", at, at + _CHUNK_LINE_SIZE_MAX)
    if end < 0:
        return None, at
    return body[at:end + 1].rstrip(BLANK.encode()), end + 1


def _skip_trailer(body: bytes, at: int, out: Output) -> _Decoded:
    while True:
        line, end = _chunk_line(body, at)
        if line is None and len(body) - at > _CHUNK_LINE_SIZE_MAX:
            raise _malformed_chunk(out, body[at:], "begin")
        if not line:
            return out.data(), True
        at = end


def _malformed_chunk(out: Output, rest: bytes, where: str) -> Fault:
    return out.fault("the body is not chunked as Transfer-Encoding says: found "
                     f"{rest[:20]!r} where a chunk must {where}")


def _bad_coding(out: Output, name: str, why: object) -> Fault:
    return out.fault(f"the body is not {name} data, as its header says, or damaged: {why}")


def _unfinished(out: Output, name: str) -> Fault:
    return out.end(f": its {name} data do not end")


def _is_text(data: bytes) -> bool:
    """False for compressed bytes: they have control characters or, where they are few, are
    not UTF-8."""
    if data.translate(None, _CONTROLS) != data:
        return False
    if len(data) >= _FEW_BYTES:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _unchanged(body: bytes, out: Output) -> _Decoded:
    """A body that does not have the coding; one of no byte needs none."""
    out.add(body)
    return out.data(), not body


class _Trial(NamedTuple):
    """What became of the first bytes of a body in a decoder."""

    # None: they are malformed.
    size: Optional[int]
    is_complete: bool = False
    # Bytes follow after the end.
    has_rest: bool = False

    def seems_coded(self, first: bytes, is_whole: bool) -> bool:
        """Tells if these bytes, which may be all of the body, have the coding."""
        if self.size is None:
            return False
        if is_whole and self.size <= _TRIAL_OUTPUT_SIZE_MAX and self.is_complete \
                and not self.has_rest:
            return True
        # Text may look like a stream that has just begun.
        if _is_text(first):
            return False
        return self.size > 0 or not (is_whole or self.is_complete)


def _begins_with(body: bytes, magic: bytes, is_whole: bool) -> bool:
    """If it is not whole, True also where it ends inside of the magic bytes."""
    first = body[:len(magic)]
    return first == magic if is_whole else magic.startswith(first)


def _decode_gzip(body: bytes, is_whole: bool, out: Output) -> _Decoded:
    if not _begins_with(body, b"\x1f\x8b", is_whole):
        return _unchanged(body, out)
    return _decode_zlib("gzip", zlib.MAX_WBITS + 16, body, is_whole, out)


def _decode_deflate(body: bytes, is_whole: bool, out: Output) -> _Decoded:
    """zlib's format or, from some servers, raw DEFLATE."""
    first = body[:_TRIAL_SIZE]
    has_header = len(body) >= 2 and body[0] & 15 == 8 and (body[0] * 256 + body[1]) % 31 == 0
    is_sure = any(_begins_with(body, header, is_whole) for header in _USUAL_ZLIB_HEADERS)
    for bits in (zlib.MAX_WBITS, -zlib.MAX_WBITS):
        if bits > 0 and not has_header and not is_sure:
            continue
        if is_sure \
                or _try_deflate(first, bits).seems_coded(
                    first, is_whole and len(body) < _TRIAL_SIZE):
            return _decode_zlib("deflate", bits, body, is_whole, out)
    return _unchanged(body, out)


def _try_deflate(first: bytes, bits: int) -> _Trial:
    decoder = zlib.decompressobj(bits)
    try:
        decoded = decoder.decompress(first, _TRIAL_OUTPUT_SIZE_MAX + 1)
    except zlib.error:
        return _Trial(None)
    return _Trial(len(decoded), decoder.eof, bool(decoder.unused_data))


def _decode_zlib(name: str, bits: int, body: bytes, is_whole: bool, out: Output) -> _Decoded:
    rest = memoryview(body)
    is_first_member = True
    while True:
        decoder = zlib.decompressobj(bits)
        begun = out.size
        try:
            rest = _inflate(decoder, rest, out)
        except zlib.error as error:
            if not is_first_member and out.size == begun:
                return out.data(), True
            raise _bad_coding(out, name, error) from None
        if not decoder.eof:
            if is_whole:
                raise _unfinished(out, name)
            return out.data(), True
        # Another member follows, or bytes that are ignored.
        if name != "gzip" or not rest or rest[0] != 0x1F:
            return out.data(), True
        is_first_member = False


def _inflate(decoder: Any, rest: memoryview, out: Output) -> memoryview:
    """Decodes up to the end of a stream; returns what follows it."""
    pending: Any = b""
    # A byte first: after an error zlib does not say if there was output.
    size_max = 1
    while not decoder.eof and (rest or pending):
        if not pending:
            pending, rest = rest[:_PIECE_SIZE], rest[_PIECE_SIZE:]
        out.add(decoder.decompress(pending, size_max))
        pending = decoder.unconsumed_tail
        size_max = 1 << 20
    while not decoder.eof:
        # Bytes that are decoded already.
        part = decoder.decompress(b"", 1 << 20)
        if not part:
            break
        out.add(part)
    unused = len(decoder.unused_data)
    return memoryview(bytes(decoder.unused_data) + bytes(rest)) if unused else rest


def _decode_brotli(body: bytes, is_whole: bool, out: Output) -> _Decoded:
    first = body[:_TRIAL_SIZE]
    if brotli is None:
        if _is_text(first):
            return _unchanged(body, out)
        raise out.fault("the body is coded as br; install the package brotli")
    if not _try_brotli(first).seems_coded(first, is_whole and len(body) < _TRIAL_SIZE):
        return _unchanged(body, out)
    has_ended, _, error = _run_brotli(body, out.add)
    if error is not None:
        raise _bad_coding(out, "br", error)
    if not has_ended and is_whole:
        raise _unfinished(out, "br")
    return out.data(), True


def _try_brotli(first: bytes) -> _Trial:
    size = 0

    def take(part: bytes) -> None:
        nonlocal size
        size += len(part)
        if size > _TRIAL_OUTPUT_SIZE_MAX:
            raise _Enough

    try:
        has_ended, end, error = _run_brotli(first, take)
    except _Enough:
        return _Trial(size)
    return _Trial(size if error is None else None, has_ended, end < len(first))


class _Enough(Exception):
    """A trial has decoded enough."""


def _run_brotli(body: bytes, take: Callable[[bytes], None]) -> Tuple[bool, int, Any]:
    """Decodes up to the end of the stream: if it was reached, what was read, and the error."""
    decoder = brotli.Decompressor()
    at = 0
    while at < len(body) and not decoder.is_finished():
        end = at + _BROTLI_PIECE_SIZE
        try:
            part = decoder.process(body[at:end])
        except brotli.error:
            # Bytes after the end are an error too, and a decoder does not survive one: the
            # same again, and this piece by single bytes.
            decoder = brotli.Decompressor()
            for again in range(0, at, _BROTLI_PIECE_SIZE):
                decoder.process(body[again:again + _BROTLI_PIECE_SIZE])
            while at < min(end, len(body)) and not decoder.is_finished():
                try:
                    part = decoder.process(body[at:at + 1])
                except brotli.error as error:
                    return False, at, error
                take(part)
                at += 1
        else:
            take(part)
            at = min(end, len(body))
    return decoder.is_finished(), at, None


def _decode_zstd(body: bytes, is_whole: bool, out: Output) -> _Decoded:
    if not _begins_with(body, b"\x28\xb5\x2f\xfd", is_whole) and not (
            body[:1] in _SKIPPABLE_FIRST and _begins_with(body[1:], _SKIPPABLE, is_whole)):
        return _unchanged(body, out)
    if zstandard is None:
        raise out.fault("the body is coded as zstd; install the package zstandard")
    at = 0
    while at < len(body):
        if _is_skippable(body, at):
            end = at + 8 + int.from_bytes(body[at + 4:at + 8], "little")
            is_complete = len(body) >= at + 8 and end <= len(body)
        else:
            end, is_complete = _decode_zstd_frame(body, at, out)
        if not is_complete:
            if is_whole:
                raise _unfinished(out, "zstd")
            break
        at = end
    return out.data(), True


def _decode_zstd_frame(body: bytes, at: int, out: Output) -> Tuple[int, bool]:
    """Offset after the frame, and if it is complete."""
    decoder = zstandard.ZstdDecompressor(
        max_window_size=_ZSTD_WINDOW_SIZE_MAX).decompressobj(write_size=1 << 17)
    end = at
    # The first bytes alone: of a frame that it has as a whole the library checks more.
    size = 4
    while end < len(body):
        piece = body[end:end + size]
        size = _PIECE_SIZE
        try:
            out.add(decoder.decompress(piece))
        except zstandard.ZstdError as error:
            raise _bad_coding(out, "zstd", error) from None
        end += len(piece)
        if decoder.eof:
            return end - len(decoder.unused_data), True
    return end, False


def _is_skippable(body: bytes, at: int) -> bool:
    return body[at + 1:at + 4] == _SKIPPABLE \
        and body[at:at + 1] in _SKIPPABLE_FIRST


def _undecoded(name: str, magic: bytes) -> Coding:
    """A coding that is not decoded, and the first bytes of its bodies; none: any that are
    not text."""
    def decode(body: bytes, is_whole: bool, out: Output) -> _Decoded:
        if (_begins_with(body, magic, is_whole) if magic else not _is_text(body[:_TRIAL_SIZE])):
            raise out.fault(f"the body is coded as {name!r}; known are gzip, deflate, br, zstd "
                            "and, for transfer, chunked")
        return _unchanged(body, out)
    return decode


CODINGS: Dict[str, Coding] = {
    "gzip": _decode_gzip, "x-gzip": _decode_gzip, "deflate": _decode_deflate,
    "br": _decode_brotli, "zstd": _decode_zstd,
    **{name: _undecoded(name, magic) for name, magic in (
        ("compress", b"\x1f\x9d"), ("x-compress", b"\x1f\x9d"), ("pack200-gzip", b"\x1f\x8b"),
        ("dcb", b"\xffDCB"), ("dcz", b"\x5e\x2a\x4d\x18"), ("aes128gcm", b""), ("exi", b""))}}
