#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the programs whose DEFLATE streams `quired build --inflate auto` reproduces.

    loadtest/bench/foreign_encoders.py --build build/release --text webdocs.raw

Compresses pieces of a text, of 1 KiB to 256 KiB like pages and styles of web sites, by
each program that this machine has, builds an archive of each program's files, and prints
the results for the members.
"""
import collections
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from bench_json import add_json_option, print_figures
from bench_setup import find_programs, make_parser
from markdown_table import markdown

SEED = 20261123
SIZE_BITS = (10, 18)
GO = """package main
import ("compress/gzip"; "io"; "os")
func main() {
  out := gzip.NewWriter(os.Stdout)
  if _, err := io.Copy(out, os.Stdin); err != nil { panic(err) }
  if err := out.Close(); err != nil { panic(err) }
}
"""
NODE = "process.stdout.write(require('zlib').gzipSync(require('fs').readFileSync(0)))"


def piped(*command):
    def compress(data):
        return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout
    return compress


def by_file(*command):
    """Wraps programs that read FILE and write FILE.gz."""
    def compress(data):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "text"
            path.write_bytes(data)
            subprocess.run([*command, path], check=True, stdout=subprocess.DEVNULL)
            return path.with_name("text.gz").read_bytes()
    return compress


def seven_zip(data):
    return subprocess.run(["7z", "a", "-tgzip", "-si", "-so", "-bd", "text.gz"], input=data,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def build_go(directory):
    source = directory / "main.go"
    source.write_text(GO)
    subprocess.run(["go", "build", "-o", directory / "go-gzip", source], check=True)
    return piped(directory / "go-gzip")


def make_tools(directory):
    """Returns by name the required program and the compressing function."""
    return {
        "gzip -6": ("gzip", lambda: piped("gzip", "-6n")),
        "gzip -9": ("gzip", lambda: piped("gzip", "-9n")),
        "zlib 1.2.13, level 6 (Python)": (
            "python3", lambda: lambda data: zlib.compress(data, 6, wbits=31)),
        "pigz": ("pigz", lambda: piped("pigz", "-n")),
        "Chromium's zlib, level 6 (Node)": ("node", lambda: piped("node", "-e", NODE)),
        "Go compress/gzip": ("go", lambda: build_go(directory)),
        "libdeflate, level 6": ("libdeflate-gzip", lambda: piped("libdeflate-gzip", "-6", "-c")),
        "libdeflate, level 12": ("libdeflate-gzip", lambda: piped("libdeflate-gzip", "-12", "-c")),
        "7-Zip": ("7z", lambda: seven_zip),
        "zopfli": ("zopfli", lambda: by_file("zopfli", "--i5")),
    }


def draw_pieces(path, count):
    """Draws pieces of the text whose sizes are equally likely in each power of two."""
    draw = random.Random(SEED)
    size_all = path.stat().st_size
    pieces = []
    with open(path, "rb") as text:
        for _ in range(count):
            size = min(int(2 ** draw.uniform(*SIZE_BITS)), size_all)
            text.seek(draw.randrange(size_all - size + 1))
            pieces.append(text.read(size))
    return pieces


def measure(quired, pieces, compress, directory):
    """Returns the members' results, from `quired inspect --json`."""
    shutil.rmtree(directory, ignore_errors=True)
    files = directory / "files"
    files.mkdir(parents=True)
    for number, piece in enumerate(pieces):
        (files / f"{number:05}.gz").write_bytes(compress(piece))
    archive = directory / "archive.quire"
    subprocess.run([quired, "build", "--quiet", "--inflate", "auto", "--dictionary-size", "256KiB",
                    "-o", archive, files], check=True)
    inspected = subprocess.run([quired, "inspect", "--json", archive], check=True,
                               stdout=subprocess.PIPE)
    found = json.loads(inspected.stdout).get("compressed_members", {}).get("gzip", {})
    kept = collections.Counter(
        {reason: each["size_bytes"] for reason, each in found.get("kept", {}).items()})
    inflated = found.get("size_bytes", 0)
    return {"size_bytes": sum(path.stat().st_size for path in files.iterdir()),
            "inflated_bytes": inflated, "kept_bytes": kept}


def main():
    parser = make_parser(__doc__, "quired")
    parser.add_argument("--text", type=pathlib.Path, required=True, help="any large text")
    parser.add_argument("--pieces", type=int, default=200)
    add_json_option(parser)
    arguments = parser.parse_args()
    if not arguments.text.is_file():
        parser.error(f"--text: no file {arguments.text}")
    (quired,) = find_programs(arguments.build, "quired")
    pieces = draw_pieces(arguments.text, arguments.pieces)
    figures = []
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        for name, (program, make) in make_tools(directory).items():
            if shutil.which(program) is None:
                print(f"{name}: there is no {program} here", file=sys.stderr)
                continue
            figures.append({"encoder": name,
                            **measure(quired, pieces, make(), directory / "work")})
    print_figures(arguments, figures, markdown(
        ["encoder", "bytes", "stored as text", "why not"],
        [[each["encoder"], f"{each['size_bytes']:,}",
          f"{100 * each['inflated_bytes'] / each['size_bytes']:.1f} %",
          ", ".join(f"{reason} {100 * size / each['size_bytes']:.1f} %"
                    for reason, size in each["kept_bytes"].most_common())]
         for each in figures]))


if __name__ == "__main__":
    main()
