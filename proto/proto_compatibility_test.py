#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The protos break no program that was written for their published form.

usage: proto_compatibility_test.py [--renew | CLASS...]
ProtoWireTest compares the wire format and needs protoc. ProtoBufTest runs buf with the
rules of buf.yaml; deploy/bootstrap.sh installs it into build/buf. `published_v1.txtpb` is
the published form, a FileDescriptorSet; --renew makes it that of the present protos. Renew
it with each release, and when a change before the first release breaks it on purpose.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2, text_format

HERE = pathlib.Path(__file__).resolve().parent
PUBLISHED = HERE / "published_v1.txtpb"
BUF = HERE.parent / "build" / "buf" / "node_modules" / ".bin" / "buf"
ARCHIVE = "quire/v1/archive.proto"
# A field of ListDocumentsRequest.
COMMENT = "  // Documents whose id starts with these bytes; empty: all.\n"
PREFIX = COMMENT + "  bytes prefix = 2;\n"
# Only a hang takes this long.
PATIENCE_S = 120
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"


def describe(root):
    """The FileDescriptorSet of the protos below a directory, with what they import."""
    names = sorted(str(path.relative_to(root)) for path in root.glob("quire/v1/*.proto"))
    with tempfile.NamedTemporaryFile() as image:
        subprocess.run(["protoc", "-I", str(root), "--include_imports",
                        f"--descriptor_set_out={image.name}", *names],
                       check=True, timeout=PATIENCE_S)
        return descriptor_pb2.FileDescriptorSet.FromString(image.read())


def published():
    return text_format.Parse(PUBLISHED.read_text(), descriptor_pb2.FileDescriptorSet())


def members(image):
    """What programs of an image rely on: (kind, where, number or name) -> what it is."""
    found = {}

    def add_enum(scope, enum):
        for value in enum.value:
            found["value", f"{scope}.{enum.name}", value.number] = value.name

    def add_message(scope, message):
        name = f"{scope}.{message.name}"
        found["message", name, ""] = ""
        for field in message.field:
            found["field", name, field.number] = (
                field.name, field.type, field.type_name, field.label, field.proto3_optional,
                field.HasField("oneof_index") and message.oneof_decl[field.oneof_index].name)
        for nested in message.nested_type:
            add_message(name, nested)
        for enum in message.enum_type:
            add_enum(name, enum)

    for file in image.file:
        for message in file.message_type:
            add_message(file.package, message)
        for enum in file.enum_type:
            add_enum(file.package, enum)
        for service in file.service:
            for call in service.method:
                found["call", f"{file.package}.{service.name}", call.name] = (
                    call.input_type, call.output_type, call.client_streaming,
                    call.server_streaming)
    return found


def broken(before, after):
    """Members of `before` that are gone or different in `after`."""
    now = members(after)
    return sorted(f"{kind} {where} {key}: was {member}, is {now.get((kind, where, key))}"
                  for (kind, where, key), member in members(before).items()
                  if now.get((kind, where, key)) != member)


class ProtoWireTest(unittest.TestCase):
    def test_the_wire_format_is_the_published_one(self):
        self.assertEqual(broken(published(), describe(HERE)), [])

    def test_breaking_changes_are_found(self):
        changed = published()
        archive = next(file for file in changed.file if file.name == ARCHIVE)
        message = next(m for m in archive.message_type if m.name == "ReadRequest")
        message.field[0].number = 1000
        archive.enum_type[0].value[1].name = "ANOTHER"
        del archive.service[0].method[0]
        complaints = broken(published(), changed)
        self.assertEqual([line.split(" ")[0] for line in complaints], ["call", "field", "value"])
        # The field of the new number breaks nothing.
        self.assertIn("field quire.v1.ReadRequest 1: was", complaints[1])


class ProtoBufTest(unittest.TestCase):
    def setUp(self):
        self.assertTrue(BUF.exists(), f"{BUF} is missing: deploy/bootstrap.sh installs it with npm")
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = pathlib.Path(scratch.name)
        shutil.copytree(HERE / "quire", self.root / "quire")
        shutil.copy(HERE / "buf.yaml", self.root)
        shutil.copy(PUBLISHED, self.root)

    def run_buf(self, *arguments):
        """Exit code and messages in a copy of the protos."""
        run = subprocess.run([BUF, *arguments], cwd=self.root, timeout=PATIENCE_S,
                             capture_output=True, text=True, check=False,
                             env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root)})
        return run.returncode, run.stdout + run.stderr

    def edit(self, before, after):
        path = self.root / ARCHIVE
        text = path.read_text()
        self.assertEqual(text.count(before), 1, before)
        path.write_text(text.replace(before, after))

    def test_lint_and_breaking_pass(self):
        self.assertEqual(self.run_buf("lint"), (0, ""))
        self.assertEqual(self.run_buf("breaking", "--against", PUBLISHED.name), (0, ""))

    def test_lint_finds_a_bad_name(self):
        self.edit("message GetArchiveRequest {", "message getArchive {}\nmessage GetArchiveRequest {")
        code, messages = self.run_buf("lint")
        self.assertNotEqual(code, 0)
        self.assertIn("PascalCase", messages)

    def test_breaking_finds_what_breaks(self):
        for before, after, message in (
                (PREFIX, "", "prefix"),
                (PREFIX, PREFIX.replace("bytes", "string"), "type"),
                (PREFIX, PREFIX.replace("prefix", "begin"), "name"),
                ("  QUOTA_EXCEEDED = 20;\n", "", "QUOTA_EXCEEDED"),
                ("rpc GetArchive(GetArchiveRequest)", "rpc GetArchive(GetSymbolTableRequest)",
                 "GetArchive"),
                ("option java_package = \"quire.v1\";", "option java_package = \"quire\";",
                 "java_package")):
            with self.subTest(before=before, after=after):
                self.edit(before, after)
                code, messages = self.run_buf("breaking", "--against", PUBLISHED.name)
                self.assertNotEqual(code, 0)
                self.assertIn(message, messages)
                shutil.copy(HERE / ARCHIVE, self.root / ARCHIVE)

    def test_reserved_fields_may_go(self):
        self.edit(PREFIX, COMMENT + "  reserved 2;\n  reserved \"prefix\";\n")
        self.assertEqual(self.run_buf("breaking", "--against", PUBLISHED.name), (0, ""))


if __name__ == "__main__":
    if sys.argv[1:] == ["--renew"]:
        PUBLISHED.write_text(LICENCE + text_format.MessageToString(describe(HERE)))
    else:
        unittest.main()
