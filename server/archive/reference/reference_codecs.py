# SPDX-License-Identifier: GPL-3.0-or-later
"""FORMAT.md, sections 1, 7 and 8: fields, codecs, compression methods."""

import itertools
import lzma
import struct
import subprocess
import zlib

import lz4.block
import xxhash
import zstandard


class Refused(Exception):
    """The archive breaks a MUST of FORMAT.md."""


def require(condition, message):
    if not condition:
        raise Refused(message)


def checksum(data, seed=0):
    return xxhash.xxh3_64_intdigest(data, seed)


class Bytes:
    """Takes fields off the front of a byte string (section 1)."""

    def __init__(self, data, name):
        self.data = data
        self.position = 0
        self.name = name

    def take(self, size):
        require(size <= len(self.data) - self.position, f"{self.name}: cut short")
        self.position += size
        return self.data[self.position - size : self.position]

    def u32(self):
        return struct.unpack("<I", self.take(4))[0]

    def u64(self):
        return struct.unpack("<Q", self.take(8))[0]

    def varint(self):
        value = 0
        for i in range(10):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * i)
            if byte < 0x80:
                require(value < 1 << 64, f"{self.name}: varint over 64 bits")
                require(byte != 0 or i == 0, f"{self.name}: varint not shortest")
                return value
        raise Refused(f"{self.name}: varint of more than ten bytes")

    def column(self, count):
        """Section 6.1; takes all that is left."""
        values = self.inner_column(count)
        require(self.position == len(self.data), f"{self.name}: size of column")
        return values

    def inner_column(self, count):
        """Section 6.1; more may follow."""
        width = self.take(1)[0]
        require(width <= 8, f"{self.name}: column of {width} bytes")
        planes = self.take(width * count)
        return [
            sum(planes[p * count + i] << (8 * p) for p in range(width))
            for i in range(count)
        ]


def unzigzag(value):
    return value >> 1 if value % 2 == 0 else -(value >> 1) - 1


def magic(letter):
    return b"\x8aQuire" + letter + b"\n"


def check_start(fields, letter):
    require(fields.take(8) == magic(letter), f"{fields.name}: magic")
    version = fields.u32()
    require(version == 4, f"{fields.name}: version {version}")


# --- Section 8: compression methods ---


def decompress(method, stored, size, name):
    require(method <= 2, f"{name}: compression method {method}")
    require(size <= 65535 + 65536 * len(stored), f"{name}: implausible size")
    try:
        if method == 0:
            data = stored
        elif method == 1:
            decoder = zstandard.ZstdDecompressor(
                max_window_size=1 << 27
            ).decompressobj()
            data = decoder.decompress(stored)
            require(decoder.eof and not decoder.unused_data, f"{name}: not one frame")
        else:
            decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=1 << 27)
            data = decoder.decompress(stored, size + 1)
            require(decoder.eof and not decoder.unused_data, f"{name}: not one stream")
    except (zstandard.ZstdError, lzma.LZMAError) as error:
        raise Refused(f"{name}: {error}") from error
    require(len(data) == size, f"{name}: {len(data)} bytes, expected {size}")
    return data


# --- Section 7: codecs ---


def inflate(data, size, dictionary=b""):
    decoder = zlib.decompressobj(-15, zdict=dictionary)
    text = decoder.decompress(data, size + 1)
    require(decoder.eof and not decoder.unused_data, "not one DEFLATE stream")
    return text


def rest_of(fields):
    return fields.take(len(fields.data) - fields.position)


def from_dictionary(dictionary, offset, length):
    require(offset + length <= len(dictionary), "factor past the dictionary")
    return dictionary[offset : offset + length]


def text_of_factors(offsets, length_bytes, size, dictionary):
    lengths = Bytes(length_bytes, "lengths")
    text = bytearray()
    for offset in offsets:
        length = lengths.varint()
        if length == 0:
            require(offset <= 255, "literal over 255")
            text.append(offset)
        else:
            text += from_dictionary(dictionary, offset, length)
        require(len(text) <= size, "more text than the block has")
    require(lengths.position == len(lengths.data), "more lengths than factors")
    return bytes(text)


def rlz(decode):
    """What all rlz- codecs have: a payload of text, marked by its first byte."""
    return lambda payload, size, dictionary: (
        payload[1:] if payload[0] == 0 else decode(payload, size, dictionary)
    )


def decode_fixed(payload, size, dictionary, width):
    fields = Bytes(payload, "rlz")
    count = fields.varint()
    require(count <= size, "more factors than text")
    packed = int.from_bytes(fields.take((count * width + 7) // 8), "little")
    offsets = [packed >> (i * width) & ((1 << width) - 1) for i in range(count)]
    return text_of_factors(offsets, rest_of(fields), size, dictionary)


def decode_rlz_uv(payload, size, dictionary):
    return decode_fixed(payload, size, dictionary, 32)


def decode_rlz_pv(payload, size, dictionary):
    width = max(8, max(len(dictionary) - 1, 0).bit_length())
    return decode_fixed(payload, size, dictionary, width)


def decode_rlz_zz(payload, size, dictionary):
    fields = Bytes(payload, "rlz-zz")
    count = fields.varint()
    require(count <= size, "more factors than text")
    offset_stream = fields.take(fields.varint())
    offsets = inflate(offset_stream, 4 * count)
    require(len(offsets) == 4 * count, "size of the offset stream")
    offsets = [offset for (offset,) in struct.iter_unpack("<I", offsets)]
    lengths = inflate(rest_of(fields), 3 * count)
    return text_of_factors(offsets, lengths, size, dictionary)


def decode_rlz_zzz(payload, size, dictionary):
    fields = Bytes(payload, "rlz-zzz")
    token_bytes = fields.varint()
    require(token_bytes <= size, "more tokens than text")
    token_stream_size = fields.varint()
    offset_stream_size = fields.varint()
    tokens = Bytes(inflate(fields.take(token_stream_size), token_bytes), "tokens")
    require(len(tokens.data) == token_bytes, "size of the token stream")
    streams = (fields.take(offset_stream_size), rest_of(fields))
    offsets, literals = (
        Bytes(inflate(stream, 4 * size) if stream else b"", "stream")
        for stream in streams
    )
    offset_size = max(1, (max(len(dictionary) - 1, 0).bit_length() + 7) // 8)
    text = bytearray()
    while tokens.position < token_bytes:
        token = tokens.varint()
        if token < 16:
            text += literals.take(token + 1)
        else:
            offset = int.from_bytes(offsets.take(offset_size), "little")
            text += from_dictionary(dictionary, offset, token - 15)
        require(len(text) <= size, "more text than the block has")
    for sequence, stream in zip((offsets, literals), streams):
        require(sequence.position == len(sequence.data), "not all is used")
        require(sequence.data or not stream, "a stream of nothing")
    return bytes(text)


def decode_zstd(payload, size):
    decoder = zstandard.ZstdDecompressor().decompressobj()
    text = decoder.decompress(payload)
    require(decoder.eof and not decoder.unused_data, "not one zstd frame")
    return text


def decode_zstd_with_dictionary(payload, size, dictionary):
    content = zstandard.ZstdCompressionDict(
        dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT
    )
    decoder = zstandard.ZstdDecompressor(dict_data=content).decompressobj()
    text = decoder.decompress(payload)
    require(decoder.eof and not decoder.unused_data, "not one zstd frame")
    return text


def decode_zlib_primed(payload, size, dictionary):
    fields = Bytes(payload, "zlib-primed")
    window = fields.varint()
    require(window <= len(dictionary), "window past the dictionary")
    return inflate(rest_of(fields), size, dictionary[window : window + 32768])


def symbols_of(table):
    """Section 4.1: a serialised symbol table's symbols, in order of their codes."""
    mark, count, _, _, version, zero, *sizes = struct.unpack("<BBBBIB8B", table.take(17))
    require(
        mark == 1 and version == 20190218 and zero <= 1, f"{table.name}: table's header"
    )
    require(
        sum(sizes) == count <= 255 and sizes[0] >= zero, f"{table.name}: histogram"
    )
    sizes[0] -= zero
    symbols = [b"\0"] * zero
    for size in (2, 3, 4, 5, 6, 7, 8, 1):
        symbols += [table.take(size) for _ in range(sizes[size - 1])]
    return symbols


def text_of_codes(codes, symbols):
    text = bytearray()
    position = 0
    while position < len(codes):
        code = codes[position]
        if code == 255:
            require(position + 1 < len(codes), "escape at the end")
            text.append(codes[position + 1])
            position += 2
        else:
            require(code < len(symbols), "code without a symbol")
            text += symbols[code]
            position += 1
    return bytes(text)


def decode_fsst(payload, size, symbols):
    fields = Bytes(payload, "fsst")
    kind = fields.take(1)[0]
    require(kind <= 1, "reserved kind of table")
    if kind == 1:
        symbols = symbols_of(fields)
    count = (size + 510) // 511
    begins = {i: fields.u32() for i in range(64, count, 64)} | {0: 0}
    for i in range(count):
        if i % 64 != 0:
            begins[i] = begins[i - i % 64] + struct.unpack("<H", fields.take(2))[0]
    codes = rest_of(fields)
    begins[count] = len(codes)
    text = b""
    for i in range(count):
        require(begins[i] <= begins[i + 1], "strings out of order")
        text += text_of_codes(codes[begins[i] : begins[i + 1]], symbols)
        require(len(text) == min(511 * (i + 1), size), f"size of string {i}")
    return text


def decode_lz4(payload, size, dictionary):
    return lz4.block.decompress(payload, uncompressed_size=size)


def decode_zlib_piece(payload):
    """A partition of zlib that is not the last."""
    require(payload.endswith(b"\0\0\xff\xff"), "zlib partition: no full flush")
    decoder = zlib.decompressobj(-15)
    text = decoder.decompress(payload, (1 << 20) + 1)
    require(not decoder.eof and not decoder.unconsumed_tail, "zlib partition: not one piece")
    # Only at the end of a block does an empty one end the stream.
    text += decoder.decompress(b"\x03\x00", 1)
    require(decoder.eof and not decoder.unused_data, "zlib partition: not one piece")
    return text


def decode_partitions(manifest, payload, size, dictionary):
    """CODECS.md, "Payload": the coded text of `size` bytes."""
    partition_size = manifest["partition_size"] or 1 << 20
    while (size + partition_size - 1) // partition_size > 256:
        partition_size *= 2
    count = (size + partition_size - 1) // partition_size
    fields = Bytes(payload, "partitions")
    sizes = [fields.varint() for _ in range(count - 1)]
    sizes.append(len(payload) - fields.position - sum(sizes))
    text = b""
    for i, stored_size in enumerate(sizes):
        require(stored_size > 0, "partition of no bytes")
        part_size = min(partition_size, size - len(text))
        stored = fields.take(stored_size)
        if manifest["codec"] == CODEC_ZLIB and i < count - 1:
            part = decode_zlib_piece(stored)
        else:
            part = CODECS[manifest["codec"]](stored, part_size, dictionary)
        require(len(part) == part_size, f"size of partition {i}")
        text += part
    return text


def decode_xz(payload, size):
    history = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    decoder = lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=history)
    text = decoder.decompress(payload, size + 1)
    require(decoder.eof and not decoder.unused_data, "not one LZMA2 stream")
    return text


def decode_numeric(payload, size):
    fields = Bytes(payload, "numeric")
    header = fields.take(1)[0]
    kind, width = header & 15, 1 << (header >> 4)
    require(
        kind == 0 and width == 1 or 1 <= kind <= 3 and width in (2, 4, 8),
        f"transform of kind {kind} and width {width}",
    )
    text = decode_zstd(rest_of(fields), size)
    require(len(text) == size, "size of the frame")
    if kind == 0:
        return text
    count = size // (8 * width) * 8
    numbers = bytearray(text)
    for j in range(width):
        plane = bytearray(text[j * count : (j + 1) * count])
        if kind == 2:
            plane = bytes(value & 255 for value in itertools.accumulate(plane))
        elif kind == 3:
            part = count // 8
            bits = plane
            plane = bytearray(count)
            for i in range(count):
                for b in range(8):
                    plane[i] |= (bits[b * part + i // 8] >> (i % 8) & 1) << b
        numbers[j : count * width : width] = plane
    return bytes(numbers)


CODEC_ZLIB = 4
CODEC_AUTO = 12
# The codecs that blocks of auto may be in.
MEMBERS = (1, 2, 10, 11, 22)


def decode_auto(payload, size, dictionary):
    require(payload and payload[0] in MEMBERS, "member of auto")
    return CODECS[payload[0]](payload[1:], size, dictionary)


def deflate_again(kind, text):
    """A member: the stream and the bytes that follow it in its container."""
    container, encoder = kind & 3, kind >> 2 & 15
    level, memory_level = kind >> 6 & 15, kind >> 10 & 15
    window_bits, strategy = (kind >> 14 & 7) + 9, kind >> 17
    require(container <= 2 and 1 <= level <= 9, "kind of a member")
    require(1 <= memory_level <= 9 and window_bits <= 15 and strategy <= 4, "kind of a member")
    if encoder == 1:
        deflater = zlib.compressobj(level, zlib.DEFLATED, -window_bits, memory_level, strategy)
        stream = deflater.compress(text) + deflater.flush()
    else:
        require(encoder == 2 and (memory_level, window_bits, strategy) == (8, 15, 0),
                "kind of a member")
        made = subprocess.run(["gzip", "-n", f"-{level}"], input=text, check=True,
                              stdout=subprocess.PIPE)
        stream = made.stdout[10:-8]
    follows = (b"", struct.pack(">I", zlib.adler32(text)),
               struct.pack("<II", zlib.crc32(text), len(text)))
    return stream + follows[container]


def decode_recipe(manifest, payload, size, dictionary):
    """CODECS.md, "Recipe": a block whose members are stored as their text."""
    fields = Bytes(payload, "recipe")
    count = fields.varint()
    text_size = fields.varint()
    text_size_max = 6 << 20 if count == 1 else 1 << 20
    require(0 < count <= size // 64 and 0 < text_size <= text_size_max, "recipe: bounds")
    members = [
        ([fields.varint() for _ in range(4)], fields.u32()) for _ in range(count)
    ]
    for (_, _, member_size, member_text), _ in members:
        require(member_size >= 64 and member_text // 1032 <= member_size, "size of a member")
        require(member_size <= member_text + member_text // 8 + member_text // 64 + 64,
                "size of a member")
    require(
        count == 1 or sum((1 << 18) + 64 * member[3] for member, _ in members) <= 1 << 27,
        "work of a block",
    )
    require(
        sum(gap + text for (gap, _, _, text), _ in members) <= text_size, "texts of members"
    )
    text = decode_partitions(manifest, rest_of(fields), text_size, dictionary)
    block = b""
    end = 0
    for (gap, kind, member_size, member_text), expected in members:
        block += text[end : end + gap]
        end += gap + member_text
        member = deflate_again(kind, text[end - member_text : end])
        require(len(member) == member_size, "size of a member")
        require(checksum(member) & 0xFFFFFFFF == expected, "checksum of a member")
        block += member
    return block + text[end:]


CODECS = {
    1: lambda payload, size, dictionary: payload,
    2: decode_lz4,
    CODEC_ZLIB: lambda payload, size, dictionary: inflate(payload, size),
    5: lambda payload, size, dictionary: decode_zstd(payload, size),
    10: lambda payload, size, dictionary: decode_xz(payload, size),
    11: lambda payload, size, dictionary: decode_numeric(payload, size),
    CODEC_AUTO: decode_auto,
    16: rlz(decode_rlz_uv),
    17: rlz(decode_rlz_pv),
    18: rlz(decode_rlz_zz),
    19: rlz(decode_rlz_zzz),
    21: decode_zlib_primed,
    22: decode_zstd_with_dictionary,
    32: decode_fsst,
}
CODEC_WITH_DICTIONARY = {CODEC_AUTO, 16, 17, 18, 19, 21, 22}
CODEC_WITH_SYMBOL_TABLE = {32}
CODEC_WITHOUT_PARTITIONS = {1, 32}
CODEC_ERRORS = (Refused, zlib.error, lzma.LZMAError, zstandard.ZstdError, lz4.block.LZ4BlockError)


def decode_block(manifest, payload, has_recipe, size, dictionary):
    if not has_recipe:
        return decode_partitions(manifest, payload, size, dictionary)
    require(manifest["has_recipes"], "a recipe in an archive without")
    return decode_recipe(manifest, payload, size, dictionary)
