# SPDX-License-Identifier: GPL-3.0-or-later
"""FORMAT.md, section 6.14: deposited files."""

import hashlib
import struct

from reference_codecs import Bytes, Refused, deflate_again, require, unzigzag

KEPT, WITHDRAWN, ABANDONED = range(3)
GZIP = 2


class Portion:
    """The part of a file that a segment has."""

    def __init__(self, segment, head, text_begin):
        self.segment = segment
        size = head.varint()
        require(1 <= size <= 4096, f"{head.name}: size of a path")
        self.path, flags = head.take(size), head.take(1)[0]
        self.begins, self.ends, self.state = flags & 1 == 1, flags & 2 == 2, flags >> 2
        require(self.state <= ABANDONED, f"{head.name}: state of a file")
        self.start = text_begin + head.varint()
        self.end = self.start + head.varint()
        require(self.end <= segment.size, f"{head.name}: text of a file")
        require(self.begins or self.start == 0, f"{head.name}: start of a portion")
        require(self.ends or self.end == segment.size, f"{head.name}: end of a portion")
        self.pages, self.file_size, self.digest = [], 0, b""
        if self.state != KEPT:
            return
        if self.ends:
            self.file_size, self.digest = head.varint(), head.take(32)
        count = head.varint()
        require(count >= 1, f"{head.name}: pages of a file")
        text = self.start
        for _ in range(count):
            size, text_size = head.varint(), head.varint()
            page = segment.part(head)
            literals = [segment.part(head).data for _ in range(head.varint())]
            require(size >= 1, f"{head.name}: bytes of a page")
            self.pages.append((size, text, text_size, page, b"".join(literals)))
            text += text_size
        require(text == self.end, f"{head.name}: text of the pages")

    def made(self):
        """The bytes of the file."""
        made = b""
        for size, text, text_size, page, literals in self.pages:
            of_page = b"".join(
                self.items(Bytes(page.data, page.name), text, text + text_size, literals)
            )
            require(len(of_page) == size, f"{page.name}: bytes of a page")
            made += of_page
        return made

    def items(self, page, text, text_end, literals):
        count = page.varint()
        require(1 <= count <= 4096, f"{page.name}: number of items")
        recipes = [page.varint() for _ in range(page.varint())]
        kinds, sizes = page.inner_column(count), page.inner_column(count)
        texts = page.inner_column(count)
        headers = []
        for _ in range(page.varint()):
            size = page.varint()
            require(10 <= size <= 4096, f"{page.name}: size of a header")
            header = (page.take(size), page.varint(), page.varint())
            require(
                all(at == 0 or 10 <= at <= size - 4 for at in header[1:]),
                f"{page.name}: sizes in a header",
            )
            headers.append(header)
        members = sum(kind >= 2 for kind in kinds)
        indexes, times = page.inner_column(members), page.column(members)
        time, member = 0, 0
        for kind, size, coded in zip(kinds, sizes, texts):
            require(size >= 1 and (kind != 1 or coded == 0), f"{page.name}: an item")
            if kind == 1:
                text_size = size
            elif coded:
                text_size = coded - 1
            else:
                require(text < text_end, f"{page.name}: text of an item")
                text_size = self.segment.document_end(text) - text
            require(text + text_size <= text_end, f"{page.name}: text of an item")
            if kind == 0:
                require(size <= len(literals), f"{page.name}: literals")
                yield literals[:size]
                literals = literals[size:]
            elif kind == 1:
                yield self.segment.range(text, size)
            else:
                require(kind - 2 < len(recipes), f"{page.name}: recipe of a member")
                require(recipes[kind - 2] & 3 == GZIP, f"{page.name}: recipe of a member")
                require(indexes[member] < len(headers), f"{page.name}: header of a member")
                require(text_size <= 6 << 20, f"{page.name}: text of a member")
                time = (time + unzigzag(times[member])) % 2**32
                bytes_, text_at, size_at = headers[indexes[member]]
                header = bytearray(bytes_)
                for at, value in ((4, time), (text_at, text_size), (size_at, size)):
                    if at:
                        header[at : at + 4] = struct.pack("<I", value % 2**32)
                made = bytes(header) + deflate_again(
                    recipes[kind - 2], self.segment.range(text, text_size)
                )
                require(len(made) == size, f"{page.name}: size of a member")
                yield made
                member += 1
            text += text_size
        require(text == text_end and not literals, f"{page.name}: sums of the items")


def parse_deposits(segment, head):
    count = head.varint()
    require(count >= 1, f"{head.name}: number of files")
    portions, text = [], 0
    for _ in range(count):
        portions.append(Portion(segment, head, text))
        text = portions[-1].end
    require(head.position == len(head.data), f"{head.name}: size")
    return portions


def join_files(segments):
    """(path, portions) of the files, by path."""
    files, current = [], []
    for segment in segments:
        portions = segment.deposits
        if current and (not portions or portions[0].begins):
            current = []
        for portion in portions:
            if portion.begins or not current or current[0].path != portion.path:
                current = []
            current.append(portion)
            if portion.ends:
                if current[0].begins and all(p.state != ABANDONED for p in current):
                    files.append((portion.path, current))
                current = []
    return sorted(files, key=lambda file: file[0])


def read_file(portions):
    if any(portion.state == WITHDRAWN for portion in portions):
        raise Refused(f"{portions[0].path}: withdrawn")
    made = b"".join(portion.made() for portion in portions)
    require(len(made) == portions[-1].file_size, f"{portions[0].path}: size")
    require(
        hashlib.sha256(made).digest() == portions[-1].digest, f"{portions[0].path}: SHA-256"
    )
    return made
