# SPDX-License-Identifier: Apache-2.0
"""What RESULTS.md shows of each benchmark: a function for each makes a Section of the
figures that the benchmark's script wrote as JSON.
"""
import collections
import dataclasses
import re
import statistics

import api_limit as api_limit_bench
import device_bench
import fsst_bench
import migration_bench
import range_bench
import uncached_bench
from codec_table import format_number, format_size, format_speed
from live_server import parse_size

MIB = 1 << 20


@dataclasses.dataclass
class Aim:
    """A line of the summary."""
    what: str
    aim: str
    measured: str
    is_met: bool


@dataclasses.dataclass
class Section:
    title: str
    # One line: what is measured, how to read it.
    text: str
    # (header, rows) of each table.
    tables: list
    aims: list = dataclasses.field(default_factory=list)


def at_least(what, aim, value, digits=2, unit=""):
    return Aim(what, f"at least {aim}{unit}", f"{value:,.{digits}f}{unit}", value >= aim)


def at_most(what, aim, value, digits=2, unit=""):
    return Aim(what, f"at most {aim}{unit}", f"{value:,.{digits}f}{unit}", value <= aim)


def all_at_least(what, aim, values, digits=2, unit=""):
    """One line for several figures with one aim."""
    return Aim(what, f"at least {aim}{unit}",
               " / ".join(f"{value:,.{digits}f}" for value in values) + unit, min(values) >= aim)


def each_at_least(what, figures, digits=2, unit=""):
    """One line for several figures with an aim each: (aim, value)."""
    return Aim(what, f"at least {' / '.join(str(aim) for aim, _ in figures)}{unit}",
               " / ".join(f"{value:,.{digits}f}" for _, value in figures) + unit,
               all(value >= aim for aim, value in figures))


def each_at_most(what, figures, digits=2, unit=""):
    return Aim(what, f"at most {' / '.join(str(aim) for aim, _ in figures)}{unit}",
               " / ".join(f"{value:,.{digits}f}" for _, value in figures) + unit,
               all(value <= aim for aim, value in figures))


def percent(share):
    return "-" if share is None else f"{100 * share:.0f} %"


def archive_check(figures):
    build, ram = figures["build"], figures["inspect"]["memory"]
    documents = max(1, figures["inspect"]["document_count"])

    def load(what):
        report, latency = figures[what], figures[what]["latency_ms"]
        return (f"{report['right']:,} of {report['requests']:,} right, "
                f"{report['requests_per_second']:,.0f}/s, p50 {latency['p50']:.1f} ms, "
                f"p99 {latency['p99']:.1f} ms")

    rows = [
        ["archive, all files", f"{build['stored_bytes']:,} bytes, {build['stored_percent']:.3f} % of "
         f"{build['text_bytes']:,} bytes in {documents:,} documents"],
        ["`quired build`", f"{build['megabytes_per_second']} MB/s, {build['cpu_seconds']:.0f} s of "
         f"CPU, {build['resident_peak_bytes'] // MIB} MiB"],
        ["`quired verify`, `quire scan`", f"{figures['verify']['megabytes_per_second']:,.0f} MB/s, "
         f"{figures['scan']['megabytes_per_second']:,.0f} MB/s with SHA-256 "
         + ("equal" if figures["scan"]["sha256_equal"] else "DIFFERENT")],
        ["random documents, 64 in flight", load("documents")],
        ["random 16 KiB ranges, 64 in flight", load("ranges")],
        ["resident memory at most", f"{figures['memory']['resident_peak_bytes'] // MIB} MiB of "
         f"--memory {figures['memory']['limit_bytes'] // MIB} MiB"],
        ["indexes in RAM", f"{8 * ram['document_ids_bytes'] / documents:.1f} bits an id, "
         f"{8 * ram['document_starts_bytes'] / documents:.1f} bits a document start; "
         f"{ram['total_bytes'] / MIB:.1f} MiB with the dictionary"]]
    return Section("Build, serve, read back", "Codec rlz, blocks of 64 KiB, dictionary of 16 MiB; "
                   "every answer is compared with the source.", [(["what", "figure"], rows)])


LARGE_MEMBERS = "--inflate auto --inflate-member-size 6MiB"


def archive_sizes(rows):
    aims = {("webdocs256", "rlz", 16, ""): 8.4, ("webdocs256", "rlz:max", 16, ""): 8.15,
            ("webdocs", "rlz:max", 192, ""): 7.1,
            ("webdocs", "rlz", 64, LARGE_MEMBERS): 6.85,
            ("webdocs", "rlz:max", 192, LARGE_MEMBERS): 5.7,
            ("versions", "rlz:max", 64, "--reorder auto --inflate auto"): 7}
    found = []
    for row in rows:
        options = row.get("options", "")
        key = (row["text"], row["codec"], row["dictionary_size_bytes"] // MIB, options)
        if key in aims and row["block_size_bytes"] == 64 << 10:
            what = f"archive of {key[0]}, {key[1]}, {key[2]} MiB dictionary"
            found.append(at_most(what + (f", `{options}`" if options else ""), aims[key],
                                 row["rate_percent"], 3, " %"))
    cells = [[row["text"], " ".join([row["codec"], row.get("options", "")]).strip(),
              format_size(row["block_size_bytes"]),
              format_size(row["dictionary_size_bytes"]), f"{row['payload_bytes']:,}",
              f"{row['rate_percent']:.3f}"] for row in rows]
    return Section("Archives on disk", "All files of the archive, in percent of the text.",
                   [(["text", "codec", "block", "dictionary", "bytes", "%"], cells)], found)


SHOWN_CODECS = ("lz4:1", "zlib:9", "zstd:9", "rlz-uv", "rlz-pv", "rlz-zz:9", "rlz-zzz:9", "rlz:1",
                "rlz:2", "rlz:3", "bgzip", "lzo", "blosc:1")


def codec_bench(rows):
    blocks = collections.defaultdict(dict)
    for row in rows:
        if row["kind"] == "block" and row["codec"] in SHOWN_CODECS:
            blocks[row["codec"], row["dictionary_method"]][row["block_size_bytes"] >> 10] = row
    cells = []
    for (codec, method), sizes in blocks.items():
        middle = sizes.get(64, {})
        cells.append([codec, method or "-",
                      " / ".join(format_number(sizes.get(size, {}).get("rate_percent"), 2)
                                 for size in (16, 64, 256)),
                      format_speed(middle.get("encode_mb_per_second")),
                      format_speed(middle.get("decode_mb_per_second")),
                      " / ".join(format_number(sizes.get(size, {}).get("ranges_per_second"))
                                 for size in (16, 64, 256))])
    by_codec = collections.defaultdict(list)
    for row in rows:
        if row["kind"] == "store" and row.get("dictionary_method") != "uniform":
            by_codec[row["codec"]].append(row)
    stores = [[codec, " / ".join(format_size(row["block_size_bytes"]) for row in found),
               format_size(found[0]["dictionary_size_bytes"]),
               " / ".join(f"{row['rate_percent']:.2f}" for row in found),
               " / ".join(format_speed(row["encode_mb_per_second"]) for row in found),
               " / ".join(format_number(row["documents_per_second"]) for row in found)]
              for codec, found in by_codec.items()]
    tables = [(["codec", "dictionary", "rate %, 16 / 64 / 256 KiB", "build MB/s", "decode MB/s",
                "16 KiB ranges/s, 16 / 64 / 256 KiB"], cells)]
    if stores:
        tables.append((["store of whole documents", "block", "dictionary", "rate %", "build MB/s",
                        "documents/s"], stores))
    return Section("Codecs in memory", "One thread, CPU time. Rates count payload, dictionary under "
                   "xz and block index; build and decode speeds are for blocks of 64 KiB. rlz:2 is "
                   "the default level, rlz:3 is `rlz:max`.", tables)


FSST_ROWS = (
    ("FSST", "factor", "encode", "decode"), ("FSST, level high", "factor high", "encode high", None),
    ("FSST without AVX-512", None, None, "decode, any machine"),
    ("FSST, each line a string", None, "encode lines", "decode lines"),
    ("the paper's Algorithm 1", None, None, "Algorithm 1"),
    ("LZ4", "LZ4 factor", "LZ4 encode", "LZ4 decode"),
    ("zstd -1", "zstd -1 factor", "zstd -1 encode", "zstd -1 decode"))


def fsst(columns):
    mean = fsst_bench.average_of(columns)

    def cell(heading, digits):
        return "-" if heading is None else f"{mean[heading]:,.{digits}f}"

    names, factors, encodes, decodes = zip(*FSST_ROWS)
    rows = [["factor", *(cell(heading, 3) for heading in factors)],
            ["encode", *(cell(heading, 0) for heading in encodes)],
            ["decode", *(cell(heading, 0) for heading in decodes)]]
    plain = mean["Algorithm 1"]
    return Section(
        "FSST on columns of strings", f"Means over {len(columns)} text columns of 8 MiB, one "
        f"thread, MB/s of text; training takes {mean['train ms']:.1f} ms.",
        [(["", *names], rows)],
        [each_at_least("FSST: factor, by default / at level high",
                       [(2.48, mean["factor"]), (2.6, mean["factor high"])], 3),
         all_at_least("FSST: decoding / Algorithm 1, with AVX-512 and without", 1.4,
                      [mean["decode"] / plain, mean["decode, any machine"] / plain]),
         at_least("FSST: encoding / LZ4's", 0.85, mean["encode"] / mean["LZ4 encode"]),
         at_least("FSST: lines in a batch / Algorithm 1", 1.1, mean["decode lines"] / plain),
         at_most("FSST: training", 3, mean["train ms"], 1, " ms")])


DEVICE_ROWS = (("disk alone (fio)", "random_disk", "scan_disk"),
               ("decoding alone", "random_decode", "scan_decode"),
               ("decoding while fio makes the same reads", "random_with_fio", "scan_with_fio"),
               ("storage, without gRPC", "random_storage", "scan_storage"),
               ("server, one call a range; Scan in identity", "random", "full_identity"),
               ("server, BatchRead; Scan in stored blocks", "batch", "full_stored"))


def device(figures):
    def share(name, mode):
        return name and device_bench.share_of_limit(figures, name, mode, f"{mode}_decode")

    rows = [[label, format_number(figures.get(random)), percent(share(random, "random")),
             format_number(figures.get(scan)), percent(share(scan, "scan"))]
            for label, random, scan in DEVICE_ROWS]
    found = {what: each for what, each in (
        ("ranges through storage", share("random_storage", "random")),
        ("full reads through storage", share("scan_storage", "scan")),
        ("BatchRead", share("batch", "random")),
        ("Scan in stored blocks", share("full_stored", "scan"))) if each is not None}
    aims = [all_at_least(f"share of the slower of disk and decoding: {', '.join(found)}", 85,
                         [100 * each for each in found.values()], 0, " %")] if found else []
    return Section(
        "Storage and server next to the disk", "Cold, past the page cache; server and client share "
        "the cores. Shares are of the slower of disk and decoding.",
        [(["what", "16 KiB ranges/s", "share", "full read, MB/s", "share"], rows)], aims)


def sweep(rows):
    cells = collections.defaultdict(dict)
    sizes = sorted({row["block_size_bytes"] for row in rows})
    for row in rows:
        cells[row["codec"]][row["device"], row["mode"], row["block_size_bytes"]] = row

    def values(found, device_name, mode, name, digits=0):
        return " / ".join(format_number(
            found.get((device_name, mode, size), {}).get(name), digits) for size in sizes)

    panes = (("real", "full"), ("real", "batch"), ("real", "random"), ("wd-red", "batch"))
    table = [[codec, values(found, "real", "full", "rate_percent", 2),
              *(values(found, *pane, "ranges_per_second") for pane in panes)]
             for codec, found in cells.items()]
    blocks = " / ".join(format_size(size) for size in sizes)
    return Section("Archive size against access rate", f"Through the server, for blocks of {blocks}, "
                   "in units of 16 KiB a second; the last column is a modelled hard disk.",
                   [(["codec", "size, %", "FULL", "BATCH", "RANDOM", "BATCH on wd-red"], table)])


def wire(rows):
    links = list(dict.fromkeys(row["link"] for row in rows))
    encodings = list(dict.fromkeys(row["encoding"] for row in rows))
    found = collections.defaultdict(dict)
    for row in rows:
        found[row["corpus"]][row["link"], row["encoding"]] = row

    def values(cells, name, link):
        return " / ".join(format_number(cells.get((link, encoding), {}).get(name))
                          for encoding in encodings)

    table = [[corpus, *(values(cells, "answers/s", link) for link in links),
              values(cells, "data bytes an answer", links[0])] for corpus, cells in found.items()]
    return Section("Wire encodings", "Single documents at random, 64 in flight, answers a second "
                   f"over each link in {' / '.join(encodings)}; documents of webdocs have 18 KB, "
                   "those of l_comment 26 bytes.",
                   [(["corpus", *links, "bytes an answer"], table)])


# What is shown of a disk, and a pattern for the label that disk_figures gives it.
DISK_ROWS = (("one read at a time", r"RANDOM$"), ("batch of 10,000", r"BATCH of 10,000$"),
             ("256 outstanding", r"live, 256 outstanding$"),
             ("batch of 10,000 with a reader every 100 ms",
              r"BATCH of 10,000 .*reader, 100 ms between reads$"),
             ("the reader", r"a reader, 100 ms between reads$"),
             ("the batch, on a drive with priorities",
              r"BATCH of 10,000 .*reader, 100 ms between reads, with drive priority$"),
             ("the reader", r"a reader, 100 ms between reads, with drive priority$"))


def disk(tables):
    extents = [name for name in tables if "good firmware" in name]

    def find(extent, pattern):
        return next((row for row in tables[extent] if re.match(pattern, row[0])), None)

    rows = []
    for label, pattern in DISK_ROWS:
        found = [find(extent, pattern) for extent in extents]
        if any(found):
            rows.append([label, *(cell for row in found for cell in (
                (row[1], row[3], row[4], row[5]) if row else ("-",) * 4))])
    aims = []
    alone, batch, reader = (find(extents[0], DISK_ROWS[index][1]) for index in (1, -2, -1))
    if alone and batch and reader:
        aims = [at_most("modelled disk with priorities: a reader's p99 during a batch", 20,
                        float(reader[4]), 0, " ms"),
                at_least("the batch's share of its rate alone", 90,
                         100 * float(batch[1]) / float(alone[1]), 0, " %")]
    header = [f"{extent.split(',')[0]}: {unit}" if unit == "requests/s" else unit
              for extent in extents for unit in ("requests/s", "p50 ms", "p99 ms", "longest ms")]
    return Section("Scheduler on a modelled hard disk", "In virtual time, so the same on every "
                   "machine; ranges of 16 KiB on a disk of 5400 rpm, spread over two extents.",
                   [(["load", *header], rows)], aims)


# Of closed and open loops.
LIVE_LOADS = re.compile(r"(1|256|1,024) |open loop, (50|120|300) %")


def live(figures):
    rows = []
    for row in figures["rows"]:
        if not LIVE_LOADS.match(row["load"]):
            continue
        model = row["virtual_time"]
        rows.append([row["load"], *(format_number(row[name]) for name in (
            "requests_per_second", "p50_ms", "p99_ms", "max_ms")), format_number(row["refused"]),
            f"{row['resident_peak_bytes'] / MIB:.0f}",
            " / ".join(map(format_number, model)) if model else "-"])
    return Section("Server on a modelled hard disk, in real time", "Open loop: per cent of the rate "
                   "with 256 in flight. The last column is the simulation of the same extent.",
                   [(["load", "reads/s", "p50 ms", "p99 ms", "longest ms", "refusals",
                      "resident MiB", "in virtual time: reads/s / p50 / p99 / longest"], rows)])


# Cases that only tell where the others' cost comes from.
HIDDEN_CASES = re.compile(
    r".*(at the lowest priority|with much memory|process that|that reads|on a core of its own)")


def hostile(rows):
    cells, aims = [], []
    for row in rows:
        ratio = row["p99_loaded_ms"] / row["p99_alone_ms"]
        if HIDDEN_CASES.match(row["case"]):
            continue
        cells.append([row["case"], *(f"{row[name]:.2f}" for name in (
            "p50_alone_ms", "p50_loaded_ms", "p99_alone_ms", "p99_loaded_ms")), f"{ratio:.2f}",
            f"{row['resident_peak_bytes'] // MIB}"])
        if "empty service" not in row["case"]:
            aims.append(ratio)
    return Section(
        "Next to a hostile client", "Latency of an honest reader of 16 KiB ranges, 4 at a time. "
        "All clients share the cores with the server, so the same calls to an empty service are "
        "the measure.",
        [(["hostile client", "p50 alone, ms", "p50 with it", "p99 alone, ms", "p99 with it",
           "ratio of p99", "resident MiB"], cells)],
        [at_most("honest p99 next to a hostile client, worst case", 2, max(aims), 1)] if aims
        else [])


def security(rows):
    cells, tokens = collections.defaultdict(dict), []
    for row in rows:
        name = "unary" if row["mode"] == "random" else "batch"
        cells[name][row["kind"], row["size"]] = (
            f"{row['cpu_ratio']:.2f} ({row['cpu_ratio_min']:.2f} to {row['cpu_ratio_max']:.2f})")
        if name == "unary" and row["kind"] == "tokens and log":
            tokens.append(row["cpu_ratio"])
    columns = list(dict.fromkeys((row["kind"], row["size"]) for row in rows))
    return Section(
        "TLS, tokens and the access log", "CPU time of the server for a cached range, as a ratio "
        "to calls with none of them, in the same round; in brackets from the lowest to the highest "
        "round.",
        [(["calls", *(f"{kind}, {size}" for kind, size in columns)],
          [[name, *(each[column] for column in columns)] for name, each in cells.items()])],
        [at_most("unary calls with tokens and access log / without", 1.05, max(tokens))])


def api_limit(rounds):
    """Of what api_limit.py measured of each kind of call in each round."""
    def median(kind, name):
        values = [each[name] for each in rounds[kind] if each.get(name) is not None]
        return statistics.median(values) if values else None

    ratios = {}
    for kind, other, aim in api_limit_bench.AIMS:
        if aim is None:
            continue
        rate = "megabytes_per_second" if "scan" in kind else "answers_per_second"
        ratios[kind] = (statistics.median(
            a[rate] / b[rate] for a, b in zip(rounds[kind], rounds[other], strict=True)), other, aim)
    rows = []
    for kind in rounds:
        ratio, other, aim = ratios.get(kind, (None, None, None))
        rows.append([kind, format_number(median(kind, "answers_per_second")),
                     format_number(median(kind, "megabytes_per_second")),
                     format_number(median(kind, "server_cpu_us"), 1),
                     f"{ratio:.2f} of {other}" if ratio else "-"])
    return Section("Cached reads compared with an empty handler", "What gRPC alone does on the same "
                   "cores: a handler that returns a static buffer. Ranges of 16 KiB; an answer of a "
                   "scan is one of its messages.",
                   [(["calls", "answers/s", "MB/s", "CPU of the server, µs an answer",
                      "rate"], rows)],
                   [at_least(f"{kind} / {other}, cached", aim, ratio)
                    for kind, (ratio, other, aim) in ratios.items()])


def ranges(figures):
    long_sizes = range_bench.LONG_SIZES
    aims = [
        each_at_least(
            "`zlib-pex`, 24 ranges of 4 to 32 KiB / from the start, at random offsets too, with "
            "partitions of 8 KiB, and / decoding whole blocks",
            [(4, range_bench.ratio(figures, "start", "partition32", long_sizes)),
             (3.5, range_bench.ratio(figures, "start", "partition32", long_sizes, [None])),
             (6, range_bench.ratio(figures, "start", "partition8", long_sizes)),
             (8, range_bench.against_whole(figures, "partition32", long_sizes))]),
        at_least("whole blocks, `zlib-pex` / zlib", 0.97,
                 range_bench.whole(figures, "zlib") / range_bench.whole(figures, "partition32")),
        each_at_most("lost by partitions of 32 KiB, levels 1 / 6",
                     [(aim, range_bench.mean_loss(figures, level, 32 << 10))
                      for level, aim in ((1, 2), (6, 5))], 2, " points"),
        each_at_most("`--range-decode auto` / the better of whole blocks and partitions, at worst of "
                     "84 / of these and recursion, which the server does not use",
                     [(1.15, range_bench.rule_excess(figures)),
                      (1.15, range_bench.rule_excess(figures, ["phrases_recursive"]))], 2,
                     " times as long"),
        each_at_least("recursion of 64 / 256 B / the better of LZ4 and zlib from the start",
                      [(aim, range_bench.recursion_ratio(figures, size))
                       for size, aim in ((64, 3), (256, 1.5))])]
    return Section(
        "Short ranges of large blocks",
        f"{len(figures['pieces'])} pieces of {range_bench.PIECE_SIZE:,} bytes, from the most to the "
        "least compressible; means of CPU time, in brackets times as fast as from the start. "
        "`range_bench.svg` draws it by offset, and what partitions lose; `codecs/lz77/NOTES.md` has "
        "the paper's sums next to these.",
        [(range_bench.WAY_HEADER, range_bench.way_rows(figures))], aims)


def uncached(figures):
    return Section(
        "Short ranges that are not cached",
        f"Random ranges of {format_size(figures['range_size'])} of blocks of "
        f"{format_size(figures['block_size'])} from a server that can cache a fraction of the text. "
        "In brackets: the codec without partitions, in the same rounds.",
        [(uncached_bench.HEADER, uncached_bench.rows(figures))],
        [all_at_least("uncached ranges, answers for a second of CPU, with partitions / without: "
                      + ", ".join(f"`{codec}` in {format_size(parse_size(size))}"
                                  for codec, size in uncached_bench.PAIRS), 2,
                      [uncached_bench.gain(figures, pair) for pair in uncached_bench.PAIRS])])


def migration(figures):
    def speed(row):
        return row["stored_bytes"] / row["sketch_cpu_seconds"]

    divide, sketch, recipe, tables = [], [], [], []
    for name, corpus in figures.items():
        methods, size = corpus["methods"], corpus["text_bytes"]
        odess, moved = methods["odess"], corpus["parts"]["all"]
        divide.append(size / 1e6 / odess["divide_cpu_seconds"])
        sketch.append(speed(odess) / speed(methods["ntransform"]))
        recipe.append(100 * moved["recipe_bytes"] / size)
        found = {**corpus["gains"], **corpus.get("long", {})}
        cells = {codec: (f"{100 * plain / size:.2f}", f"{100 * migrated / size:.2f} "
                         f"({migration_bench.gain(plain, migrated):+.0f} %)")
                 for codec, (plain, migrated, *_) in found.items()}
        cells |= {store: (f"{100 * stored / size:.2f}", "-")
                  for store, (stored, _) in corpus.get("stores", {}).items()}
        tables.append((name, cells))
    codecs = list(dict.fromkeys(codec for _, cells in tables for codec in cells))
    rows = [[f"{name}, {what}", *(cells.get(codec, ("-", "-"))[index] for codec in codecs)]
            for name, cells in tables for index, what in enumerate(("as it is", "migrated"))]
    return Section(
        "Migratory compression",
        "Compressed size in percent of the text: as it is, with chunks of 2 KiB migrated and "
        "duplicates stored once, in brackets how much the compression factor grows by it; stores "
        "have only the first. Samples of "
        + ", ".join(f"{name} ({corpus['text_bytes']:,} bytes)" for name, corpus in figures.items())
        + ". `migration_bench.svg` draws chunk sizes, super-features and reading, too.",
        [(["", *codecs], rows)],
        [all_at_least(f"chunks and duplicates of {', '.join(figures)}, MB/s a thread", 400, divide, 0),
         all_at_least("the same, features: Odess / N-transform", 8, sketch, 1, " times as fast"),
         at_most("the same, recipe", 0.2, max(recipe), 2, " %")])


# In the order of the page.
SECTIONS = {"archive_check": archive_check, "archive_sizes": archive_sizes,
            "codec_bench": codec_bench, "fsst_bench": fsst, "device_bench": device,
            "sweep": sweep, "api_limit": api_limit, "wire_bench": wire,
            "disk_figures": disk, "live_disk": live,
            "hostile_load": hostile, "range_bench": ranges, "uncached_bench": uncached,
            "security_bench": security, "migration_bench": migration}
# These go to a page of their own: most are exact on every machine.
MODELLED = ("disk_figures", "live_disk")
