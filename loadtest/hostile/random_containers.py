# SPDX-License-Identifier: Apache-2.0
"""Containers of every kind for random_inputs.py, and Python's own readers of them.

The text of documents consists of tokens, each of which has a checksum of its number: what
is altered or cut, and what is missing, shows in any text without comparing it.
"""
import bz2
import csv
import gzip
import io
import json
import lzma
import re
import struct
import tarfile
import zipfile
import zlib
from typing import Callable, List, NamedTuple, Optional, Tuple

import lz4.frame
import zstandard

TOKEN = re.compile(rb"<(\d{6}):([0-9a-f]{8})>")
FILTERS = ("", "gz", "bz2", "xz", "zst", "lz4")
DATE = "2021-01-01T00:00:00Z"


def token(number: int) -> bytes:
    """17 bytes."""
    return b"<%06d:%08x>" % (number, zlib.crc32(b"token %d" % number))


def tokens_of(text: bytes) -> "set[int]":
    """Numbers of the tokens that are intact."""
    return {int(number) for number, check in TOKEN.findall(text)
            if token(int(number))[8:16] == check}


class Made(NamedTuple):
    """A container with the documents given."""

    # Format and filter.
    form: str
    filter: str
    file_name: str
    # Options of `quired build`.
    options: List[str]
    # Contents before the filter, and the file.
    plain: bytes
    data: bytes
    # Offset in `plain` after each document; none if the format is not sequential.
    ends: List[int]
    # Ends of the parts that are compressed on their own: in the file, and in `plain`.
    parts: List[Tuple[int, int]]


# --- Filters.

def compress(kind: str, part: bytes) -> bytes:
    """A complete stream, with a checksum."""
    if kind == "gz":
        return gzip.compress(part, mtime=0)
    if kind == "bz2":
        return bz2.compress(part)
    if kind == "xz":
        return lzma.compress(part)
    if kind == "zst":
        return zstandard.ZstdCompressor(write_checksum=True).compress(part)
    if kind == "lz4":
        return lz4.frame.compress(part, content_checksum=True)
    return part


_DECODERS: "dict[str, Callable[[], object]]" = {
    "gz": lambda: zlib.decompressobj(31), "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
    "zst": lambda: zstandard.ZstdDecompressor().decompressobj(),
    "lz4": lz4.frame.LZ4FrameDecompressor}
_ERRORS = (zlib.error, OSError, lzma.LZMAError, EOFError, zstandard.ZstdError, RuntimeError,
           ValueError)


def decompress(kind: str, data: bytes) -> Optional[bytes]:
    """All of it; None if any part of the file is damaged, cut, or no stream."""
    if not kind:
        return data
    found = []
    while data:
        decoder = _DECODERS[kind]()
        try:
            found.append(decoder.decompress(data))
        except _ERRORS:
            return None
        if not decoder.eof:
            return None
        data = decoder.unused_data or b""
        if not data.strip(b"\0"):
            # Padding of tapes and of xz.
            break
    return b"".join(found)


# --- Formats. Each maker returns the plain contents and the offset after each document.

Documents = List[Tuple[str, bytes]]


def _joined(pieces: List[bytes], after: bytes = b"") -> Tuple[bytes, List[int]]:
    ends, at = [], 0
    for piece in pieces:
        at += len(piece)
        ends.append(at)
    return b"".join(pieces) + after, ends


def _make_lines(documents: Documents) -> Tuple[bytes, List[int]]:
    return _joined([text + b"\n" for _, text in documents])


def _make_jsonl(documents: Documents) -> Tuple[bytes, List[int]]:
    return _joined([json.dumps({"id": name, "text": text.decode()}).encode() + b"\n"
                    for name, text in documents])


def _make_csv(documents: Documents) -> Tuple[bytes, List[int]]:
    plain, ends = _joined([b"id,text\n"] + [
        b"%b,%b\n" % (name.encode(), text) for name, text in documents])
    return plain, ends[1:]


def _make_tar(documents: Documents) -> Tuple[bytes, List[int]]:
    pieces = []
    for name, text in documents:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        pieces.append(info.tobuf(tarfile.USTAR_FORMAT) + text + bytes(-len(text) % 512))
    return _joined(pieces, bytes(1024))


def _warc_record(kind: str, uri: str, block: bytes) -> bytes:
    return (f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: {DATE}\r\n"
            f"WARC-Record-ID: <urn:uuid:{zlib.crc32(uri.encode()):036}>\r\n"
            f"Content-Type: text/plain\r\nContent-Length: {len(block)}\r\n\r\n"
            ).encode() + block + b"\r\n\r\n"


def _make_warc(documents: Documents) -> Tuple[bytes, List[int]]:
    return _joined([_warc_record("resource", f"http://example.org/{name}", text)
                    for name, text in documents])


def _make_arc(documents: Documents) -> Tuple[bytes, List[int]]:
    description = b"1 0 test\nURL IP-address Archive-date Content-type Archive-length\n"
    pieces = [b"filedesc://a.arc 0.0.0.0 20210101000000 text/plain %d\n%b\n"
              % (len(description), description)]
    for name, text in documents:
        block = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + text
        pieces.append(b"http://example.org/%b 192.0.2.1 20210101000000 text/plain %d\n%b\n"
                      % (name.encode(), len(block), block))
    plain, ends = _joined(pieces)
    return plain, ends[1:]


_FORMS = {"lines": _make_lines, "jsonl": _make_jsonl, "csv": _make_csv, "tar": _make_tar,
          "warc": _make_warc, "arc": _make_arc}
_EXTENSIONS = {"lines": "log"}
_FIELDS = ["--id-field", "id", "--text-field", "text"]
_OPTIONS = {"lines": ["--split", "lines"], "jsonl": ["--split", "lines", *_FIELDS],
            "csv": ["--split", "lines", *_FIELDS]}


def _zip(members: "List[Tuple[str, bytes, int]]") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for name, data, method in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            out.writestr(info, data)
    return file.getvalue()


def _zip_documents(draw, documents: Documents) -> bytes:
    return _zip([(name, text, draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
                 for name, text in documents])


def _wacz(documents: Documents) -> bytes:
    plain, ends = _make_warc(documents)
    begins = [0, *ends]
    warc = b"".join(compress("gz", plain[a:b]) for a, b in zip(begins, ends))
    return _zip([("archive/data.warc.gz", warc, zipfile.ZIP_STORED),
                 ("datapackage.json", b'{"profile": "data-package"}', zipfile.ZIP_STORED)])


KINDS = [(form, kind) for form in _FORMS for kind in FILTERS
         if form not in ("warc", "arc") or kind in ("", "gz")] + [("zip", ""), ("wacz", "")]


def make(draw, form: str, kind: str, documents: Documents) -> Made:
    """A container in one or several parts."""
    if form in ("zip", "wacz"):
        data = _zip_documents(draw, documents) if form == "zip" else _wacz(documents)
        return Made(form, "", f"in.{form}", [], b"", data, [], [])
    plain, ends = _FORMS[form](documents)
    cuts: List[int] = []
    if form in ("warc", "arc"):
        # A member for each record.
        cuts = ends[:-1]
        if form == "arc":
            cuts = [plain.index(b"http://example.org/"), *cuts]
    elif kind:
        cuts = sorted(draw.sample(range(1, len(plain)), draw.choice((0, 1, 4, 12))))
    parts, data = [], b""
    for begin, end in zip([0, *cuts], [*cuts, len(plain)]):
        data += compress(kind, plain[begin:end])
        parts.append((len(data), end))
    extension = _EXTENSIONS.get(form, form) + (f".{kind}" if kind else "")
    return Made(form, kind, f"in.{extension}", _OPTIONS.get(form, []), plain, data, ends,
                parts if kind else [])


# --- Python's readers: the documents of an undamaged file, in order; None: damaged, or in
# doubt.

def _read_jsonl(plain: bytes) -> Optional[Documents]:
    found = []
    for line in filter(None, plain.split(b"\n")):
        try:
            record = json.loads(line)
            if list(record) != ["id", "text"]:
                return None
            found.append((record["id"].encode().decode(), record["text"].encode()))
        except (ValueError, TypeError, AttributeError):
            return None
    return found


def _read_csv(plain: bytes) -> Optional[Documents]:
    lines = plain.split(b"\n")
    if lines[0] != b"id,text" or lines[-1] or b'"' in plain or b"\r" in plain or b"\0" in plain:
        return None
    try:
        rows = list(csv.reader(line.decode() for line in lines[1:-1]))
    except (ValueError, csv.Error):
        return None
    if any(len(row) != 2 for row in rows):
        return None
    return [(name, text.encode()) for name, text in rows]


def _read_tar(plain: bytes) -> Optional[Documents]:
    found, at = [], 0
    while True:
        header = plain[at:at + 512]
        if header == bytes(512) and not plain[at:].strip(b"\0") and len(plain) - at >= 1024:
            return found
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
        except (tarfile.HeaderError, ValueError):
            return None
        text = plain[at + 512:at + 512 + info.size]
        if info.type != tarfile.REGTYPE or len(text) != info.size or not info.name:
            return None
        found.append((info.name, text))
        at += 512 + info.size + -info.size % 512


def _read_zip(data: bytes) -> Optional[Documents]:
    found = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            for info in file.infolist():
                local = data[info.header_offset:info.header_offset + 30]
                fields = struct.unpack("<4sHHHHHIIIHH", local)
                name_end = info.header_offset + 30 + fields[9]
                if fields[2] or info.flag_bits or fields[3] != info.compress_type \
                        or fields[6:9] != (info.CRC, info.compress_size, info.file_size) \
                        or data[info.header_offset + 30:name_end] != info.filename.encode() \
                        or fields[10] or info.extra or info.is_dir():
                    return None
                found.append((info.filename, file.read(info)))
    except Exception:  # pylint: disable=broad-except
        # zipfile raises various errors for damage.
        return None
    # Nothing is between the members or around them.
    parts = sorted((info.header_offset, info.header_offset + 30 + len(info.filename.encode())
                    + info.compress_size) for info in file.infolist())
    ends = [0, *(end for _, end in parts)]
    if any(begin != end for (begin, _), end in zip(parts, ends)) or file.start_dir != ends[-1] \
            or file.comment:
        return None
    return found


def read(form: str, plain: bytes, data: bytes) -> Optional[Documents]:
    """For formats whose records join to the file: one document of all of it."""
    if form == "lines":
        return [("", plain)]
    if form == "jsonl":
        return _read_jsonl(plain)
    if form == "csv":
        return _read_csv(plain)
    if form == "tar":
        return _read_tar(plain)
    if form == "zip":
        return _read_zip(data)
    return None
