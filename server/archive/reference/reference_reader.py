#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads Quire archives; written from FORMAT.md alone, to be read next to it.

usage: reference_reader.py list ARCHIVE            ordinal, offset, size, time,
                                                   media type, record type, id,
                                                   XXH3 of the document; then
                                                   deposited files
       reference_reader.py get ARCHIVE ORDINAL     the document on stdout
       reference_reader.py file ARCHIVE PATH       the deposited file on stdout
       reference_reader.py text ARCHIVE            all documents on stdout
       reference_reader.py check ARCHIVE           reads all; prints the uuid

reference_codecs.py, reference_deposits.py and reference_segment.py next to it are its other parts. Needs
python3-xxhash, python3-zstandard, python3-lz4. It is plain, not fast.
"""

import os
import struct
import sys

from reference_codecs import (
    CODEC_AUTO,
    CODEC_WITH_DICTIONARY,
    CODEC_WITHOUT_PARTITIONS,
    CODEC_WITH_SYMBOL_TABLE,
    CODECS,
    Bytes,
    Refused,
    check_start,
    checksum,
    decompress,
    require,
    symbols_of,
)
from reference_deposits import WITHDRAWN, join_files, read_file
from reference_segment import BOOLEAN, FLOAT, STRING, TIME, Segment


# --- Section 3: manifest ---

MANIFEST = {
    1: "uuid",
    2: "codec",
    4: "block_size",
    5: "dictionary",
    6: "segments",
    7: "symbol_table",
    8: "partition_size",
    10: "members",
    11: "block_size_max",
    16: "next_segment_number",
    17: "history",
    18: "slices_per_mib_max",
    19: "required_features",
    20: "has_recipes",
    23: "redacted_states",
}
STATE = {1: "uuid", 2: "size", 3: "document_count"}
DICTIONARY = {1: "hash", 2: "size", 3: "file_size"}
SYMBOL_TABLE = {1: "hash", 2: "size"}
SEGMENT = {
    1: "number",
    2: "file_size",
    3: "block_count",
    4: "document_count",
    5: "size",
    6: "id_size",
    7: "footer_checksum",
    8: "sections",
    9: "stored_text_size",
    10: "run_count",
    12: "span_count",
    13: "derived_id_count",
}
MEMBER = {1: "codec", 2: "block_count", 3: "size", 4: "stored_size"}
SECTION = {1: "type", 2: "size", 3: "stored_size"}


def parse_message(data, names, repeated=()):
    """A protobuf message as a dictionary; sub-messages stay bytes."""
    message = {name: [] if name in repeated else None for name in names.values()}
    fields = Bytes(data, "manifest message")
    while fields.position < len(data):
        key = fields.varint()
        number, wire_type = key >> 3, key & 7
        require(wire_type in (0, 1, 2, 5), "manifest message: wire type")
        if wire_type == 0:
            value = fields.varint()
        elif wire_type == 1:
            value = fields.u64()
        elif wire_type == 2:
            value = fields.take(fields.varint())
        else:
            value = fields.u32()
        name = names.get(number)
        if name in repeated:
            message[name].append(value)
        elif name is not None:
            message[name] = value
    return message


def integers(message):
    return {name: 0 if value is None else value for name, value in message.items()}


def parse_manifest(data):
    fields = Bytes(data, "MANIFEST")
    check_start(fields, b"M")
    size = fields.u32()
    require(len(data) == size + 24, "MANIFEST: size")
    payload = fields.take(size)
    require(fields.u64() == checksum(data[:-8]), "MANIFEST: checksum")
    manifest = parse_message(
        payload,
        MANIFEST,
        ("segments", "members", "history", "required_features", "redacted_states"),
    )
    require(not manifest["required_features"], "MANIFEST: a required feature")
    for name in (
        "codec", "block_size", "block_size_max", "partition_size", "next_segment_number",
        "slices_per_mib_max", "has_recipes",
    ):
        manifest[name] = manifest[name] or 0
    require(len(manifest["uuid"] or b"") == 16, "MANIFEST: uuid")
    require(manifest["codec"] in CODECS, f"MANIFEST: codec {manifest['codec']}")
    require(
        manifest["block_size"] in [1 << bits for bits in range(12, 21)],
        "MANIFEST: block size",
    )
    require(
        manifest["block_size"] <= manifest["block_size_max"] <= 1 << 20,
        "MANIFEST: block_size_bytes_max",
    )
    require(manifest["slices_per_mib_max"] <= 1 << 20, "MANIFEST: slices_per_mib_max")
    require(manifest["next_segment_number"] <= 1 << 24, "MANIFEST: next_segment_number")
    sizes = [1 << bits for bits in range(12, 21)]
    require(
        manifest["partition_size"] == 0
        or (
            manifest["partition_size"] in sizes
            and manifest["codec"] not in CODEC_WITHOUT_PARTITIONS
        ),
        "MANIFEST: partition size",
    )
    if manifest["dictionary"] is not None:
        manifest["dictionary"] = integers(
            parse_message(manifest["dictionary"], DICTIONARY)
        )
        require(manifest["dictionary"]["size"] < 1 << 31, "MANIFEST: dictionary")
    require(
        (manifest["dictionary"] is not None)
        == (manifest["codec"] in CODEC_WITH_DICTIONARY),
        "MANIFEST: dictionary",
    )
    if manifest["symbol_table"] is not None:
        table = integers(parse_message(manifest["symbol_table"], SYMBOL_TABLE))
        require(17 <= table["size"] <= 2057, "MANIFEST: symbol table")
        manifest["symbol_table"] = table
    require(
        manifest["symbol_table"] is not None
        or manifest["codec"] not in CODEC_WITH_SYMBOL_TABLE,
        "MANIFEST: symbol table",
    )
    segments = []
    for bytes_of_segment in manifest["segments"]:
        segment = integers(parse_message(bytes_of_segment, SEGMENT, ("sections",)))
        segment["sections"] = [
            integers(parse_message(section, SECTION))
            for section in segment["sections"]
        ]
        require(
            segment["number"] < manifest["next_segment_number"], "MANIFEST: segment number"
        )
        segments.append(segment)
    require(len(segments) <= 65536, "MANIFEST: number of segments")
    require(sum(s["size"] for s in segments) < 1 << 62, "MANIFEST: size")
    manifest["segments"] = segments
    numbers = {segment["number"] for segment in segments}
    require(len(numbers) == len(segments), "MANIFEST: segment numbers")
    for states in ("history", "redacted_states"):
        check_states(manifest, states)
    parse_members(manifest)
    return manifest


def check_states(manifest, where):
    states = [parse_message(data, STATE) for data in manifest[where]]
    require(len(states) <= 4096, f"MANIFEST: {where}")
    require(all(len(state["uuid"] or b"") == 16 for state in states), f"MANIFEST: {where}")
    for name in ("size", "document_count"):
        values = [state[name] or 0 for state in states]
        values.append(sum(segment[name] for segment in manifest["segments"]))
        require(values == sorted(values), f"MANIFEST: {name} in {where}")


def parse_members(manifest):
    members = [integers(parse_message(data, MEMBER)) for data in manifest["members"]]
    manifest["members"] = members
    codecs = [member["codec"] for member in members]
    require(
        codecs == sorted(set(codecs)) and all(member["block_count"] for member in members),
        "MANIFEST: members",
    )
    is_auto = manifest["codec"] == CODEC_AUTO
    require(is_auto or not members, "MANIFEST: members")
    sums = {
        "block_count": lambda segment: segment["block_count"],
        "size": lambda segment: segment["stored_text_size"],
    }
    for name, of_segment in sums.items() if is_auto else ():
        require(
            sum(member[name] for member in members)
            == sum(of_segment(segment) for segment in manifest["segments"]),
            f"MANIFEST: {name} of the members",
        )


def count_members(segments):
    """What the manifest of an archive of codec auto says, out of the blocks."""
    counts = {}
    for segment in segments:
        for index in range(segment.block_count):
            codec, stored_size = segment.member(index)
            count = counts.setdefault(codec, [0, 0, 0])
            count[0] += 1
            count[1] += segment.block_text_size(index)
            count[2] += stored_size
    return [
        dict(zip(MEMBER.values(), (codec, *count))) for codec, count in sorted(counts.items())
    ]


def derive_uuid(manifest):
    """Section 3.1."""
    dictionary = manifest["dictionary"] or {"hash": 0, "size": 0}
    uses_table = manifest["codec"] in CODEC_WITH_SYMBOL_TABLE
    facts = struct.pack(
        "<IIIIQQQ",
        4,
        manifest["codec"],
        manifest["block_size"],
        manifest["partition_size"],
        dictionary["hash"],
        dictionary["size"],
        manifest["symbol_table"]["hash"] if uses_table else 0,
    )
    for segment in manifest["segments"]:
        facts += struct.pack("<IQ", segment["number"], segment["footer_checksum"])
    uuid = bytearray(struct.pack("<QQ", checksum(facts, 0), checksum(facts, 1)))
    uuid[6] = uuid[6] & 0x0F | 0x80
    uuid[8] = uuid[8] & 0x3F | 0x80
    return bytes(uuid)


# --- Section 4: dictionary ---


def parse_dictionary(data, expected, name):
    fields = Bytes(data, name)
    require(len(data) == expected["file_size"], f"{name}: file size")
    check_start(fields, b"D")
    method, size, stored_size = fields.u32(), fields.u64(), fields.u64()
    text_checksum, stored_checksum = fields.u64(), fields.u64()
    require(fields.u64() == checksum(data[:48]), f"{name}: header checksum")
    stored = fields.take(stored_size)
    require(len(data) == 56 + stored_size, f"{name}: stored size")
    require(stored_checksum == checksum(stored), f"{name}: stored checksum")
    require(
        (size, text_checksum) == (expected["size"], expected["hash"]),
        f"{name}: not the dictionary of the manifest",
    )
    text = decompress(method, stored, size, name)
    require(checksum(text) == text_checksum, f"{name}: checksum of the text")
    return text


def parse_symbol_table(data, expected, name):
    """Section 4.1: the symbols in order of their codes."""
    fields = Bytes(data, name)
    require(len(data) == expected["size"] + 24, f"{name}: file size")
    check_start(fields, b"T")
    require(fields.u32() == expected["size"], f"{name}: size")
    table = Bytes(fields.take(expected["size"]), name)
    require(fields.u64() == checksum(data[:-8]), f"{name}: checksum")
    require(
        checksum(data[16:-8]) == expected["hash"],
        f"{name}: not the symbol table of the manifest",
    )
    symbols = symbols_of(table)
    require(table.position == expected["size"], f"{name}: bytes behind the symbols")
    return symbols


class Archive:
    def __init__(self, path):
        def read(name):
            with open(os.path.join(path, name), "rb") as file:
                return file.read()

        self.manifest = parse_manifest(read("MANIFEST"))
        dictionary = b""
        if self.manifest["dictionary"] is not None:
            expected = self.manifest["dictionary"]
            name = f"dictionary-{expected['hash']:016x}"
            dictionary = parse_dictionary(read(name), expected, name)
        if self.manifest["symbol_table"] is not None:
            expected = self.manifest["symbol_table"]
            name = f"symbols-{expected['hash']:016x}"
            symbols = parse_symbol_table(read(name), expected, name)
            if self.manifest["codec"] in CODEC_WITH_SYMBOL_TABLE:
                dictionary = symbols
        self.segments = [
            Segment(
                os.path.join(path, f"segment-{expected['number']:08d}"),
                self.manifest,
                expected,
                dictionary,
            )
            for expected in self.manifest["segments"]
        ]

        fields = [field for segment in self.segments for field in segment.fields]
        # In order of first appearance.
        self.fields = dict(fields)
        require(
            len(self.fields) == len(set(fields)) <= 256,
            "a field has two types, or there are too many",
        )

    def field_values(self):
        """Of each document, its value of each of self.fields."""
        for segment in self.segments:
            names = [name for name, _ in segment.fields]
            for values in segment.field_values:
                of_document = dict(zip(names, values))
                yield [of_document.get(name) for name in self.fields]

    def captures(self):
        """Of each document: key, URL, status and digest of its capture, or None."""
        for segment in self.segments:
            yield from segment.captures

    def documents(self):
        """Of each: its segment, its offset there, its offset in the archive, ..."""
        base = 0
        for segment in self.segments:
            for start, *rest in segment.documents:
                yield (segment, start, base + start, *rest)
            base += segment.size


def escape(data):
    """Bytes as printable ASCII; a document's id or type in a listing."""
    if data is None:
        return "-"
    return "".join(
        chr(b) if 0x21 <= b <= 0x7E and b not in (0x22, 0x5C) else f"\\x{b:02x}"
        for b in data
    )


def show_value(value, kind):
    if value is None:
        return "null"
    if kind == STRING:
        return f'"{escape(value)}"'
    if kind == BOOLEAN:
        return "true" if value else "false"
    return f"{value}us" if kind == TIME else f"{value:g}" if kind == FLOAT else str(value)


def show_capture(capture):
    if capture is None:
        return []
    key, url, status, digest = capture
    return [f'capture="{escape(key)}" "{escape(url)}" {status} "{escape(digest)}"']


def main(arguments):
    if len(arguments) < 2 or len(arguments) != (
        3 if arguments[0] in ("get", "file") else 2
    ):
        print(__doc__, file=sys.stderr)
        return 2
    out = sys.stdout.buffer
    try:
        archive = Archive(arguments[1])
        documents = list(archive.documents())
        if arguments[0] == "list":
            for ordinal, (document, values, capture) in enumerate(
                zip(documents, archive.field_values(), archive.captures())
            ):
                segment, start, offset, size, time, media, record, name = document
                print(
                    ordinal,
                    offset,
                    size,
                    "-" if time is None else time,
                    escape(media),
                    escape(record),
                    f'"{escape(name)}"',
                    f"{checksum(segment.range(start, size)):016x}",
                    *(
                        f"{name.decode()}={show_value(value, kind)}"
                        for (name, kind), value in zip(archive.fields.items(), values)
                    ),
                    *show_capture(capture),
                )
            for path, portions in join_files(archive.segments):
                is_withdrawn = any(portion.state == WITHDRAWN for portion in portions)
                print(
                    "file",
                    f'"{escape(path)}"',
                    "withdrawn" if is_withdrawn else len(read_file(portions)),
                    "-" if is_withdrawn else portions[-1].digest.hex(),
                )
        elif arguments[0] == "file":
            path = os.fsencode(arguments[2])
            found = [ps for name, ps in join_files(archive.segments) if name == path]
            require(found, f"no file {path}")
            out.write(read_file(found[-1]))
        elif arguments[0] == "get":
            segment, start, _, size, *_ = documents[int(arguments[2])]
            out.write(segment.range(start, size))
        elif arguments[0] == "text":
            for segment in archive.segments:
                out.write(segment.range(0, segment.size))
        elif arguments[0] == "check":
            for segment in archive.segments:
                segment.check_chain()
                segment.check_texts()
            for _, portions in join_files(archive.segments):
                if all(portion.state != WITHDRAWN for portion in portions):
                    read_file(portions)
            require(archive.manifest["uuid"] == derive_uuid(archive.manifest), "MANIFEST: uuid")
            if archive.manifest["codec"] == CODEC_AUTO:
                require(
                    count_members(archive.segments) == archive.manifest["members"],
                    "MANIFEST: the members' counts and sizes",
                )
            print(archive.manifest["uuid"].hex())
        else:
            print(__doc__, file=sys.stderr)
            return 2
    except (Refused, OSError) as error:
        print(f"{arguments[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
