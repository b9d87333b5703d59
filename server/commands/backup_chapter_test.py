#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the commands of docs/backup.md, section by section, on an archive that is served."""
import pathlib
import re
import shutil
import subprocess
import unittest

from served_case import PATIENCE_S, PROGRAMS, ServedCase, await_text, run, start

CHAPTER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "backup.md"
# Of the chapter's other machines and programs only this is imitated.
PRELUDE = 'set -euo pipefail\npidof() { echo "$SERVER_PID"; }\n'


def sections():
    """Returns {heading: [the commands of each block]}."""
    found = {}
    for part in CHAPTER.read_text().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        blocks = re.findall(r"(?:^    .*\n)+", text, re.MULTILINE)
        found[heading] = [re.sub("^    ", "", block, flags=re.MULTILINE) for block in blocks]
    return found


class BackupChapterTest(ServedCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert shutil.which("rsync"), "rsync: deploy/bootstrap.sh installs it"
        cls.sections = sections()
        cls.archives = cls.directory / "here"
        for name in "here", "backup", "new":
            (cls.directory / name).mkdir()
        cls.archive.rename(cls.archives / "web.quire")
        cls.archive = cls.archives / "web.quire"

    def serve(self, directory):
        config = directory / "quired.toml"
        config.write_text('archive = ["web.quire"]\nlisten = "127.0.0.1:0"\n')
        server, said = start(self, "--config", config)
        return server, said.split()[-1]

    def sh(self, commands, server=None, address="", new=""):
        for before, after in (("/backup", f"{self.directory}/backup"), ("old:7420", address),
                              ("new:7420", new), ("new:/srv/archives", f"{self.directory}/new")):
            commands = commands.replace(before, after)
        done = subprocess.run(
            ["bash", "-c", PRELUDE + commands], cwd=self.archives, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
            env={"PATH": f"{PROGRAMS}:/usr/bin:/bin", "QUIRE_SERVER": address,
                 "HOME": str(self.directory), "SERVER_PID": str(server.pid if server else "")})
        self.assertEqual(done.returncode, 0, f"{commands}\n{done.stdout}{done.stderr}")
        return done.stdout

    def check_served(self, address, documents):
        listed = run("quire", "--server", address, "ls", "web")
        self.assertEqual(listed.stdout.split(), documents, listed.stderr)
        got = run("quire", "--server", address, "get", "web", "page03")
        self.assertEqual(got.stdout, (self.documents / "page03").read_text(), got.stderr)

    def damage(self):
        segment = next(self.archive.glob("segment-*"))
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        self.assertEqual(run("quired", "verify", self.archive).returncode, 1)

    def test_each_command(self):
        first = sorted(path.name for path in self.documents.iterdir())
        server, address = self.serve(self.archives)
        backup, links, tar = self.sections.pop("Backup")
        self.sh(backup)
        self.sh(links)
        more = self.directory / "more"
        more.mkdir()
        (more / "page99").write_text("<p>a later page</p>\n" * 300)
        appended = run("quired", "append", self.archive, more)
        self.assertEqual(appended.returncode, 0, appended.stderr)
        both = [*first, "page99"]
        self.sh(backup)
        self.sh(tar)
        listing = run("quired", "inspect", self.directory / "backup" / "web-monday.quire").stdout
        self.assertRegex(listing, rf"documents +{len(first)}\n")

        repair, earlier, from_tar = self.sections.pop("Restore")
        self.damage()
        self.sh(repair, server)
        await_text(self, server, "documents")
        self.assertEqual(run("quired", "verify", self.archive).returncode, 0)
        self.check_served(address, both)
        self.sh(earlier, server)
        await_text(self, server, "documents")
        self.check_served(address, first)
        shutil.rmtree(self.archive)
        self.sh(from_tar)
        server.send_signal(1)
        await_text(self, server, "documents")
        self.check_served(address, both)

        copy, compare = self.sections.pop("Moving to another machine")
        self.sh(copy)
        _, new = self.serve(self.directory / "new")
        self.check_served(new, both)
        self.sh(compare, address=address, new=new)

        move, = self.sections.pop("Moving to another directory")
        self.assertIn(f"documents:   {len(both)}\n", self.sh(move, server, address))
        await_text(self, server, "same contents in new files")
        self.check_served(address, both)
        self.assertFalse(self.archive.exists())
        self.assertEqual(self.sections, {}, "sections of the chapter without a test")


if __name__ == "__main__":
    unittest.main()
