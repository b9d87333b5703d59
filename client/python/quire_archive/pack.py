# SPDX-License-Identifier: Apache-2.0
"""The program quire-pack: rows of Parquet files and entries of ZIM files as input of
`quired build`, and archives as Parquet files.

    quire-pack parquet FILE... --id FIELD --text FIELD | quired build -o X -
    quire-pack zim FILE... | quired build -o X -
    quire-pack rows FILE... --column NAME | quired build -o X --split lines --id-field NAME -
    quire-pack export-parquet ARCHIVE FILE

The output of the first two is a tar; the time of its members is that of the file. A tar
cannot hold an id that ends with a slash or begins with "./": `--format lines` writes JSON
Lines with the members `id` and `text` instead, for text in UTF-8 only. Neither holds an
empty id. `rows` writes JSON Lines, an object of the named or all columns for each row; `quired
build` runs it for inputs that are Parquet.
"""
from __future__ import annotations

import argparse
import io
import json
import os
import sys
import tarfile
from typing import IO, Any, Iterable, Iterator, List, NamedTuple, Optional, Tuple

from . import __version__
from ._program import (add_connection_options, connect_as, need_module, replaced_file, run_program,
                       say)
from .records import WithdrawnCount

_PROGRAM = "quire-pack"
# Rows that are decoded at once.
_BATCH_ROWS = 64
# Left-out entries that are named.
_NAMED_MAX = 10
# Of columns in memory.
_ROW_GROUP_SIZE_BYTES = 128_000_000
_REDIRECT = "it is a redirect"


class Entry(NamedTuple):
    """A document to be. `fault`: why there is none."""

    # Where it comes from, for messages.
    origin: str
    id: Optional[bytes]
    text: Optional[bytes]
    fault: str = ""


# --- Sources.

def _to_bytes(value: Any, what: str) -> Tuple[Optional[bytes], str]:
    """(bytes, fault) of a value of a column."""
    if value is None:
        return None, f"its {what} is null"
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass"), ""
    if isinstance(value, bytes):
        return value, ""
    return str(value).encode(), ""


def read_parquet(path: str, id_field: str, text_field: str) -> Iterator[Entry]:
    """The rows of a file, in order. Raises ValueError if a column is not usable."""
    # pylint: disable=import-outside-toplevel
    import pyarrow
    import pyarrow.parquet
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            for option, field in (("--id", id_field), ("--text", text_field)):
                _check_column(path, schema, option, field)
            row = 0
            for batch in file.iter_batches(_BATCH_ROWS, columns=[id_field, text_field]):
                columns = [batch.column(batch.schema.get_field_index(field)).to_pylist()
                           for field in (id_field, text_field)]
                for key, text in zip(*columns):
                    found_id, id_fault = _to_bytes(key, "id")
                    found_text, text_fault = _to_bytes(text, "text")
                    yield Entry(f"{path}: row {row}", found_id, found_text,
                                id_fault or text_fault)
                    row += 1
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path}: is not a Parquet file, or damaged: {error}") from None


def _check_column(path: str, schema: Any, option: str, field: str) -> None:
    # pylint: disable=import-outside-toplevel
    from pyarrow import types
    index = schema.get_field_index(field)
    if index < 0:
        raise ValueError(f"{path}: {option} {field}: must be one of its columns, "
                         f"{', '.join(schema.names)}")
    kind = schema.field(index).type
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    # Numbers are ids in decimal.
    if not any(check(kind) for check in texts) and not (
            option == "--id" and types.is_integer(kind)):
        raise ValueError(f"{path}: {option} {field}: must be a column of strings or bytes"
                         f"{' or integers' if option == '--id' else ''}, got {kind}")


def write_rows(path: str, columns: Optional[List[str]], output: IO[bytes]) -> "Packed":
    """Writes the rows of a file as JSON Lines; names the first that are left out."""
    from . import _rows  # pylint: disable=import-outside-toplevel
    written = left_out = 0
    for row in _rows.read_rows(path, columns):
        if row.fault:
            left_out += 1
            if left_out <= _NAMED_MAX:
                say(_PROGRAM, f"{row.origin}: left out, {row.fault}")
            continue
        output.write(b"{%b}\n" % row.members.encode("utf-8", "surrogatepass"))
        written += 1
    return Packed(written, left_out, 0)


def read_zim(path: str) -> Iterator[Entry]:
    """The entries of a file, by path; redirects are left out."""
    # pylint: disable=import-outside-toplevel
    from libzim.reader import Archive  # pylint: disable=no-name-in-module
    try:
        archive = Archive(path)
    except RuntimeError as error:
        raise ValueError(f"{path}: is not a ZIM file, or damaged: {error}") from None
    for number in range(archive.entry_count):
        entry = archive._get_entry_by_id(number)  # pylint: disable=protected-access
        origin = f"{path}: entry {number}"
        if entry.is_redirect:
            yield Entry(origin, None, None, _REDIRECT)
            continue
        try:
            text = bytes(entry.get_item().content)
        except RuntimeError as error:
            raise ValueError(f"{origin} ({entry.path!r}): {error}") from None
        yield Entry(origin, entry.path.encode("utf-8", "surrogatepass"), text)


# --- Outputs.

class _TarOutput:
    def __init__(self, file: IO[bytes], time: int) -> None:
        self._tar = tarfile.open(mode="w|", fileobj=file, format=tarfile.PAX_FORMAT,
                                 encoding="utf-8", errors="surrogateescape")
        self._time = time

    def fault(self, entry: Entry) -> str:
        """Why the entry cannot be written; empty if it can."""
        assert entry.id is not None
        if entry.id.endswith(b"/"):
            return "its id ends with a slash, which names a directory"
        if entry.id.startswith(b"./"):
            return "its id begins with ./, which quired build drops"
        return "its id has a NUL" if b"\0" in entry.id else ""

    def write(self, entry: Entry) -> None:
        """Adds a member."""
        assert entry.id is not None and entry.text is not None
        info = tarfile.TarInfo(entry.id.decode("utf-8", "surrogateescape"))
        info.size = len(entry.text)
        info.mtime = self._time
        self._tar.addfile(info, io.BytesIO(entry.text))

    def close(self) -> None:
        """Ends the tar."""
        self._tar.close()


class _LinesOutput:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def fault(self, entry: Entry) -> str:
        """Why the entry cannot be written; empty if it can."""
        for what, value in (("id", entry.id), ("text", entry.text)):
            assert value is not None
            try:
                value.decode()
            except UnicodeDecodeError:
                return f"its {what} is not UTF-8"
        return ""

    def write(self, entry: Entry) -> None:
        """Adds a line."""
        assert entry.id is not None and entry.text is not None
        self._file.write(json.dumps({"id": entry.id.decode(), "text": entry.text.decode()},
                                    ensure_ascii=False).encode() + b"\n")

    def close(self) -> None:
        """Nothing more comes."""


# --- The program.

class Packed(NamedTuple):
    """Numbers of entries."""

    written: int
    left_out: int
    redirects: int


def pack(entries: Iterable[Entry], output: Any) -> Packed:
    """Writes entries; names the first that are left out. Redirects are only counted."""
    written = left_out = redirects = 0
    for entry in entries:
        fault = entry.fault or ("its id is empty" if not entry.id else output.fault(entry))
        if not fault:
            output.write(entry)
            written += 1
            continue
        if fault == _REDIRECT:
            redirects += 1
            continue
        left_out += 1
        if left_out <= _NAMED_MAX:
            shown = "" if entry.id is None else f" ({entry.id.decode('utf-8', 'replace')!r})"
            say(_PROGRAM, f"{entry.origin}{shown}: left out, {fault}")
    output.close()
    return Packed(written, left_out, redirects)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM, description="Writes the documents of Parquet and ZIM files to standard "
        "output, for quired build; and archives as Parquet files.",
        epilog="The output is for: quired build -o OUT -; with --format lines for: quired build "
        "--split lines --id-field id --text-field text -o OUT -")
    parser.add_argument("--version", action="version", version=f"{_PROGRAM} {__version__}")
    subcommands = parser.add_subparsers(dest="kind", required=True)
    parquet = subcommands.add_parser("parquet", help="A document for each row")
    parquet.add_argument("--id", metavar="FIELD", required=True,
                         help="Column of the ids: strings, bytes or integers")
    parquet.add_argument("--text", metavar="FIELD", required=True,
                         help="Column of the documents: strings or bytes")
    rows = subcommands.add_parser(
        "rows", help="JSON Lines of the rows of Parquet files, as quired build reads them")
    rows.add_argument("--column", metavar="NAME", action="append",
                      help="Column to write, or a path in it; may be repeated; default: all")
    rows.add_argument("files", metavar="FILE", nargs="+")
    export = subcommands.add_parser(
        "export-parquet", help="A Parquet file with a row for each document of an archive")
    export.add_argument("archive", metavar="ARCHIVE", help="Name at the server")
    export.add_argument("file", metavar="FILE", help="Parquet file, which is replaced")
    export.add_argument("--column", metavar="NAME", action="append",
                        help="Column to write; may be repeated; default: all, and text")
    export.add_argument("--prefix", help="Only documents whose id starts with it")
    export.add_argument("--text-strings", action="store_true",
                        help="Text as strings, which must be UTF-8, instead of bytes")
    add_connection_options(export)
    zim = subcommands.add_parser(
        "zim", help="A document for each entry that is not a redirect; its id is the path")
    for subcommand in (parquet, zim):
        subcommand.add_argument("files", metavar="FILE", nargs="+")
        subcommand.add_argument("--format", choices=("tar", "lines"), default="tar",
                                help="tar (default), or lines: JSON Lines")
    return parser


def export_parquet(arguments: argparse.Namespace) -> int:
    """Writes an archive as a Parquet file; says what is left out."""
    # pylint: disable=import-outside-toplevel
    import pyarrow.parquet
    count = WithdrawnCount()
    rows = 0
    with connect_as(arguments) as client, replaced_file(arguments.file) as file:
        reader = client[arguments.archive].to_arrow(
            arguments.column, prefix=arguments.prefix, withdrawn=count,
            binary=() if arguments.text_strings else ("text",))
        with pyarrow.parquet.ParquetWriter(file, reader.schema, compression="zstd") as writer:
            for batches in _row_groups(reader):
                table = pyarrow.Table.from_batches(batches, reader.schema)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
                rows += table.num_rows
    say(_PROGRAM, f"{arguments.file}: {rows} documents"
        + (f", {count.count} withdrawn ones left out" if count.count else ""))
    return 0


def _row_groups(reader: Iterable[Any]) -> Iterator[List[Any]]:
    """Batches of about 128 MB of columns together."""
    batches: List[Any] = []
    size = 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if size >= _ROW_GROUP_SIZE_BYTES:
            yield batches
            batches, size = [], 0
    if batches:
        yield batches


def _run(arguments: argparse.Namespace) -> int:
    if arguments.kind == "export-parquet":
        return export_parquet(arguments)
    if sys.stdout.isatty():
        raise ValueError("standard output is a terminal; pipe it into quired build -o OUT -")
    file = sys.stdout.buffer
    if arguments.kind == "rows":
        left_out = 0
        for path in arguments.files:
            left_out += write_rows(path, arguments.column, file).left_out
        file.flush()
        return 1 if left_out else 0
    output = _TarOutput(file, int(max(os.stat(path).st_mtime for path in arguments.files))) \
        if arguments.format == "tar" else _LinesOutput(file)

    def entries() -> Iterator[Entry]:
        for path in arguments.files:
            if arguments.kind == "zim":
                yield from read_zim(path)
            else:
                yield from read_parquet(path, arguments.id, arguments.text)

    packed = pack(entries(), output)
    say(_PROGRAM, f"{packed.written} documents, {packed.left_out} left out"
        + (f", {packed.redirects} redirects" if packed.redirects else ""))
    return 1 if packed.left_out else 0


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the program; returns its exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return run_program(_PROGRAM, lambda: _run(parsed))
    except ImportError as error:
        return need_module(_PROGRAM, "pack", error)


if __name__ == "__main__":
    sys.exit(main())
