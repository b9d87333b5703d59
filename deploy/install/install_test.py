#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the files of `cmake --install` like a user: from another directory, with a
program that is built outside of the tree with CMake and with pkg-config.

usage: install_test.py [InstallTest|EcosystemTest]
EcosystemTest builds the program in each way, InstallTest in one.
"""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["QUIRE_BINARY_DIR"])
CONSUMER = SOURCE / "deploy" / "install" / "consumer"
# Generous: only a hang takes this long.
PATIENCE_S = 600


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n"
                             f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="quire-install-")
        cls.addClassCleanup(cls.scratch.cleanup)
        directory = pathlib.Path(cls.scratch.name)
        run("cmake", "--install", BUILD, "--prefix", directory / "first")
        # The prefix moves: no file may refer to the first one.
        cls.prefix = directory / "moved" / "quire"
        cls.prefix.parent.mkdir()
        (directory / "first").rename(cls.prefix)
        cls.library = next(cls.prefix.rglob("libquire_client.so"))
        cls.work = directory
        cls.example = cls.prefix / "share" / "doc" / "quire" / "example.cc"
        cls.address = cls.serve()

    @classmethod
    def serve(cls):
        """Yields the address of an installed server with one archive."""
        documents = cls.work / "documents"
        documents.mkdir()
        for name in "first", "second":
            (documents / name).write_text(f"the {name} document\n" * 50)
        quired = cls.prefix / "bin" / "quired"
        run(quired, "build", "--quiet", "-o", cls.work / "docs.quire", documents)
        server = subprocess.Popen(
            [quired, "serve", cls.work / "docs.quire", "--listen", "127.0.0.1:0"],
            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        cls.addClassCleanup(server.stderr.close)
        cls.addClassCleanup(server.wait, PATIENCE_S)
        cls.addClassCleanup(server.kill)
        for line in server.stderr:
            if "listening on" in line:
                return line.split()[-1]
        raise AssertionError("the installed server does not listen")

    def expect_works(self, program, **options):
        said = run(program, self.address, **options)
        self.assertIn("docs: 2 documents", said)
        self.assertRegex(said, r"first, 900 bytes|first, 950 bytes|first, 1000 bytes")

    def build_with_cmake(self, name, *settings):
        build = self.work / name
        run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DEXAMPLE={self.example}",
            f"-DCMAKE_PREFIX_PATH={self.prefix}", *settings)
        run("cmake", "--build", build)
        return build / "example"


class EcosystemTest(Installed):
    def test_a_program_links_it_statically(self):
        program = self.build_with_cmake("static")
        self.assertNotIn("libquire", run("ldd", program))
        self.expect_works(program)

    def test_a_program_finds_it_with_pkg_config(self):
        directory = next(self.prefix.rglob("quire-client.pc")).parent
        environment = {**os.environ, "PKG_CONFIG_PATH": str(directory)}
        flags = run("pkg-config", "--cflags", "--libs", "quire-client", env=environment).split()
        program = self.work / "with_pkg_config"
        run("g++", "-std=c++20", self.example, "-o", program, *flags)
        self.expect_works(program,
                          env={**os.environ, "LD_LIBRARY_PATH": str(self.library.parent)})
        run("pkg-config", "--exists", "--static", "--print-errors", "quire-client",
            env=environment)


class InstallTest(Installed):
    def test_a_program_links_it_shared(self):
        program = self.build_with_cmake("shared", "-DBUILD_SHARED_LIBS=ON")
        self.assertRegex(run("ldd", program), r"libquire_client\.so\.\d+\.\d+ => " +
                         re.escape(str(self.prefix)))
        self.expect_works(program)

    def test_every_header_stands_alone(self):
        headers = sorted((self.prefix / "include" / "quire").rglob("*.h"))
        names = [str(header.relative_to(self.prefix / "include" / "quire")) for header in headers]
        self.assertIn("client/quire/client.h", names)
        self.assertTrue(any(name.endswith("archive.grpc.pb.h") for name in names), names)
        # All included headers of ours are installed; that they compile is tested by the programs.
        for header in headers:
            for name in re.findall(r'^#include "((?:client|codecs|proto)/[^"]*)"',
                                   header.read_text(), re.MULTILINE):
                self.assertIn(name, names, header)

    def test_protos_compile_from_where_they_are(self):
        protos = sorted((self.prefix / "share" / "quire").rglob("*.proto"))
        self.assertIn("archive.proto", [proto.name for proto in protos])
        archive = next(proto for proto in protos if proto.name == "archive.proto")
        # The directory that their import statements are relative to.
        imported = re.search(r'import public "(.*)/wire_encoding.proto"', archive.read_text())[1]
        root = pathlib.Path(str(archive.parent).removesuffix("/" + imported))
        out = self.work / "generated"
        out.mkdir()
        run("protoc", "-I", root, f"--cpp_out={out}", *protos)

    def test_nothing_names_the_build_or_the_first_prefix(self):
        forbidden = [str(SOURCE).encode() + b"/", str(BUILD).encode(),
                     str(self.work / "first").encode()]
        for path in self.prefix.rglob("*"):
            if path.is_file():
                data = path.read_bytes()
                for text in forbidden:
                    at = data.find(text)
                    self.assertEqual(at, -1, f"{path} has {data[at:at + 100]!r}")

    def test_programs_pages_and_completions_are_there(self):
        for name in "quire", "quired", "quire-http", "quire-loadtest":
            run(self.prefix / "bin" / name, "--version")
            for path in (f"share/man/man1/{name}.1", f"share/bash-completion/completions/{name}",
                         f"share/zsh/vendor-completions/_{name}"):
                self.assertGreater((self.prefix / path).stat().st_size, 0, path)
        self.assertIn("docs", run(self.prefix / "bin" / "quire", "archives", "--server",
                                  self.address))

    def test_the_library_shows_its_own_symbols_only(self):
        symbols = run("nm", "-DC", "--defined-only", self.library).splitlines()
        names = [line.split(maxsplit=2)[2] for line in symbols]
        self.assertTrue(any("quire::Client::Connect" in name for name in names))
        foreign = [name for name in names if "quire" not in name]
        self.assertEqual(foreign, [])
        dynamic = run("readelf", "-d", self.library)
        self.assertRegex(dynamic, r"SONAME.*\[libquire_client\.so\.\d+\.\d+\]")
        self.assertNotRegex(dynamic, "RPATH|RUNPATH")

    def test_the_library_holds_nothing_under_the_gpl(self):
        self.assertNotIn("sdsl", run("ldd", self.library))
        archive = self.library.with_name("libquire_client.a")
        self.assertNotRegex(run("nm", "-C", archive), r"(^|[^a-z_])sdsl::")
        for path in (self.prefix / "include").rglob("*.h"):
            self.assertNotIn("GPL", path.read_text().split("\n", 1)[0], path)


if __name__ == "__main__":
    unittest.main()
