# SPDX-License-Identifier: Apache-2.0
"""Setup shared by the measuring scripts: a command line, the programs of a build
directory, an archive of words, and an empty handler."""
import argparse
import contextlib
import os
import pathlib
import subprocess
import sys

from live_server import write_corpus


def make_parser(description, *programs):
    """Returns an ArgumentParser with --build, the directory of the named programs."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default="build/release",
                        help=f"build directory with {', '.join(programs)} (default: %(default)s)")
    return parser


def find_programs(build, *names):
    """Returns paths in the build directory's bin; ends the script if one is missing."""
    paths = [pathlib.Path(build).resolve() / "bin" / name for name in names]
    for path in paths:
        if not path.is_file():
            sys.exit(f"no {path}; build it first: cmake --build {build} --target {path.name}")
    return paths


def build_archive(quired, archive, sources, options):
    """Builds an archive, silently unless it fails."""
    subprocess.run([quired, "build", "--quiet", "-o", archive, *options, *sources], check=True)


# Options of archives whose blocks hold the text as it is: no block needs members
# compressed again, and none is elsewhere on the disk.
AS_IT_IS = ("--reorder", "off", "--inflate", "off")


def build_text_archive(quired, stem, documents, options):
    """Builds STEM.quire of documents, and writes STEM.raw, .tar and .tsv of them."""
    write_corpus(documents, stem)
    build_archive(quired, f"{stem}.quire", [f"{stem}.tar"], options)
    return f"{stem}.quire"


def machine_load():
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


@contextlib.contextmanager
def empty_service(empty_server, *options):
    """Yields (address, process id) of a handler that answers from a static buffer."""
    with subprocess.Popen([empty_server, *options], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip(), process.pid
        # It serves until its input ends.
        process.stdin.close()
