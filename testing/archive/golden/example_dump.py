#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints the example of FORMAT.md, section 12: a dump of a golden archive."""

import pathlib
import struct

ARCHIVE = pathlib.Path(__file__).resolve().parent / "good" / "one-empty-document"
MANIFEST = {1: "uuid", 2: "codec_id", 4: "block_size_bytes", 6: "segment",
            11: "block_size_bytes_max", 15: "writer", 16: "next_segment_number"}
SEGMENT = {2: "file_size_bytes", 4: "document_count", 7: "footer_checksum", 8: "section"}
HEADER = (("8s", "magic"), ("I", "version {}"))
SEGMENT_HEADER = (*HEADER, ("I", "segment {}"), ("I", "blocks of {} bytes"), ("I", "codec {}"),
                  ("I", "no partitions"), ("I", "reserved"), ("Q", "no dictionary"),
                  ("Q", "checksum of bytes 00 to 27"))
ENTRY = (("II", "table: type {}, not compressed"), ("Q", "  at byte {}"), ("Q", "  stored size {}"),
         ("Q", "  size {}"), ("Q", "  checksum of the section"))
TRAILER = (("Q", "trailer: block_count {}"), ("Q", "document_count {}"), ("Q", "size_bytes {}"),
           ("Q", "id_size_bytes {}"), ("Q", "blocks_end {}"), ("Q", "block chain {}"),
           ("II", "{} sections, derived_id_count 0"), ("Q", "checksum of table and trailer, seed 0"),
           ("8s", "magic"))


class Dump:
    def __init__(self, name):
        self.data = (ARCHIVE / name).read_bytes()
        self.position = 0
        print(f"`{name}`, {len(self.data)} bytes:\n")

    def line(self, size, comment):
        part = self.data[self.position : self.position + size]
        for at in range(0, size, 12):
            offset = f"{self.position:02x}" if at == 0 else "  "
            print(f"    {offset}  {part[at:at + 12].hex(' '):<36}  {comment if at == 0 else ''}".rstrip())
        self.position += size

    def fields(self, fields):
        for form, comment in fields:
            values = struct.unpack_from("<" + form, self.data, self.position)
            self.line(struct.calcsize("<" + form), comment.format(*values))

    def message(self, end, names, indent=""):
        while self.position < end:
            key = self.data[self.position]
            at = self.position + (2 if key >= 0x80 else 1)
            number = key >> 3 if key < 0x80 else (key & 0x7F | self.data[at - 1] << 7) >> 3
            value, start = 0, at
            if key & 7 == 1:
                at += 8
                comment = ""
            else:
                while self.data[at] >= 0x80:
                    at += 1
                at += 1
                for i, byte in enumerate(self.data[start:at]):
                    value |= (byte & 0x7F) << 7 * i
                comment = f" {value}"
            name = indent + names.get(number, f"field {number}")
            if key & 7 != 2:
                self.line(at - self.position, name + comment)
            elif number == 6:
                self.line(at - self.position, f"{name}, {value} bytes")
                self.message(at + value, SEGMENT, "  ")
            else:
                self.line(at + value - self.position, name)


def main():
    manifest = Dump("MANIFEST")
    manifest.fields((*HEADER, ("I", "message of {} bytes")))
    manifest.message(len(manifest.data) - 8, MANIFEST)
    manifest.fields((("Q", "checksum of all bytes before"),))
    print()
    segment = Dump("segment-00000000")
    segment.fields(SEGMENT_HEADER)
    segment.line(1, "document sizes: a column 0 bytes wide")
    segment.line(2, "document ids: shares 0, has 0 of its own")
    segment.fields((*ENTRY, *ENTRY, *TRAILER))


if __name__ == "__main__":
    main()
