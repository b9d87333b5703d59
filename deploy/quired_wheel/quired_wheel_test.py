#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel `quired`: builds it, installs it into a fresh environment with quire-archive,
and reads a document there without a server; prints the seconds from pip to the document.

usage: quired_wheel_test.py QUIRED
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
QUIRED = sys.argv.pop(1)
READ = """
import sys, quire_archive
with quire_archive.open(sys.argv[1]) as docs:
    print(docs["page"].decode())
"""


def run(*arguments, **options):
    return subprocess.run([*map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True,
                          **options).stdout


class QuiredWheelTest(unittest.TestCase):
    def test_reads_a_document_after_pip(self):
        scratch = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        wheels = [run(HERE / "build.sh", QUIRED, scratch / "dist").strip(),
                  run(HERE.parents[1] / "client" / "python" / "build_wheel.sh",
                      scratch / "dist").strip()]
        self.assertRegex(wheels[0], r"/quired-[0-9.]+-py3-none-manylinux_2_36_x86_64\.whl$")
        # No other quired, and no Python package of the test's environment.
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(scratch)}
        python = scratch / "venv" / "bin" / "python"
        start = time.monotonic()
        run("/usr/bin/python3", "-m", "venv", scratch / "venv")
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wheels,
            env={**os.environ, **environment})
        program = scratch / "venv" / "bin" / "quired"
        installed = time.monotonic()
        (scratch / "page").write_text("contents")
        run(program, "build", "--quiet", "-o", scratch / "docs.quire", scratch / "page",
            env=environment)
        built = time.monotonic()
        self.assertEqual(run(python, "-c", READ, scratch / "docs.quire", env=environment),
                         "contents\n")
        end = time.monotonic()
        print(f"first document after {end - start - (built - installed):.1f} s, of these pip "
              f"{installed - start:.1f} s", file=sys.stderr)
        self.check_bundle(python, environment)
        self.check_certificates(python, environment)

    def check_bundle(self, python, environment):
        """Each library comes with its licence and the place of its source."""
        package = pathlib.Path(run(python, "-c", "import quired; print(quired.__file__)",
                                   env=environment).strip()).parent
        (licences,) = package.parent.glob("quired-*.dist-info/licenses")
        table = (licences / "BUNDLED.md").read_text()
        files = [path.name for path in (package.parent / "quired.libs").iterdir()]
        self.assertGreater(len(files), 20)
        for file in files:
            self.assertIn(file, table)
        packages = re.findall(r"^\| ([a-z][a-z0-9.+-]*)[ :]", table, re.MULTILINE)[1:]
        for name in packages:
            self.assertTrue((licences / f"{name}.copyright").is_file(), name)
        self.assertTrue((licences / "GPL-3.0-or-later.txt").is_file())
        self.assertIn("quire/server/quired.cc", run("tar", "-tf", package / "quire-source.tar.xz"))
        # Only the base of the system, of libraries outside of the wheel.
        loaded = re.findall(r"=> (/\S+)", run("ldd", package / "bin" / "quired"))
        outside = {pathlib.Path(path).name.partition(".so")[0] for path in loaded
                   if not pathlib.Path(path).resolve().is_relative_to(package.parent.resolve())}
        self.assertLessEqual(outside, {"libc", "libm", "libgcc_s", "libstdc++", "libresolv",
                                       "libz"})

    def check_certificates(self, python, environment):
        """Certificates of other distributions are found."""
        program = ("import quired, sys\n"
                   "for given, paths in (({}, ['/absent', sys.argv[1]]), ({}, [sys.argv[1], '/']),\n"
                   "                     ({'AWS_CA_BUNDLE': 'x'}, ['/absent', sys.argv[1]])):\n"
                   "    print(quired.environment(given, paths).get('AWS_CA_BUNDLE'))\n")
        self.assertEqual(run(python, "-c", program, __file__, env=environment),
                         f"{__file__}\nNone\nx\n")


if __name__ == "__main__":
    unittest.main()
