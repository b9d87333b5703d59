#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it, and runs the tests of the package with it.

The default level leaves out types, and the tests of faults, processes, security, file systems
and packing. With --ecosystem the modules that the package uses, and programs that use it, are those of
PyPI (tests/ecosystem_modules.txt), installed into BUILD/python-ecosystem; without, they are
those of Debian and of deploy/bootstrap.sh (tests/checker_modules.txt). With --training only the
datasets are tested, with torch, grain and Ray of PyPI (tests/training_modules.txt). With --replay only
the replay of a crawl is tested, with programs of PyPI (tests/replay_modules.txt),
replayweb.page of npm, and Debian's Chromium (deploy/bootstrap.sh replay). With --epochs only two epochs
of training in which processes are killed.

usage: python_package_test.py QUIRED QUIRE QUIRE_HTTP DECODE_RECORDS
           [--ecosystem | --replay | --training | --epochs]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
PACKAGE = TESTS.parent
SOURCE = PACKAGE.parents[1]
BUILD = pathlib.Path(os.environ["QUIRE_BINARY_DIR"])
sys.path.insert(0, str(SOURCE / "loadtest" / "harness"))
from test_level import NIGHTLY  # pylint: disable=wrong-import-position

DEFAULT_MODULES = ["reading_test", "payload_test", "web_test", "archive_metadata_test",
                   "columns_test", "fields_test", "index_ranges_test", "retries_test",
                   "private_server_test", "training_test", "merged_results_test"]
MODULES = ["columns_test", "faults_test", "fields_test", "retries_test", "reading_test",
           "scan_faults_test", "payload_test", "processes_test", "security_test",
           "filesystem_test", "web_test", "archive_metadata_test", "index_ranges_test",
           "pack_output_test", "private_server_test", "training_test", "merged_results_test"]
TEST_MODULES = {"": MODULES if NIGHTLY else DEFAULT_MODULES,
                "ecosystem": [*MODULES, "arrow_test", "ecosystem_test", "pack_test",
                              "wire_columns_test"],
                "replay": ["replay_test", "deposits_test"], "training": ["training_test", "training_peers_test"],
                "epochs": ["training_epochs_test"]}
# Kinds with the modules of Debian.
DEBIAN_KINDS = ("", "epochs")
REPLAY_PAGE = "replaywebpage@2.5.3"


def pip_install(target, *arguments):
    subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--root-user-action=ignore",
                    "--target", target, *arguments], check=True)


def modules_of(name):
    """The directory of the modules that tests/NAME_modules.txt lists, from PyPI."""
    requirements = TESTS / f"{name}_modules.txt"
    directory = BUILD / f"python-{name}"
    copy = directory / requirements.name
    if not copy.is_file() or copy.read_bytes() != requirements.read_bytes():
        subprocess.run(["rm", "-rf", directory], check=True)
        pip_install(directory, "--only-binary", ":all:", "--requirement", requirements)
        copy.write_bytes(requirements.read_bytes())
    return directory


def replay_page():
    """The directory of replayweb.page, from npm; its scripts need no other packages."""
    directory = BUILD / REPLAY_PAGE
    if not (directory / "package" / "sw.js").is_file():
        directory.mkdir(exist_ok=True)
        subprocess.run(["npm", "pack", "--silent", REPLAY_PAGE], check=True, cwd=directory)
        (tar,) = directory.glob("*.tgz")
        subprocess.run(["tar", "-xzf", tar, "-C", directory], check=True)
    return directory / "package"


def build_wheel(directory):
    subprocess.run([PACKAGE / "build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("quire_archive-*-py3-none-any.whl")
    return wheel


def check_directory_install(directory):
    """pip installs the source directory into an empty environment, with and without protoc."""
    path = f"{directory}/path"
    os.mkdir(path)
    for number, search in enumerate((os.environ["PATH"], path)):
        python = f"{directory}/venv{number}/bin/python"
        subprocess.run(["/usr/bin/python3", "-m", "venv", f"{directory}/venv{number}"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                        PACKAGE], check=True, env={**os.environ, "PATH": search})
        subprocess.run([python, "-c", "import quire_archive; quire_archive.connect()"], check=True,
                       cwd=directory)


def check_lone_directory(directory):
    """A copy without the protos is not installed; with the descriptors, as in a source
    distribution, it is."""
    copy = pathlib.Path(directory, "lone", "python")
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    build = ["/usr/bin/python3", "-c", "import build_backend as b; print(b.build_wheel('.'))"]
    refused = subprocess.run(build, check=False, cwd=copy, capture_output=True, text=True)
    if refused.returncode == 0 or "install it from a whole checkout" not in refused.stderr:
        sys.exit(f"a copy without the protos was not refused: {refused.stderr}")
    sdist = subprocess.run(
        ["/usr/bin/python3", "-c", "import build_backend as b, sys; b.build_sdist(sys.argv[1])",
         copy], check=True, cwd=PACKAGE, capture_output=True)
    assert sdist.returncode == 0
    (tar,) = copy.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", tar, "--strip-components=1", "-C", copy], check=True)
    subprocess.run(build, check=True, cwd=copy, stdout=subprocess.DEVNULL)


def check_types(directory, environment):
    check = ["/usr/bin/python3", "-m", "mypy", "--cache-dir", f"{directory}/mypy",
             "--config-file", PACKAGE / "pyproject.toml"]
    subprocess.run([*check, PACKAGE / "quire_archive"], check=True, cwd=directory,
                   env=environment)


def main():
    quired, quire, quire_http, decode_records, *options = sys.argv[1:]
    kind = options[0].removeprefix("--") if options else ""
    modules = SOURCE / "build" / "python" if kind in DEBIAN_KINDS else modules_of(kind)
    # The modules may be of another version than Debian's: they come after the wheel.
    environment = {**os.environ, "QUIRED": quired, "QUIRE": quire, "QUIRE_HTTP": quire_http,
                   "DECODE_RECORDS": decode_records, "PYTHONDONTWRITEBYTECODE": "1"}
    if kind == "replay":
        environment["REPLAY_PAGE"] = replay_page()
    with tempfile.TemporaryDirectory() as directory:
        wheel = build_wheel(f"{directory}/one")
        if wheel.read_bytes() != build_wheel(f"{directory}/two").read_bytes():
            sys.exit("two builds of the wheel differ")
        pip_install(f"{directory}/site", "--no-index", wheel)
        environment["PYTHONPATH"] = f"{directory}/site:{modules}:{TESTS}"
        if kind == "ecosystem":
            check_directory_install(directory)
        if kind in ("", "ecosystem"):
            check_lone_directory(directory)
        if kind in ("", "ecosystem") and NIGHTLY:
            check_types(directory, environment)
        names = TEST_MODULES[kind]
        # A process that has made calls cannot fork workers, as those of torch.
        groups = [[name] for name in names] if kind == "training" else [names]
        sys.exit(max(subprocess.run(["/usr/bin/python3", "-m", "unittest", *group], check=False,
                                    cwd=directory, env=environment).returncode
                     for group in groups))


if __name__ == "__main__":
    main()
