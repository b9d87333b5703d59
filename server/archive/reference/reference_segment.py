# SPDX-License-Identifier: GPL-3.0-or-later
"""FORMAT.md, sections 5 and 6: segments."""

import base64
import bisect
import itertools
import operator
import os
import struct

from reference_codecs import (
    CODEC_AUTO,
    CODEC_ERRORS,
    Bytes,
    Refused,
    check_start,
    checksum,
    decode_block,
    decompress,
    magic,
    require,
    unzigzag,
)
from reference_deposits import parse_deposits


ID_RUNS = 11
TEXT_CHECKSUMS = 0x8000000A
CONTAINER_DIRECTORY = 0x8000000B
CONTAINER_DATA = 0x8000000C
IGNORABLE_SECTIONS = (TEXT_CHECKSUMS, CONTAINER_DIRECTORY, CONTAINER_DATA)

STRING, INTEGER, FLOAT, BOOLEAN, TIME = range(1, 6)


def parse_bound(page, kind):
    if kind == STRING:
        size = page.take(1)[0]
        require(size <= 64, f"{page.name}: size of a bound")
        return page.take(size)
    if kind == BOOLEAN:
        value = page.take(1)[0]
        require(value <= 1, f"{page.name}: bound of booleans")
        return bool(value)
    return struct.unpack("<d" if kind == FLOAT else "<q", page.take(8))[0]


def parse_bits(block, count):
    bits = int.from_bytes(block.take((count + 7) // 8), "little")
    require(bits >> count == 0, f"{block.name}: unused bits")
    return [bits >> i & 1 == 1 for i in range(count)]


def parse_values(block, kind, has_nulls, count):
    """Section 6.12: the values of a field in a group."""
    presence = parse_bits(block, count) if has_nulls else [True] * count
    if kind == BOOLEAN:
        values = parse_bits(block, count)
    elif kind in (INTEGER, TIME):
        base = unzigzag(block.varint())
        values = [
            (base + value + 2**63) % 2**64 - 2**63 for value in block.inner_column(count)
        ]
    elif kind == FLOAT:
        values = [
            struct.unpack("<d", struct.pack("<Q", value))[0]
            for value in block.inner_column(count)
        ]
    else:
        string_count = block.varint()
        require(string_count <= 4096, f"{block.name}: number of strings")
        sizes = block.inner_column(string_count)
        require(all(size <= 65535 for size in sizes), f"{block.name}: size of a string")
        strings = [block.take(size) for size in sizes]
        indexes = block.inner_column(count)
        require(max(indexes) < len(strings), f"{block.name}: no such string")
        values = [strings[index] for index in indexes]
    require(block.position == len(block.data), f"{block.name}: size")
    return [value if there else None for value, there in zip(values, presence)]


def parse_keys(part, count):
    """Section 6.13: sorted keys of captures."""
    shared = [part.varint() for _ in range(count)]
    own = [part.varint() for _ in range(count)]
    keys = [b""]
    for prefix, size in zip(shared, own):
        require(prefix <= len(keys[-1]), f"{part.name}: shares too much")
        keys.append(keys[-1][:prefix] + part.take(size))
        require(keys[-2] <= keys[-1], f"{part.name}: keys out of order")
        require(len(keys[-1]) <= 65535, f"{part.name}: key too long")
    require(count == 1 or sum(map(len, keys)) <= 1 << 20, f"{part.name}: size of keys")
    return keys[1:]


def parse_leaf(leaf, keys):
    count = len(keys)
    require(all(keys), f"{leaf.name}: an empty key")
    first, unit = unzigzag(leaf.varint()), leaf.varint()
    require(unit >= 1, f"{leaf.name}: unit of times")
    times = [first + value * unit for value in leaf.inner_column(count)]
    require(all(abs(time) <= 1 << 53 for time in times), f"{leaf.name}: time")
    base = leaf.varint()
    ordinals = [base + value for value in leaf.inner_column(count)]
    statuses, skips = leaf.inner_column(count), leaf.inner_column(count)
    kinds = leaf.inner_column(count)
    require(max(statuses) <= 999 and max(skips) <= 65536, f"{leaf.name}: status or URL")
    require(max(kinds) <= 2, f"{leaf.name}: kind of a digest")
    hashes = iter([leaf.take(20) for kind in kinds if kind == 1])
    texts = iter([leaf.take(size) for size in leaf.inner_column(kinds.count(2))])
    urls = iter([leaf.take(size) for size in leaf.inner_column(skips.count(65536))])
    require(leaf.position == len(leaf.data), f"{leaf.name}: size")
    for place, status, skip, kind in zip(zip(keys, times, ordinals), statuses, skips, kinds):
        digest = b"" if kind == 0 else next(texts) if kind == 2 else \
            b"sha1:" + base64.b32encode(next(hashes))
        yield place, (skip, next(urls) if skip == 65536 else None, status, digest)


class Segment:
    def __init__(self, path, manifest, expected, dictionary):
        self.name = os.path.basename(path)
        self.manifest = manifest
        self.dictionary = dictionary
        self.number = expected["number"]
        with open(path, "rb") as file:
            self.data = file.read()
        require(
            len(self.data) == expected["file_size"] >= 48 + 72,
            f"{self.name}: file size",
        )
        self.parse_header()
        self.parse_footer(expected)
        self.stored_size = expected["stored_text_size"]
        self.parse_spans(expected)
        self.parse_block_sizes()
        self.parse_documents()
        self.parse_layout(expected)
        self.check_slices()
        self.parse_fields()

    def parse_header(self):
        fields = Bytes(self.data[:48], self.name)
        check_start(fields, b"S")
        dictionary = self.manifest["dictionary"] or {"hash": 0}
        found = [fields.u32() for _ in range(5)] + [fields.u64()]
        require(
            found
            == [
                self.number,
                self.manifest["block_size"],
                self.manifest["codec"],
                self.manifest["partition_size"],
                0,
                dictionary["hash"],
            ],
            f"{self.name}: header differs from the manifest",
        )
        require(fields.u64() == checksum(self.data[:40]), f"{self.name}: header checksum")

    def parse_footer(self, expected):
        fields = Bytes(self.data[-72:], f"{self.name}: trailer")
        self.block_count, self.document_count = fields.u64(), fields.u64()
        self.size, self.id_size = fields.u64(), fields.u64()
        self.blocks_end, self.chain = fields.u64(), fields.u64()
        section_count, self.derived_id_count = fields.u32(), fields.u32()
        stored_checksum = fields.u64()
        require(fields.take(8) == magic(b"E"), f"{self.name}: end magic")
        require(section_count <= 16, f"{self.name}: number of sections")
        table_start = len(self.data) - 72 - 40 * section_count
        require(table_start >= 48, f"{self.name}: size of the section table")
        require(
            stored_checksum == checksum(self.data[table_start:-16], self.number),
            f"{self.name}: footer checksum",
        )
        require(
            (self.block_count, self.document_count, self.size, self.id_size)
            == tuple(expected[k] for k in ("block_count", "document_count", "size", "id_size"))
            and self.derived_id_count == expected["derived_id_count"]
            and stored_checksum == expected["footer_checksum"],
            f"{self.name}: trailer differs from the manifest",
        )
        self.check_blocks_and_runs(expected)
        require(
            self.block_count < 1 << 40
            and self.document_count < 1 << 32
            and self.derived_id_count <= self.document_count
            and self.id_size <= 65535 * (self.document_count - self.derived_id_count),
            f"{self.name}: counts",
        )
        require(
            self.blocks_end == 48
            if self.block_count == 0
            else self.blocks_end >= 48 + 13 * self.block_count,
            f"{self.name}: end of blocks",
        )
        self.parse_table(table_start, section_count, expected)
        require(
            2 * (self.document_count - self.derived_id_count) <= len(self.sections.get(3, b"")),
            f"{self.name}: more documents than ids",
        )
        require(
            self.derived_id_count > 0 and len(self.sections.get(2, b"")) > self.document_count
            if ID_RUNS in self.sections
            else self.derived_id_count == 0,
            f"{self.name}: derived ids",
        )

    def check_blocks_and_runs(self, expected):
        """Section 3: counts that the manifest alone has."""
        sizes = {section["type"]: section["size"] for section in expected["sections"]}
        stored_size, run_count = expected["stored_text_size"], expected["run_count"]
        least = 0 if self.size == 0 else 2 if 8 in sizes else 1
        require(
            least <= run_count <= sizes.get(8, least)
            and (
                (stored_size > 0) == (self.size > 0) and stored_size <= self.size
                if 8 in sizes
                else stored_size == self.size
            ),
            f"{self.name}: runs or stored text",
        )
        span_count = expected["span_count"]
        require(
            self.block_count <= stored_size
            and (self.block_count > 0) == (stored_size > 0) == (span_count > 0)
            and span_count <= min(self.block_count, sizes.get(9, 0)),
            f"{self.name}: blocks or block spans",
        )

    def parse_table(self, table_start, section_count, expected):
        fields = Bytes(self.data[table_start:-72], f"{self.name}: section table")
        self.sections = {}
        position, previous, seen = self.blocks_end, 0, []
        for _ in range(section_count):
            kind, method, offset = fields.u32(), fields.u32(), fields.u64()
            stored_size, size, stored_checksum = fields.u64(), fields.u64(), fields.u64()
            name = f"{self.name}: section {kind}"
            seen.append({"type": kind, "size": size, "stored_size": stored_size})
            require(previous < kind, f"{name}: order of types")
            require(offset == position, f"{name}: place")
            previous, position = kind, position + stored_size
            require(position <= table_start, f"{name}: stored size")
            if kind >> 31 and kind not in IGNORABLE_SECTIONS:
                continue
            require(
                1 <= kind <= 9 or kind in (ID_RUNS, *IGNORABLE_SECTIONS), f"{name}: unknown type"
            )
            require(size <= 1 << 40, f"{name}: size")
            stored = self.data[offset:position]
            require(checksum(stored) == stored_checksum, f"{name}: checksum")
            require(kind != CONTAINER_DATA or method == 0, f"{name}: compression method")
            self.sections[kind] = decompress(method, stored, size, name)
        require(position == table_start, f"{self.name}: sections leave a gap")
        require(seen == expected["sections"], f"{self.name}: table differs from the manifest")

    def section(self, kind):
        return Bytes(self.sections[kind], f"{self.name}: section {kind}")

    def parse_block_sizes(self):
        require((1 in self.sections) or self.block_count == 0, f"{self.name}: no block sizes")
        sizes = self.section(1).column(self.block_count) if self.block_count else []
        self.frames = [48]
        for index, size in enumerate(sizes):
            require(1 <= size <= self.block_text_size(index), f"{self.name}: block size")
            self.frames.append(self.frames[-1] + 12 + size)
        require(self.frames[-1] == self.blocks_end, f"{self.name}: end of blocks")

    def parse_spans(self, expected):
        """Section 6.8: where the text of each block begins, and where the last one ends."""
        self.starts = [0]
        if self.block_count == 0:
            return
        require(9 in self.sections, f"{self.name}: no block spans")
        fields, count = self.section(9), expected["span_count"]
        counts, sizes = fields.inner_column(count), fields.column(count)
        require(
            all(counts)
            and all(1 <= size <= self.manifest["block_size_max"] for size in sizes)
            and sum(counts) == self.block_count
            and sum(map(operator.mul, counts, sizes)) == self.stored_size
            and all(map(operator.ne, sizes, sizes[1:])),
            f"{fields.name}: counts or sizes",
        )
        for block_count, size in zip(counts, sizes):
            end = self.starts[-1]
            self.starts += range(end + size, end + block_count * size + 1, size)

    def block_text_size(self, index):
        return self.starts[index + 1] - self.starts[index]

    def parse_documents(self):
        count = self.document_count
        if count == 0:
            require(self.size == 0, f"{self.name}: text without documents")
            self.documents = []
            return
        require({2, 3} <= self.sections.keys(), f"{self.name}: no document sizes or ids")
        sizes = self.section(2).column(count)
        require(sum(sizes) == self.size, f"{self.name}: sizes of documents")
        ids = self.parse_ids()
        times = self.parse_times()
        media_types, record_types = self.parse_strings(6), self.parse_strings(7)
        self.documents = []
        start = 0
        for i in range(count):
            self.documents.append(
                (start, sizes[i], times[i], media_types[i], record_types[i], ids[i])
            )
            start += sizes[i]

    def parse_ids(self):
        """Sections 6.3, 6.4 and 6.10; the ids by ordinal."""
        count = self.document_count - self.derived_id_count
        fields = self.section(3)
        shared = [fields.varint() for _ in range(count)]
        own = [fields.varint() for _ in range(count)]
        by_rank = []
        previous = b""
        for i in range(count):
            require(shared[i] <= len(previous), f"{fields.name}: shares too much")
            suffix = fields.take(own[i])
            require(
                shared[i] == len(previous)
                or suffix[:1] > previous[shared[i] : shared[i] + 1],
                f"{fields.name}: ids out of order",
            )
            previous = previous[: shared[i]] + suffix
            require(len(previous) <= 65535, f"{fields.name}: id too long")
            by_rank.append(previous)
        require(fields.position == len(fields.data), f"{fields.name}: size")
        require(sum(map(len, by_rank)) == self.id_size, f"{fields.name}: id_size_bytes")
        ids_of_entries = self.parse_id_runs(by_rank)
        if 4 not in self.sections:
            return list(itertools.chain(*ids_of_entries))
        expected = 0
        by_ordinal = [None] * count
        last = -1
        for rank, step in enumerate(self.section(4).column(count)):
            ordinal = expected + unzigzag(step)
            require(
                0 <= ordinal < count and by_ordinal[ordinal] is None,
                f"{self.name}: document order is no permutation",
            )
            require(
                rank == 0 or by_rank[rank] != by_rank[rank - 1] or ordinal > last,
                f"{self.name}: document order among equal ids",
            )
            by_ordinal[ordinal] = ids_of_entries[rank]
            last, expected = ordinal, ordinal + 1
        return list(itertools.chain(*by_ordinal))

    def parse_id_runs(self, entries):
        """Section 6.10: the ids of each entry, by ordinal."""
        ids_of_entries = [[entry] for entry in entries]
        if ID_RUNS not in self.sections:
            return ids_of_entries
        fields = self.section(ID_RUNS)
        run_count = fields.varint()
        require(1 <= run_count <= len(fields.data), f"{fields.name}: number of runs")
        steps, firsts = fields.inner_column(run_count), fields.inner_column(run_count)
        counts, entry, rest = fields.column(run_count), 0, self.derived_id_count
        for i, (step, first, count) in enumerate(zip(steps, firsts, counts)):
            entry += step
            require((i == 0 or step > 0) and entry < len(entries), f"{fields.name}: entry")
            require(
                2 <= count <= rest + 1 and first + count <= 10**18, f"{fields.name}: numbers"
            )
            rest -= count - 1
            numbers = [b"%d" % number for number in range(first, first + count)]
            lowest = min(numbers)
            require(entries[entry].endswith(lowest), f"{fields.name}: lowest id")
            prefix = entries[entry][: -len(lowest)]
            ids_of_entries[entry] = [prefix + number for number in numbers]
            highest = max(ids_of_entries[entry])
            require(max(map(len, ids_of_entries[entry])) <= 65535, f"{fields.name}: id too long")
            require(
                (entry == 0 or entries[entry - 1] < entries[entry])
                and (entry + 1 == len(entries) or highest < entries[entry + 1]),
                f"{fields.name}: ids between those of a run",
            )
        require(rest == 0, f"{fields.name}: sum of runs")
        return ids_of_entries

    def parse_times(self):
        if 5 not in self.sections:
            return [None] * self.document_count
        fields = self.section(5)
        first, unit = unzigzag(fields.varint()), fields.varint()
        require(unit >= 1 and abs(first) <= 1 << 53, f"{fields.name}: base")
        times = [
            None if value == 0 else first + (value - 1) * unit
            for value in fields.column(self.document_count)
        ]
        require(
            all(t is None or t <= 1 << 53 for t in times), f"{fields.name}: time"
        )
        return times

    def parse_strings(self, kind):
        if kind not in self.sections:
            return [None] * self.document_count
        fields = self.section(kind)
        strings = [None]
        for _ in range(fields.varint()):
            size = fields.varint()
            require(size <= 65535, f"{fields.name}: string too long")
            strings.append(fields.take(size))
        values = fields.column(self.document_count)
        require(max(values) < len(strings), f"{fields.name}: no such string")
        return [strings[value] for value in values]

    def parse_layout(self, expected):
        """Section 6.7: (start, size, place in the stored text) of each run."""
        self.runs = [(0, self.size, 0)]
        if 8 not in self.sections:
            return
        fields = self.section(8)
        stored_size, count = fields.varint(), fields.varint()
        require(
            (stored_size, count) == (self.stored_size, expected["run_count"]),
            f"{fields.name}: differs from the manifest",
        )
        require(fields.take(1) == b"\0", f"{fields.name}: kind of runs")
        sizes, steps = fields.inner_column(count), fields.column(count)
        self.runs, start, place = [], 0, 0
        for size, step in zip(sizes, steps):
            place += unzigzag(step)
            require(
                size >= 1 and 0 <= place <= stored_size - size, f"{fields.name}: run out of bounds"
            )
            require(start == 0 or step != 0, f"{fields.name}: a part of the run before")
            self.runs.append((start, size, place))
            start, place = start + size, place + size
        require(start == self.size, f"{fields.name}: sizes of runs")
        end = 0
        for _, size, place in sorted(self.runs, key=lambda run: run[2]):
            require(place <= end, f"{fields.name}: stored text in no run")
            end = max(end, place + size)
        require(end == stored_size, f"{fields.name}: stored text in no run")

    def check_slices(self):
        """Section 3.2: parts of runs in one block that 1 MiB of the text touches."""
        starts = []
        for start, size, place in self.runs if self.size else ():
            first = bisect.bisect_right(self.starts, place)
            after = bisect.bisect_left(self.starts, place + size)
            starts += [start, *(start + at - place for at in self.starts[first:after])]
        most = 0
        for index, end in enumerate(starts[1:] + [self.size] if starts else ()):
            most = max(most, bisect.bisect_left(starts, end - 1 + (1 << 20)) - index)
        require(most <= self.manifest["slices_per_mib_max"], f"{self.name}: slices in 1 MiB")

    def check_texts(self):
        """Section 6.9."""
        if TEXT_CHECKSUMS not in self.sections:
            return
        fields = self.section(TEXT_CHECKSUMS)
        count = fields.varint()
        sizes, expected = fields.inner_column(count), fields.column(count)
        require(all(sizes) and sum(sizes) == self.size, f"{fields.name}: sizes")
        start = 0
        for size, value in zip(sizes, expected):
            require(
                checksum(self.range(start, size)) == value,
                f"{self.name}: checksum of the text from byte {start}",
            )
            start += size

    def parse_fields(self):
        """Sections 6.11 to 6.14: (name, type) of the fields, the values of each document, and
        the portions of deposited files."""
        self.fields, self.field_values = [], [[] for _ in range(self.document_count)]
        # Of each document: key, URL, status and digest, or None.
        self.captures = [None] * self.document_count
        self.deposits = []
        if CONTAINER_DIRECTORY not in self.sections:
            return
        require(CONTAINER_DATA in self.sections, f"{self.name}: a directory without data")
        directory, previous = self.section(CONTAINER_DIRECTORY), 0
        count = directory.varint()
        require(1 <= count <= 16, f"{directory.name}: number of sub-sections")
        for _ in range(count):
            kind, size = directory.varint(), directory.varint()
            require(kind > previous, f"{directory.name}: order of sub-sections")
            previous, head = kind, Bytes(directory.take(size), directory.name)
            if kind == 1:
                self.parse_field_head(head)
            elif kind == 2:
                self.parse_captures(head)
            elif kind == 3:
                self.deposits = parse_deposits(self, head)
        require(directory.position == len(directory.data), f"{directory.name}: size")

    def parse_field_head(self, head):
        count = head.varint()
        require(1 <= count <= 256, f"{head.name}: number of fields")
        for _ in range(count):
            size = head.varint()
            require(1 <= size <= 64, f"{head.name}: size of a name")
            name, kind = head.take(size), head.take(1)[0]
            require(STRING <= kind <= TIME, f"{head.name}: type of a field")
            self.fields.append((name, kind))
        require(len(dict(self.fields)) == count, f"{head.name}: names of fields")
        first = 0
        for _ in range(head.varint()):
            size = head.varint()
            require(size >= 1, f"{head.name}: documents of a page")
            self.parse_page(self.part(head), first, size)
            first += size
        require(
            first == self.document_count and head.position == len(head.data),
            f"{head.name}: documents of the pages",
        )

    def parse_captures(self, head):
        """Section 6.13."""
        count, levels = head.varint(), head.varint()
        require(levels <= 32, f"{head.name}: levels")
        found = list(self.captures_below(self.part(head), levels))
        require(
            1 <= count == len(found) and head.position == len(head.data),
            f"{head.name}: number of captures",
        )
        places = [place for place, _ in found]
        require(places == sorted(set(places)), f"{head.name}: order of captures")
        for (key, time, ordinal), (skip, url, status, digest) in found:
            require(ordinal < self.document_count, f"{head.name}: ordinal of a capture")
            _, _, document_time, *_, name = self.documents[ordinal]
            require(
                self.captures[ordinal] is None and time == document_time,
                f"{head.name}: capture of document {ordinal}",
            )
            if url is None:
                require(skip <= len(name), f"{head.name}: URL of a capture")
                url = name[skip:]
            self.captures[ordinal] = (key, url, status, digest)

    def captures_below(self, part, levels):
        """Of each capture below a part: (key, time, ordinal), and the rest of it."""
        count = part.varint()
        require(1 <= count <= 4096, f"{part.name}: number of children or captures")
        keys = parse_keys(part, count)
        if levels == 0:
            yield from parse_leaf(part, keys)
            return
        times = [unzigzag(part.varint()) for _ in range(count)]
        ordinals = [part.varint() for _ in range(count)]
        last = None
        for key, time, ordinal in zip(keys, times, ordinals):
            stated = part.varint()
            captures = list(self.captures_below(self.part(part), levels - 1))
            first_key, first_time, first_ordinal = captures[0][0]
            require(
                len(captures) == stated
                and (time, ordinal) == (first_time, first_ordinal)
                and key <= first_key
                and (last is None or last < key or key == first_key),
                f"{part.name}: a child of a node",
            )
            last = captures[-1][0][0]
            yield from captures
        require(part.position == len(part.data), f"{part.name}: size")

    def part(self, fields):
        """The part that the reference at the front of `fields` names."""
        offset, stored_size, size = fields.varint(), fields.varint(), fields.varint()
        method, (expected,) = fields.varint(), struct.unpack("<Q", fields.take(8))
        data = self.sections[CONTAINER_DATA]
        require(
            1 <= stored_size <= size <= 1 << 20
            and offset + stored_size <= len(data)
            and method in (0, 1),
            f"{fields.name}: reference",
        )
        stored = data[offset : offset + stored_size]
        name = f"{self.name}: part at byte {offset} of the container"
        require(checksum(stored) == expected, f"{name}: checksum")
        return Bytes(decompress(method, stored, size, name), name)

    def parse_page(self, page, first, size):
        end = first + size
        require(end <= self.document_count, f"{page.name}: documents of a page")
        for _ in range(page.varint()):
            count = page.varint()
            require(1 <= count <= min(4096, end - first), f"{page.name}: documents of a group")
            for _, kind in self.fields:
                flags = page.take(1)[0]
                require(
                    flags < 16 and flags & 3 and (flags & 1 or flags == 2), f"{page.name}: flags"
                )
                block = self.part(page) if flags & 1 else None
                least = parse_bound(page, kind) if flags & 4 else None
                greatest = parse_bound(page, kind) if flags & 8 else None
                values = parse_values(block, kind, flags & 2, count) if block else [None] * count
                for value in values:
                    if value is not None and value == value:
                        require(least is None or not value < least, f"{page.name}: least")
                        require(
                            greatest is None or not value > greatest, f"{page.name}: greatest"
                        )
                for ordinal, value in enumerate(values, first):
                    require(
                        value is None or not self.is_removed(ordinal),
                        f"{page.name}: a value of a removed document",
                    )
                    self.field_values[ordinal].append(value)
            first += count
        require(first == end and page.position == len(page.data), f"{page.name}: size")

    def is_removed(self, ordinal):
        _, _, time, media_type, record_type, name = self.documents[ordinal]
        return (
            record_type == b"withdrawn" and not name and not media_type and time is None
        )

    def block(self, index):
        name = f"{self.name}: block {index}"
        frame = self.data[self.frames[index] : self.frames[index + 1]]
        fields = Bytes(frame, name)
        word = fields.u32()
        payload = fields.take(len(frame) - 12)
        stored_checksum = fields.u64()
        require(
            stored_checksum == checksum(frame[:-8], (self.number << 40) + index),
            f"{name}: checksum",
        )
        require(word >> 24 in (0, 1, 2), f"{name}: reserved bits")
        require(word & 0xFFFFFF == len(payload), f"{name}: payload size")
        size = self.block_text_size(index)
        try:
            text = (
                payload
                if word >> 24 == 1
                else decode_block(
                    self.manifest, payload, word >> 24 == 2, size, self.dictionary
                )
            )
        except CODEC_ERRORS as error:
            raise Refused(f"{name}: {error}") from error
        require(len(text) == size, f"{name}: size of the text")
        return text, stored_checksum

    def member(self, index):
        """Of codec auto: the codec of the block's payload, and its size."""
        frame = self.data[self.frames[index] : self.frames[index + 1]]
        if frame[3] == 1:
            return 1, len(frame) - 12
        has_several = frame[3] == 2 or self.manifest["partition_size"] != 0
        return CODEC_AUTO if has_several else frame[4], len(frame) - 12

    def range(self, start, size):
        text = b""
        for run_start, run_size, place in self.runs:
            begin, end = max(start, run_start), min(start + size, run_start + run_size)
            if begin < end:
                text += self.stored_range(place + begin - run_start, end - begin)
        return text

    def document_end(self, offset):
        """The end of the document that has the byte."""
        return next(
            start + size for start, size, *_ in self.documents if start <= offset < start + size
        )

    def stored_range(self, start, size):
        first = bisect.bisect_right(self.starts, start) - 1
        text, index = b"", first
        while len(text) < start + size - self.starts[first]:
            text += self.block(index)[0]
            index += 1
        return text[start - self.starts[first] :][:size]

    def check_chain(self):
        chain = 0
        for index in range(self.block_count):
            chain = checksum(struct.pack("<Q", self.block(index)[1]), chain)
        require(chain == self.chain, f"{self.name}: block chain")
