# SPDX-License-Identifier: Apache-2.0
"""Decodes answers in the wire encoding `stored`: the blocks of the archive.

codecs/CODECS.md defines the blocks. Answers hold each partition as a block of its
own, so blocks have no partition sizes here; blocks with recipes are not requested.
"""
from __future__ import annotations

import collections
import concurrent.futures
import functools
import importlib
import lzma
import os
import threading
import zlib
from typing import Any, Callable, List, Optional

import xxhash

from .errors import AnswerDamaged
from .records import ArchiveInfo


def optional_module(name: str) -> Any:
    """A module; None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


zstandard = optional_module("zstandard")

BLOCK_SIZE_MAX = 1 << 20
_THREADS_MAX = 4
_LZMA_FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
_CODECS = {"copy", "zlib", "xz"} | ({"zstd", "rlz"} if zstandard is not None else set())
_WITH_DICTIONARY = {"rlz"}


def can_decode(info: ArchiveInfo, dictionary_size_max: int) -> bool:
    """True if this client has the decoder of the archive's codec."""
    return info.codec in _CODECS and (
        info.codec not in _WITH_DICTIONARY or info.dictionary_size <= dictionary_size_max)


class Dictionaries:
    """Dictionaries of a client, by hash; the least used are dropped. Thread-safe."""

    def __init__(self, size_max: int) -> None:
        self.size_max = size_max
        self._lock = threading.Lock()
        self._size = 0
        self._by_hash: collections.OrderedDict[int, Any] = collections.OrderedDict()

    def get(self, table_hash: int) -> Any:
        """None if it must be fetched."""
        with self._lock:
            dictionary = self._by_hash.get(table_hash)
            if dictionary is not None:
                self._by_hash.move_to_end(table_hash)
            return dictionary

    def add(self, table_hash: int, data: bytes) -> Any:
        """Checks and stores the bytes of a dictionary; zstandard copies them."""
        if xxhash.xxh3_64_intdigest(data) != table_hash:
            raise AnswerDamaged(f"the server sent other bytes as dictionary {table_hash:016x} "
                                "than its hash is of")
        made = zstandard.ZstdCompressionDict(
            data, dict_type=zstandard.DICT_TYPE_RAWCONTENT) if data else b""
        if data:
            # Now: the first use, which prepares it, must not be in two threads.
            zstandard.ZstdDecompressor(dict_data=made).decompress(
                zstandard.ZstdCompressor().compress(b"any"))
        with self._lock:
            if table_hash not in self._by_hash:
                self._by_hash[table_hash] = made
                self._size += len(data)
                while self._size > self.size_max and len(self._by_hash) > 1:
                    _, dropped = self._by_hash.popitem(last=False)
                    self._size -= len(dropped)
        return made


@functools.lru_cache(maxsize=None)
def thread_count() -> int:
    """Threads of threads()."""
    return min(_THREADS_MAX, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity")
               else os.cpu_count() or 1)


@functools.lru_cache(maxsize=None)
def threads() -> concurrent.futures.Executor:
    """The threads of this process that decode: the decoders release Python's lock."""
    return concurrent.futures.ThreadPoolExecutor(thread_count(), "quire-decode")


class Decoder:
    """Decodes the answers of one call. Thread-safe."""

    def __init__(self) -> None:
        # The last decompressor of each thread, and its dictionary.
        self._local = threading.local()

    def dictionary_hash(self, details: Any) -> Optional[int]:
        """Hash of the dictionary that decode() needs; None if it needs none."""
        if details.codec not in _WITH_DICTIONARY:
            return None
        if not details.HasField("table_hash"):
            raise AnswerDamaged(f"the server sent blocks of codec {details.codec} "
                                "without the hash of their dictionary")
        return int(details.table_hash)

    def decode(self, details: Any, data: bytes, size: int, dictionary: Any) -> bytes:
        """The text of an answer of `size` bytes; `dictionary`: that of dictionary_hash().

        Raises AnswerDamaged.
        """
        blocks = details.blocks
        _check_details(details, blocks, len(data), size)
        decode_block = self._block_decoder(details.codec, dictionary)
        view = memoryview(data)
        parts: List[Any] = []
        at = 0
        for block in blocks:
            stored = view[at:at + block.stored_size_bytes]
            at += block.stored_size_bytes
            parts.append(stored if block.is_uncoded else decode_block(stored, block.size_bytes))
        front, back = details.front_cut_size_bytes, details.back_cut_size_bytes
        if back:
            parts[-1] = memoryview(parts[-1])[:-back]
        if front:
            parts[0] = memoryview(parts[0])[front:]
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def _block_decoder(self, codec: str, dictionary: Any) -> Callable[[Any, int], bytes]:
        if codec not in _CODECS:
            raise AnswerDamaged(f"the server sent blocks of codec {codec!r}, which was not "
                                "asked for")
        if codec == "zlib":
            return _decode_zlib
        if codec == "xz":
            return _decode_xz
        if codec == "copy":
            return _decode_copy
        last, decompressor = getattr(self._local, "last", (None, None))
        if decompressor is None or last is not dictionary:
            decompressor = zstandard.ZstdDecompressor(dict_data=dictionary or None)
            self._local.last = (dictionary, decompressor)
        decompress = decompressor.decompress

        def decode(stored: Any, size: int) -> bytes:
            try:
                # Before anything is allocated; -1: the frame does not say.
                named = zstandard.frame_content_size(stored)
                text: bytes = b"" if named not in (-1, size) else decompress(
                    stored, max_output_size=size)
            except zstandard.ZstdError as error:
                raise _bad(f"that does not decode: {error}") from None
            return _checked(text, size)
        return decode


def _bad(what: str) -> AnswerDamaged:
    return AnswerDamaged(f"the server sent stored blocks {what}")


def _checked(text: bytes, size: int) -> bytes:
    if len(text) != size:
        raise _bad(f"of another size than {size} bytes")
    return text


def _check_details(details: Any, blocks: Any, data_size: int, size: int) -> None:
    """After this the sizes of all blocks add up to those of data and range."""
    stored_size = text_size = 0
    for block in blocks:
        block_size, block_stored_size = block.size_bytes, block.stored_size_bytes
        if not 0 < block_size <= BLOCK_SIZE_MAX:
            raise _bad(f"with a block of {block_size} bytes")
        if block.has_recipe:
            raise _bad("with a recipe, which was not asked for")
        if block.is_uncoded and block_stored_size != block_size:
            raise _bad("with an uncoded block of two sizes")
        stored_size += block_stored_size
        text_size += block_size
    if not blocks or stored_size != data_size:
        raise _bad(f"of {stored_size} bytes in an answer of {data_size}")
    front, back = details.front_cut_size_bytes, details.back_cut_size_bytes
    if text_size != front + size + back:
        raise _bad(f"of {text_size} bytes, not cuts of {front} and {back} around {size}")
    if front >= blocks[0].size_bytes or back >= blocks[-1].size_bytes:
        raise _bad(f"that cut off {front} and {back} bytes, a block or more")


def _decode_copy(_stored: Any, size: int) -> bytes:
    raise _bad(f"of codec copy with a block of {size} bytes that is encoded")


def _decode_zlib(stored: Any, size: int) -> bytes:
    try:
        return _checked(zlib.decompressobj(-zlib.MAX_WBITS).decompress(stored, size + 1), size)
    except zlib.error as error:
        raise _bad(f"that does not decode: {error}") from None


def _decode_xz(stored: Any, size: int) -> bytes:
    try:
        decoder = lzma.LZMADecompressor(format=lzma.FORMAT_RAW, filters=_LZMA_FILTERS)
        return _checked(decoder.decompress(stored, max_length=size + 1), size)
    except lzma.LZMAError as error:
        raise _bad(f"that does not decode: {error}") from None
