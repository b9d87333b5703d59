# SPDX-License-Identifier: Apache-2.0
"""Output of every benchmark script: a table for people, and with --json FILE the same
figures for results.py."""
import json
import pathlib


def add_json_option(parser):
    parser.add_argument("--json", metavar="FILE",
                        help="write the figures to FILE as JSON; -: to standard output, without the "
                        "table")


def print_figures(arguments, figures, lines):
    """Prints the table `lines`, and writes `figures` to the file of --json."""
    if arguments.json == "-":
        print(json.dumps(figures, indent=1))
        return
    if arguments.json:
        write_json(arguments.json, figures)
    print("\n".join(lines))


def write_json(path, figures):
    pathlib.Path(path).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
