# SPDX-License-Identifier: Apache-2.0
"""What the scripts that measure share before they measure: a command line, the
programs of a build folder, an archive of words, and an empty handler beside it.
"""
import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys

from live_server import make_documents, write_corpus


def make_parser(description, *programs):
    """An ArgumentParser with --build, the folder of the programs named."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", metavar="DIR", type=pathlib.Path, default="build/release",
                        help=f"build folder with {', '.join(programs)} (default: %(default)s)")
    return parser


def find_programs(build, *names):
    """Paths in the build folder's bin; ends the script if one is missing."""
    paths = [pathlib.Path(build).resolve() / "bin" / name for name in names]
    for path in paths:
        if not path.is_file():
            sys.exit(f"no {path}; build it first: cmake --build {build} --target {path.name}")
    return paths


def build_archive(quired, archive, sources, options):
    """Builds an archive without a word but of what fails."""
    subprocess.run([quired, "build", "--quiet", "-o", archive, *options, *sources], check=True)


def build_text_archive(quired, stem, documents, options):
    """Builds STEM.quire of documents, and writes STEM.raw, .tar and .tsv of them."""
    write_corpus(documents, stem)
    build_archive(quired, f"{stem}.quire", [f"{stem}.tar"], options)
    return f"{stem}.quire"


def machine_load():
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


@contextlib.contextmanager
def empty_service(api_limit, *options):
    """(address, process id) of a handler that answers out of a static buffer."""
    with subprocess.Popen([api_limit, "empty", *options], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip(), process.pid
        # It serves until its input ends.
        process.stdin.close()


def add_limit_options(parser, channels, build_options):
    """What api_limit.py and stream_limit.py are both asked."""
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=int, default=1500, help="of each measurement")
    parser.add_argument("--channels", type=int, default=channels, help="connections")
    parser.add_argument("--build-options", default=build_options, help="to quired build")
    parser.add_argument("--serve-options", default="--memory 512MiB",
                        help="to the quired serve that has everything cached")
    parser.add_argument("--smoke", action="store_true",
                        help="a moment of each: does it all work?")


def settle_rounds(arguments, kinds, pause_milliseconds, seconds_max):
    """Shortens what is a smoke test; ends the script if what is asked takes too long."""
    if arguments.smoke:
        arguments.rounds, arguments.milliseconds = 1, 20
    seconds = arguments.rounds * len(kinds) * (arguments.milliseconds + pause_milliseconds) / 1000
    if seconds > seconds_max:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: --rounds {arguments.rounds} of --milliseconds "
                 f"{arguments.milliseconds} take {seconds:.0f} s, and {seconds_max} s are the most")


def limit_documents(arguments):
    return make_documents(60 if arguments.smoke else 1000, seed=11)


def warm_up(quire, server, archive, stem):
    """Reads everything once: all blocks are cached from then on."""
    subprocess.run([quire, "--server", server.address, "range", archive, "0",
                    str(os.path.getsize(f"{stem}.raw"))], check=True, stdout=subprocess.DEVNULL)


def run_rounds(command, arguments, kinds, seconds_max):
    """Lists of the reports that api_limit prints, by kind."""
    result = subprocess.run(
        [str(word) for word in (*command, "--rounds", arguments.rounds, "--milliseconds",
                                arguments.milliseconds, "--channels", arguments.channels)],
        stdout=subprocess.PIPE, text=True, check=True, timeout=seconds_max)
    found = {kind: [] for kind in kinds}
    for line in result.stdout.splitlines():
        report = json.loads(line)
        found[report["what"]].append(report)
    assert all(len(reports) == arguments.rounds for reports in found.values()), found
    return found
