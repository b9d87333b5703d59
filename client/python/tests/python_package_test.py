#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the wheel, installs it, and runs the tests of the package with it.

With --latest the modules that the package uses, and programs that use it, are those of
PyPI (tests/ecosystem_modules.txt), installed into BUILD/python-latest; without, they are
those of Debian and of deploy/bootstrap.sh (tests/checker_modules.txt).

usage: python_package_test.py QUIRED QUIRE [--latest]
"""
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent
PACKAGE = TESTS.parent
SOURCE = PACKAGE.parents[1]
BUILD = pathlib.Path(os.environ["QUIRE_BINARY_DIR"])
MODULES = ["faults_test", "reading_test", "payload_test", "processes_test", "security_test",
           "filesystem_test"]


def pip_install(target, *arguments):
    subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                    "--disable-pip-version-check", "--root-user-action=ignore",
                    "--target", target, *arguments], check=True)


def latest_modules():
    """The directory of the modules of PyPI."""
    requirements = TESTS / "ecosystem_modules.txt"
    directory = BUILD / "python-latest"
    copy = directory / requirements.name
    if not copy.is_file() or copy.read_bytes() != requirements.read_bytes():
        subprocess.run(["rm", "-rf", directory], check=True)
        pip_install(directory, "--only-binary", ":all:", "--requirement", requirements)
        copy.write_bytes(requirements.read_bytes())
    return directory


def build_wheel(directory):
    subprocess.run([PACKAGE / "build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("quire_archive-*-py3-none-any.whl")
    return wheel


def main():
    quired, quire, *options = sys.argv[1:]
    modules = latest_modules() if options == ["--latest"] else SOURCE / "build" / "python"
    with tempfile.TemporaryDirectory() as directory:
        wheel = build_wheel(f"{directory}/one")
        if wheel.read_bytes() != build_wheel(f"{directory}/two").read_bytes():
            sys.exit("two builds of the wheel differ")
        pip_install(f"{directory}/site", "--no-index", wheel)
        # The modules may be of another version than Debian's: they come after the wheel.
        environment = {**os.environ, "QUIRED": quired, "QUIRE": quire,
                       "PYTHONDONTWRITEBYTECODE": "1",
                       "PYTHONPATH": f"{directory}/site:{modules}:{TESTS}"}
        check = ["/usr/bin/python3", "-m", "mypy", "--cache-dir", f"{directory}/mypy",
                 "--config-file", PACKAGE / "pyproject.toml"]
        # The package, and an example against the installed one.
        subprocess.run([*check, PACKAGE / "quire_archive"], check=True, cwd=directory,
                       env=environment)
        subprocess.run([*check, *(PACKAGE / "examples").glob("*.py")], check=True,
                       cwd=directory, env=environment)
        run = MODULES + (["ecosystem_test"] if options else [])
        sys.exit(subprocess.run(["/usr/bin/python3", "-m", "unittest", *run], check=False,
                                cwd=directory, env=environment).returncode)


if __name__ == "__main__":
    main()
