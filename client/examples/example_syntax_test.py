#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Parses the examples in each language, and finds their names in the protos.

examples_test.py of the stage ecosystem builds and runs them, for which it downloads packages;
this needs gofmt, a JDK, rustfmt and node. A language whose tool is missing is skipped.
"""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parent
PROTO = SOURCE.parents[1] / "proto" / "quire" / "v1" / "archive.proto"
PARSER = """
import com.sun.source.util.JavacTask;
import java.nio.file.Path;
import javax.tools.*;
public class Parser {
  public static void main(String[] names) throws Exception {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
    StandardJavaFileManager files = compiler.getStandardFileManager(found, null, null);
    ((JavacTask) compiler.getTask(null, files, found, null, null,
        files.getJavaFileObjects(Path.of(names[0])))).parse();
    found.getDiagnostics().forEach(System.err::println);
    System.exit(found.getDiagnostics().isEmpty() ? 0 : 1);
  }
}
"""
METHODS = ["Read", "ReadStream", "BatchRead", "GetArchive"]
FIELDS = ["batch_message_items_max", "results", "tag", "status", "reason", "document", "archive"]


def camel_case(name, first):
    words = name.split("_")
    return "".join([words[0].title() if first else words[0], *map(str.title, words[1:])])


class SyntaxTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def check(self, tool, command, source, names):
        """`command` succeeds for a source and fails for a truncated one."""
        if shutil.which(tool) is None:
            self.skipTest(f"{tool} is not installed")
        path = SOURCE / source
        text = path.read_text(encoding="utf-8")
        truncated = self.directory / "truncated" / path.name
        truncated.parent.mkdir()
        # Within a block: between two functions the rest would be well-formed.
        truncated.write_text(text[:text.rindex("{", 0, len(text) * 2 // 3) + 1], encoding="utf-8")
        done = subprocess.run([*command, path], check=False, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        broken = subprocess.run([*command, truncated], check=False, capture_output=True)
        self.assertNotEqual(broken.returncode, 0)
        for name in [*names, "quire-archive"]:
            self.assertRegex(text, rf"\b(get|set|has|add)?{name}\b", f"{source}: {name}")

    def test_the_protos_have_the_names(self):
        text = PROTO.read_text(encoding="utf-8")
        for name in METHODS:
            self.assertRegex(text, rf"rpc {name}\(")
        for name in FIELDS:
            self.assertRegex(text, rf"\b{name} = \d+;")

    def test_go(self):
        self.check("gofmt", ["gofmt", "-l"], "go/read_documents.go",
                   [*METHODS, *(camel_case(name, True) for name in FIELDS)])

    def test_java(self):
        parser = self.directory / "Parser.java"
        parser.write_text(PARSER)
        self.check("javac", ["java", parser], "java/src/main/java/example/ReadDocuments.java",
                   [camel_case(method, False) for method in ("read", "readStream", "batchRead")])

    def test_rust(self):
        self.check("rustfmt", ["rustfmt", "--emit", "stdout", "--edition", "2021"], "rust/src/main.rs",
                   [re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower() for name in METHODS]
                   + FIELDS)

    def test_javascript(self):
        # The name of a module ends with .mjs where no package.json says that it is one.
        copy = self.directory / "read_documents.mjs"
        copy.write_bytes((SOURCE / "javascript" / "read_documents.js").read_bytes())
        self.check("node", ["node", "--check"], copy, [*METHODS, *FIELDS])


if __name__ == "__main__":
    unittest.main()
