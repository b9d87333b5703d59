#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every figure of speed and size in README.md and docs/ stands in loadtest/RESULTS.md.

CLAIMS lists them by hand: the words of the document, and for each of their figures the
row of the results that has it. A figure may be rounded, or be the quotient of two.
README lines that have a figure and are in no claim are complained about too.
"""
import re

from source_tree import read_text, run_check

README, RESULTS = "README.md", "loadtest/RESULTS.md"
# What counts as a figure, outside of code and of names such as `16 KiB` and "zstd -9".
FIGURE = re.compile(r"\d[\d.,]* %|\btimes as (?:long|fast|large|many)\b|\ba (?:fifth|third|half) "
                    r"(?:faster|smaller|larger)\b|\btwo thirds of\b|\bnearly twice\b")
TABLE_HEAD = "| form | size, % of the text |"


class Row:
    """A line of the results, by how it begins, and its number `index` from 0."""

    def __init__(self, start, index):
        self.start, self.index = start, index

    def value(self, results):
        lines = [line for line in results.splitlines() if line.startswith(self.start)]
        if len(lines) != 1:
            raise ValueError(f"{len(lines)} lines begin with {self.start!r}")
        numbers = re.findall(r"\d[\d,]*(?:\.\d+)?", lines[0][len(self.start):])
        if self.index >= len(numbers):
            raise ValueError(f"there are {len(numbers)} numbers behind {self.start!r}")
        return float(numbers[self.index].replace(",", ""))


class Quotient:
    """Of two rows, for figures in words: between `low` and `high`."""

    def __init__(self, over, under, low, high):
        self.over, self.under, self.low, self.high = over, under, low, high


class Claim:
    """`words` of the README, and where its figures are: Row for each of those that are
    given, in order, by how they stand there, or Quotient for one in words."""

    def __init__(self, words, *figures):
        self.words, self.figures = words, figures


def codec(name, index):
    return Row(f"| {name} | - |", index)


def rlz(level, index):
    return Row(f"| rlz:{level} | coverage |", index)


# Numbers of a row of "Codecs in memory" in blocks of 64 KiB: size, build MB/s, ranges.
SIZE, BUILD, RANGES = 1, 3, 6
RLZ_STORE = Row("| rlz:2 | 16 KiB / 64 KiB | 16 MiB |", 1)
ROCKS_STORE = Row("| RocksDB zstd:3 | 16 KiB / 64 KiB | 112 KiB |", 1)
RLZ_READS = Row("| rlz:2 | 16 KiB / 64 KiB | 16 MiB |", 5)
ROCKS_READS = Row("| RocksDB zstd:3 | 16 KiB / 64 KiB | 112 KiB |", 5)

CLAIMS = [
    Claim("76,600 documentation pages take 8.4 % of their size",
          ("76,600", Row("| archive, all files |", 3)), ("8.4", Row("| archive, all files |", 1))),
    Claim("a twelfth of the text where gzip in blocks takes a seventh",
          Quotient(100, rlz(2, SIZE), 11.5, 12.5), Quotient(100, codec("zlib:9", SIZE), 6.5, 7.5)),
    Claim("two thirds of the size and nearly twice the reads of whole documents per core",
          Quotient(RLZ_STORE, ROCKS_STORE, 0.64, 0.69), Quotient(RLZ_READS, ROCKS_READS, 1.8, 2)),
    Claim("| Quire `rlz`, 64 KiB blocks, 16 MiB dictionary | 8.37 | 46 | 48,400 ranges of 16 KiB |",
          ("8.37", rlz(2, SIZE)), ("46", rlz(2, BUILD)), ("48,400", rlz(2, RANGES))),
    Claim("| the same as a store of whole documents | 7.59 | 31 | 26,600 documents |",
          ("7.59", RLZ_STORE), ("31", Row("| rlz:2 | 16 KiB / 64 KiB | 16 MiB |", 3)),
          ("26,600", RLZ_READS)),
    Claim("| Quire `rlz:max` | 8.05 | 8 | 43,600 ranges of 16 KiB |",
          ("8.05", rlz(3, SIZE)), ("8", rlz(3, 2)), ("43,600", rlz(3, 5))),
    Claim("| zstd -9 in 64 KiB blocks, no dictionary | 13.48 | 100 | 27,600 ranges of 16 KiB |",
          ("13.48", codec("zstd:9", SIZE)), ("100", codec("zstd:9", BUILD)),
          ("27,600", codec("zstd:9", RANGES))),
    Claim("| zlib -9 in 64 KiB blocks | 14.36 | 36 | 19,700 ranges of 16 KiB |",
          ("14.36", codec("zlib:9", SIZE)), ("36", codec("zlib:9", BUILD)),
          ("19,700", codec("zlib:9", RANGES))),
    Claim("| bgzip, indexed | 14.42 | 65 | 13,000 ranges of 16 KiB |",
          ("14.42", codec("bgzip", 0)), ("65", codec("bgzip", 1)), ("13,000", codec("bgzip", 2))),
    Claim("| LZ4 in 64 KiB blocks | 21.23 | 797 | 58,500 ranges of 16 KiB |",
          ("21.23", codec("lz4:1", SIZE)), ("797", codec("lz4:1", BUILD)),
          ("58,500", codec("lz4:1", RANGES))),
    Claim("| RocksDB, zstd -3, 64 KiB blocks | 11.36 | 57 | 14,400 documents |",
          ("11.36", ROCKS_STORE), ("57", Row("| RocksDB zstd:3 | 16 KiB / 64 KiB | 112 KiB |", 3)),
          ("14,400", ROCKS_READS)),
    Claim("`rlz:max` builds nearly six times as long for 4 % less",
          Quotient(rlz(2, BUILD), rlz(3, 2), 5.5, 6), Quotient(rlz(3, SIZE), rlz(2, SIZE), 0.955, 0.965)),
]
# Words with figures that no benchmark of the results measures.
OTHER = ["On an archive of 29 MB that took 12 s of CPU and 6.1 % of its size"]


def half_unit(figure):
    """How far a value may be from a figure that is rounded to its last digit that is
    not a zero before the point."""
    plain = figure.replace(",", "")
    if "." in plain:
        return 0.5 * 10 ** -len(plain.split(".")[1])
    zeros = len(plain) - len(plain.rstrip("0"))
    return 0.5 * 10 ** min(zeros, max(len(plain) - 2, 0))


def value_of(figure, results):
    return figure.value(results) if isinstance(figure, Row) else figure


def complaints_of(claim, results):
    for figure in claim.figures:
        try:
            if isinstance(figure, Quotient):
                found = value_of(figure.over, results) / value_of(figure.under, results)
                if not figure.low <= found <= figure.high:
                    yield f"is {found:.3f} in the results, not {figure.low} to {figure.high}"
                continue
            text, row = figure
            if text not in claim.words:
                yield f"has no figure {text}"
            found = row.value(results)
            if abs(found - float(text.replace(",", ""))) > half_unit(text) * 1.0001:
                yield f"{text} is {found:g} in the results"
        except ValueError as error:
            yield f"in the results {error}"


def uncovered_lines(readme, claims):
    """Lines with figures that no claim has; those of the table of forms all have some."""
    flat = re.sub(r"\s+", " ", readme)
    covered = re.sub(r"\s+", " ", readme)
    for claim in claims:
        covered = covered.replace(claim.words, " " * 3)
    for other in OTHER:
        covered = covered.replace(other, "   ")
    yield from (match.group(0) for match in FIGURE.finditer(covered))
    if TABLE_HEAD in flat:
        table = readme[readme.index(TABLE_HEAD):].split("\n\n")[0].splitlines()[2:]
        for line in table:
            if not any(claim.words == line for claim in claims):
                yield line


def check_claims(root, claims):
    documents = [root / README, *sorted((root / "docs").glob("*.md"))]
    readme = "\n\n".join(read_text(document) for document in documents)
    results = read_text(root / RESULTS)
    flat = re.sub(r"\s+", " ", readme)
    found = []
    for claim in claims:
        if claim.words not in flat:
            found.append(f"{README}: does not say {claim.words!r}")
        found += [f"{README}: {claim.words!r}: {complaint}"
                  for complaint in complaints_of(claim, results)]
    return found + [f"{README}: {text!r} is in no claim of readme_figures_test.py"
                    for text in uncovered_lines(readme, claims)]


BAD_CLAIMS = [
    Claim("a size of 8.4 %", ("8.4", Row("| size |", 0))),
    Claim("one of 8.3 %", ("8.3", Row("| size |", 0))),
    Claim("1,300 reads", ("1,300", Row("| reads |", 0))),
    Claim("1,200 reads", ("1,200", Row("| reads |", 0))),
    Claim("twice the size", Quotient(Row("| reads |", 0), Row("| size |", 0), 1, 2)),
    Claim("gone", ("1", Row("| none |", 0))),
]
BAD_SAMPLE = {
    README: "a size\nof 8.4 %, one of 8.3 %, 1,300 reads, 1,200 reads and twice the size; "
            f"99 % of all\n\n{TABLE_HEAD}\n|---|\n| a | 1 |\n\nend\n",
    RESULTS: "| size | 8.42 | 3 |\n| reads | 1,249 |\n",
}
EXPECTED = ["'one of 8.3 %': 8.3 is 8.42", "'1,300 reads': 1,300 is 1249",
            "'twice the size': is 148.337", "does not say 'gone'",
            "'gone': has no figure 1", "'gone': in the results 0 lines",
            "'99 %' is in no claim",
            "'| a | 1 |' is in no claim"]


def check(root, _):
    return check_claims(root, BAD_CLAIMS if (root / README).read_text() == BAD_SAMPLE[README]
                        else CLAIMS)


if __name__ == "__main__":
    run_check("readme_figures_test", check, BAD_SAMPLE, EXPECTED)
