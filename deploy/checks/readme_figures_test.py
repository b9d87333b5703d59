#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that every figure of speed and size in README.md and docs/ is in
loadtest/RESULTS.md.

CLAIMS lists them: the words of the document, and for each figure its row in the results.
A figure may be rounded, or be the quotient of two. README lines with a figure that is in
no claim are reported, too.
"""
import re

from source_tree import read_text, run_check

README, RESULTS = "README.md", "loadtest/RESULTS.md"
# Pattern of a figure, outside of code and of names such as `16 KiB` and "zstd -9".
FIGURE = re.compile(r"\d[\d.,]* %|\btimes as (?:long|fast|large|many)\b|\ba (?:fifth|third|half) "
                    r"(?:faster|smaller|larger)\b|\btwo thirds of\b|\bnearly twice\b")
TABLE_HEAD = "| form | size, % of the text |"


class Row:
    """A line of the results, by its beginning, and its number `index` from 0."""

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
    """Quotient of two rows, for figures in words: between `low` and `high`."""

    def __init__(self, over, under, low, high):
        self.over, self.under, self.low, self.high = over, under, low, high


class Claim:
    """`words` of the README and the rows of their figures: a Row for each, in order, or a
    Quotient for one in words."""

    def __init__(self, words, *figures):
        self.words, self.figures = words, figures


# Columns of "Quire and its peers": % of the text, build MB/s, reads.
SIZE, BUILD, READS = 0, 1, 2


def form(name, index):
    return Row(f"| {name} |", index)


RLZ = "Quire `rlz`, 64 KiB blocks, 16 MiB dictionary"
RLZ_MAX = "Quire `rlz:max`"
RLZ_STORE = "the same as a store of whole documents"
ZLIB = "zlib -9 in 64 KiB blocks"
ROCKS_STORE = "RocksDB, zstd -3, 64 KiB blocks"


def row_claim(name, size, build, reads, of):
    """Returns the claim for a row of the README's table."""
    return Claim(f"| {name} | {size} | {build} | {reads} {of} |", (size, form(name, SIZE)),
                 (build, form(name, BUILD)), (reads, form(name, READS)))


def plain_claim(text, name, plain, zstd, xz):
    """Returns the claim for a plain build, whose columns are MB, plain, before, change, zstd, xz."""
    return Claim(f"| {text} | {plain} | {zstd} | {xz} |",
                 *((figure, Row(f"| {name} |", index))
                   for figure, index in ((plain, 1), (zstd, 4), (xz, 5))))


def lines_size(form_name):
    return Row(f"| 832,629 lines of 24 bytes: {form_name} |", 0)


CLAIMS = [
    Claim("76,600 documentation pages take 6.8 % of their size",
          ("76,600", Row("| archive, all files |", 3)), ("6.8", Row("| archive, all files |", 1))),
    Claim("a twelfth of the text where gzip in blocks takes a seventh",
          Quotient(100, form(RLZ, SIZE), 11.5, 12.5), Quotient(100, form(ZLIB, SIZE), 6.5, 7.5)),
    Claim("two thirds of the size and twice the reads of whole documents per core",
          Quotient(form(RLZ_STORE, SIZE), form(ROCKS_STORE, SIZE), 0.64, 0.69),
          Quotient(form(RLZ_STORE, READS), form(ROCKS_STORE, READS), 1.9, 2.2)),
    Claim("two thirds of the size, ids, a network API",
          Quotient(lines_size("Quire, a plain `quired build`"), lines_size("DuckDB"), 0.62, 0.69),
          Quotient(lines_size("Quire, a plain `quired build`"), lines_size("Lance, `zstd`"),
                   0.6, 0.69)),
    row_claim(RLZ, "8.37", "87", "81,700", "ranges of 16 KiB"),
    row_claim(RLZ_STORE, "7.59", "79", "53,900", "documents"),
    row_claim("Quire, a plain `quired build`, served over gRPC", "6.34", "9.1", "10,500", "documents"),
    row_claim("Quire, `--objective archive`, served over gRPC", "5.16", "3.3", "13,400", "documents"),
    row_claim("zstd -9 in 64 KiB blocks, no dictionary", "13.48", "177", "43,600",
              "ranges of 16 KiB"),
    row_claim("bgzip, indexed", "14.42", "159", "22,600", "ranges of 16 KiB"),
    row_claim(ROCKS_STORE, "11.36", "124", "25,200", "documents"),
    row_claim("ZIM (libzim), zstd in clusters of 2 MiB", "7.24", "4.7", "2,020", "documents"),
    row_claim("DwarFS, zstd -22, 16 MiB blocks", "6.53", "2.6", "242", "documents"),
    plain_claim("two releases of a C++ manual, 269 MB", "manual", "4.54", "5.46", "6.04"),
    plain_claim("three releases of a compiler, 105 MB", "compiler", "2.53", "2.60", "2.31"),
    plain_claim("four releases of a Python library, 119 MB", "releases", "4.39", "4.20", "3.98"),
    Claim("6.8 % of documentation; 2 to 30 % of ten collections",
          ("6.8", Row("| archive, all files |", 1)), ("2", Row("| pages |", 1)),
          ("30", Row("| prose |", 1))),
    Claim("`rlz:max` builds ten times as long for 5 % less",
          Quotient(form(RLZ, BUILD), form(RLZ_MAX, BUILD), 9, 11),
          Quotient(form(RLZ_MAX, SIZE), form(RLZ, SIZE), 0.945, 0.955)),
]
# Texts with figures that no benchmark of the results measures.
OTHER = ["On an archive of 29 MB that took 12 s of CPU and 6.1 % of its size",
         "(dedup -0.5 % by a trial of 16 MiB)", "at least 2 % smaller (`archive`: 0.5 %)",
         "`auto`, from 2 % saved | `auto`, from 0.5 % saved",
         "of which that would be more than 0.5 % is not kept"]


def half_unit(figure):
    """Returns the tolerance of a rounded figure: half a unit of its last significant
    digit before the point."""
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
    """Returns lines with figures in no claim; lines of the table of forms always have some."""
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
