# SPDX-License-Identifier: Apache-2.0
"""The program quire-web: indexes and WACZ of a crawl that a Quire server holds."""
from __future__ import annotations

import argparse
import os
import re
import sys
from typing import List, Optional

from . import __version__
from ._program import (add_connection_options, connect_as, need_module, replaced_file,
                       run_program, say)
from .records import WithdrawnCount

_PROGRAM = "quire-web"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM, description="Writes indexes of a crawl, with which pywb and replayweb.page "
        "replay it from quire-http.")
    parser.add_argument("--version", action="version", version=f"quire-web {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", required=True)
    cdxj = subcommands.add_parser(
        "cdxj", help="Write a sorted CDXJ index of the captures",
        description="Writes a sorted CDXJ index of responses, revisits, resources and conversions. "
        "Offsets are those of the archive's logical space, which quire-http serves.")
    cdxj.add_argument("archive", metavar="ARCHIVE")
    cdxj.add_argument("-o", "--output", metavar="FILE",
                      help="File to write or replace (default standard output)")
    cdxj.add_argument("--filename", metavar="NAME", default="space",
                      help="Filename in each line (default space, the name in quire-http)")
    add_connection_options(cdxj)
    cdxj.set_defaults(run=_write_cdxj)
    wacz = subcommands.add_parser(
        "wacz", help="Write all of a WACZ except its WARC",
        description="Writes the index, the pages and the directory of a WACZ, which "
        "quire-http --files DIR serves together with the WARC in the archive.")
    wacz.add_argument("archive", metavar="ARCHIVE")
    wacz.add_argument("--dir", metavar="DIR", required=True, help="Existing directory")
    wacz.add_argument("--name", metavar="NAME", help="Name of the WACZ (default ARCHIVE.wacz)")
    wacz.add_argument("--title", metavar="TEXT", help="Title of the WACZ (default ARCHIVE)")
    add_connection_options(wacz)
    wacz.set_defaults(run=_write_wacz)
    return parser


def _write_cdxj(arguments: argparse.Namespace) -> int:
    # pylint: disable=import-outside-toplevel
    from .captures import (has_index, list_documents, read_captures, read_index, withdrawn_note,
                           write_index)
    if not arguments.filename:
        raise ValueError("--filename must not be empty")
    with connect_as(arguments) as client:
        archive = client[arguments.archive].pinned()
        withdrawn = WithdrawnCount()
        is_indexed = has_index(archive)
        captures = read_index(archive) if is_indexed else read_captures(archive, withdrawn)
        if arguments.output is None:
            count = write_index(captures, arguments.filename, sys.stdout.buffer.write)
        else:
            with replaced_file(arguments.output) as file:
                count = write_index(captures, arguments.filename, file.write)
        if is_indexed:
            for _ in list_documents(archive, withdrawn):
                pass
    say(_PROGRAM, f"{count} captures of {archive.name}@{archive.uuid}" + withdrawn_note(withdrawn)
        + (_methods_note(is_indexed) if count else "; it has no records of a crawl with a time"))
    return 0


def _methods_note(is_indexed: bool) -> str:
    return "" if is_indexed else ("; the archive has no index of all of them: answers to requests "
                                  "of any method have the key of their URL")


def _write_wacz(arguments: argparse.Namespace) -> int:
    # pylint: disable=import-outside-toplevel
    from .captures import withdrawn_note
    from .wacz import write_wacz
    name = arguments.name or f"{arguments.archive}.wacz"
    if not _NAME.fullmatch(name):
        raise ValueError("--name must be 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and not "
                         f"begin with '.', got {name!r}")
    if not os.path.isdir(arguments.dir):
        raise ValueError(f"--dir {arguments.dir}: is not a directory; create it first")
    with connect_as(arguments) as client:
        written = write_wacz(client[arguments.archive], arguments.dir, name, arguments.title)
    say(_PROGRAM, f"{written.path}: {written.capture_count} captures, {written.written_size} bytes "
        f"written of a WACZ of {written.size}" + withdrawn_note(written.withdrawn)
        + _methods_note(written.is_indexed))
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs the program; returns its exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return run_program(_PROGRAM, lambda: int(parsed.run(parsed)))
    except ImportError as error:
        return need_module(_PROGRAM, "web", error)


if __name__ == "__main__":
    sys.exit(main())
