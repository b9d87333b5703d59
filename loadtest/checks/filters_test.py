#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fields and filters in combinations drawn at random: an archive grows, documents are removed
for good and withdrawn by rules, and after each step lists, batches, exports, lists over HTTP and
the selection of quired redact are compared with a plain model.

usage: filters_test.py QUIRED QUIRE QUIRE_HTTP
"""
import contextlib
import datetime
import json
import pathlib
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "harness"))
# pylint: disable=wrong-import-position
from live_gateway import LiveGateway
from live_server import LiveServer
from test_level import SEED, rounds

PATIENCE_SECONDS = 120
FIELDS = ("lang", "n", "score", "flag", "day")
LANGS = ["de", "en", "en-GB", "fr", "quote\"'s", ""]


def micros(text):
    """Microseconds since 1970 of a date."""
    return int(datetime.datetime.fromisoformat(text + "+00:00").timestamp()) * 10 ** 6


class Document:
    """A document as it was built, and whether it was removed for good."""

    def __init__(self, draw, ordinal, identity):
        self.ordinal = ordinal
        self.id = identity
        self.text = f"{ordinal} " + "words " * draw.randrange(30) + "\n"
        self.time = None if draw.random() < 0.3 else f"2024-{draw.randrange(1, 13):02}-01T00:00:00"
        self.fields = {"lang": draw.choice(LANGS), "n": draw.randrange(-5, 30),
                       "score": draw.randrange(20) / 4 + 0.125, "flag": draw.random() < 0.5,
                       "day": f"2023-{draw.randrange(1, 13):02}-15"}
        for name in FIELDS:
            if draw.random() < 0.2:
                self.fields[name] = None
        self.removed = False

    def line(self, names):
        record = {"id": self.id, "t": self.text,
                  **{name: self.fields[name] for name in names if self.fields[name] is not None}}
        if self.time is not None:
            record["at"] = self.time + "Z"
        return json.dumps(record) + "\n"

    def value(self, name):
        """The value that filters compare; None for null."""
        if name == "id":
            return self.id
        if name == "ordinal":
            return self.ordinal
        if name == "size":
            return len(self.text)
        if name == "time":
            return None if self.time is None else micros(self.time)
        value = self.fields[name]
        return micros(value + "T00:00:00") if name == "day" and value is not None else value


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Filter:
    """A filter drawn at random, as text and as a function with the logic of SQL."""

    def __init__(self, draw, documents, depth=2):
        self.text, self.holds = self._draw(draw, documents, depth)

    def matches(self, document):
        return not document.removed and self.holds(document) is True

    def _draw(self, draw, documents, depth):
        kind = draw.random()
        if depth and kind < 0.2:
            text, holds = self._draw(draw, documents, depth - 1)
            return f"not ({text})", lambda d: None if holds(d) is None else not holds(d)
        if depth and kind < 0.6:
            parts = [self._draw(draw, documents, depth - 1) for _ in range(2)]
            decisive = draw.random() < 0.5

            def holds(document):
                values = [part[1](document) for part in parts]
                return decisive if decisive in values else None if None in values else not decisive

            return (" or " if decisive else " and ").join(f"({text})" for text, _ in parts), holds
        return self._condition(draw, documents)

    def _condition(self, draw, documents):
        name = draw.choice([*FIELDS, "id", "ordinal", "size", "time"])
        kind = draw.random()
        if kind < 0.15:
            is_null = draw.random() < 0.5
            return (f"{name} is {'' if is_null else 'not '}null",
                    lambda d: (d.value(name) is None) == is_null)
        if name in ("lang", "id") and kind < 0.35:
            prefix = draw.choice(documents).id[:5] if name == "id" else draw.choice(["e", "en-", ""])
            return (f"{name} prefix {quoted(prefix)}",
                    lambda d: None if d.value(name) is None else d.value(name).startswith(prefix))
        values = [value for value in (draw.choice(documents).value(name) for _ in range(4))
                  if value is not None] or [documents[0].ordinal if name in ("n", "ordinal") else None]
        if values == [None]:
            return f"{name} is null", lambda d: d.value(name) is None
        if kind < 0.55:
            listed = ", ".join(self._literal(name, value) for value in values)
            return (f"{name} in ({listed})",
                    lambda d: None if d.value(name) is None else d.value(name) in values)
        value = values[0]
        operator, compare = draw.choice([
            ("=", lambda a: a == value), ("!=", lambda a: a != value), ("<", lambda a: a < value),
            ("<=", lambda a: a <= value), (">", lambda a: a > value), (">=", lambda a: a >= value)])
        return (f"{name} {operator} {self._literal(name, value)}",
                lambda d: None if d.value(name) is None else compare(d.value(name)))

    @staticmethod
    def _literal(name, value):
        if name in ("lang", "id"):
            return quoted(value)
        if name == "flag":
            return "true" if value else "false"
        if name in ("day", "time"):
            return datetime.datetime.fromtimestamp(value // 10 ** 6, datetime.timezone.utc) \
                .strftime("%Y-%m-%dT%H:%M:%SZ")
        return str(value)


class FiltersTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-filters-")))
        self.archive = self.directory / "docs.quire"
        self.rules_path = self.directory / "withdrawn"

    def quired(self, *arguments, code=0):
        done = subprocess.run([QUIRED, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, (arguments, done.stderr))
        return done.stdout + done.stderr

    def quire(self, *arguments, codes=(0,), **options):
        done = subprocess.run([QUIRE, *map(str, arguments), "--server", self.server.address],
                              capture_output=True, text=True, check=False, **options)
        self.assertIn(done.returncode, codes, (arguments, done.stderr))
        return done.stdout

    def grow(self):
        """Builds the archive, or appends to it, with some of the fields."""
        first = len(self.documents)
        # Ids repeat, but not within one input.
        ids = self.draw.sample([f"dir{n % 3}/page {n}" for n in range(40)], 15)
        added = [Document(self.draw, first + i, identity) for i, identity in enumerate(ids)]
        names = [name for name in FIELDS if not first or self.draw.random() < 0.7]
        for document in added:
            document.fields = {name: document.fields[name] if name in names else None
                               for name in FIELDS}
        # A field that no record has is an error.
        for document, name in zip(added, names):
            if document.fields[name] is None:
                document.fields[name] = {"lang": "de", "n": 1, "score": 0.125, "flag": True,
                                         "day": "2023-01-15"}[name]
        path = self.directory / "rows.jsonl"
        path.write_text("".join(document.line(names) for document in added))
        options = ["--split", "lines", "--id-field", "id", "--text-field", "t", "--time-field", "at",
                   *(part for name in names for part in ("--field", name))]
        self.quired(*(["append", self.archive] if first else ["build", "-o", self.archive]),
                    *options, path)
        self.documents += added

    def redact(self):
        chosen = Filter(self.draw, self.documents)
        matched = [document for document in self.documents if chosen.matches(document)]
        if len(matched) > len(self.documents) / 3:
            return
        said = self.quired("redact", self.archive, "--where", chosen.text, "--prove",
                           code=0 if matched else 1)
        if not matched:
            self.assertIn("no document matches --where", said)
            return
        self.assertIn(f"\n  selected: {len(matched)} document", said)
        self.assertIn("\n  found: none\n", said)
        for document in matched:
            document.removed = True

    def withdraw(self):
        """Writes other rules."""
        self.rules = []
        lines = []
        for _ in range(self.draw.randrange(4)):
            action = self.draw.choice(["block", "exclude"])
            document = self.draw.choice(self.documents)
            if self.draw.random() < 0.7:
                chosen = Filter(self.draw, self.documents)
                lines.append(f"do* where {chosen.text} {action}")
                self.rules.append(chosen.matches)
            else:
                lines.append(f"docs id {document.id} {action}")
                self.rules.append(lambda d, identity=document.id: d.id == identity)
        self.rules_path.write_text("# rules\n" + "".join(line + "\n" for line in lines))

    def visible(self, document):
        return not document.removed and not any(rule(document) for rule in self.rules)

    def reload(self):
        """Waits until the server has taken up archive and rules."""
        said = "rules of withdrawal: taken up from"
        count = sum(said in line for line in self.server.messages)
        self.server.process.send_signal(signal.SIGHUP)
        uuid = json.loads(self.quired("inspect", "--json", self.archive))["uuid"]
        end = time.monotonic() + PATIENCE_SECONDS
        while sum(said in line for line in self.server.messages) == count or \
                json.loads(self.quire("info", "docs", "--json"))["uuid"] != uuid:
            self.assertLess(time.monotonic(), end, "".join(self.server.messages))
            time.sleep(0.02)
        self.assertFalse([line for line in self.server.messages if "documents are withheld" in line])

    def item(self, document):
        """The line of quire ls: numbers count all documents of the id that are in the archive."""
        same = [other for other in self.documents if other.id == document.id and not other.removed]
        return f"{document.id}\t@{same.index(document)}" if len(same) > 1 else document.id

    def check(self, chosen):
        expected = [document for document in self.documents
                    if self.visible(document) and chosen.matches(document)]
        by_id = sorted(expected, key=lambda document: (document.id.encode(), document.ordinal))
        names = self.draw.sample(FIELDS, 2)
        found = [json.loads(line) for line in self.quire(
            "ls", "docs", "--json", "--where", chosen.text, "--fields", ",".join(names),
            codes=(0, 1)).splitlines()]
        self.assertEqual([entry["ordinal"] for entry in found],
                         [document.ordinal for document in by_id])
        for entry, document in zip(found, by_id):
            self.assertEqual(set(entry["fields"]), set(names))
            for name in names:
                shown = entry["fields"][name]
                self.assertEqual(micros(shown.rstrip("Z")) if name == "day" and shown else shown,
                                 document.value(name))
        lines = self.quire("ls", "docs", "--where", chosen.text, codes=(0, 1)).splitlines()
        self.assertEqual(lines, [self.item(document) for document in by_id])
        if lines:
            (self.directory / "items").write_text("".join(line + "\n" for line in lines))
            self.assertEqual(self.quire("batch", "docs", self.directory / "items"),
                             "".join(document.text for document in by_id))
        self.check_export(chosen, expected)
        self.check_http(chosen, by_id, names)
        # Rules of the server do not matter here.
        matched = sum(chosen.matches(document) for document in self.documents)
        said = self.quired("redact", self.archive, "--where", chosen.text, "--dry-run",
                           code=0 if matched else 1)
        self.assertIn(f"\n  selected: {matched} document" if matched else
                      "no document matches --where", said)

    def check_export(self, chosen, expected):
        out = self.directory / "out.tar"
        out.unlink(missing_ok=True)
        self.quire("export", "docs", "--where", chosen.text, "--tar", out, codes=(0, 1))
        texts = []
        if expected:
            with tarfile.open(out) as tar:
                texts = [tar.extractfile(member).read().decode() for member in tar]
        self.assertEqual(sorted(texts), sorted(document.text for document in expected))

    def check_http(self, chosen, by_id, names):
        query = urllib.parse.urlencode({"where": chosen.text, "fields": ",".join(names),
                                        "limit": self.draw.randrange(1, 60)})
        found, token = [], ""
        while True:
            with contextlib.closing(urllib.request.urlopen(
                    f"http://{self.gateway.address}/v1/docs/list?{query}{token}",
                    timeout=PATIENCE_SECONDS)) as answer:
                lines = [json.loads(line) for line in answer.read().splitlines()]
            found += [line for line in lines if "ordinal" in line]
            if not lines or "next_token" not in lines[-1]:
                break
            token = "&token=" + urllib.parse.quote(lines[-1]["next_token"])
        self.assertEqual([entry["ordinal"] for entry in found],
                         [document.ordinal for document in by_id])
        self.assertTrue(all(set(entry["fields"]) == set(names) for entry in found))

    def run_round(self, seed):
        self.draw = random.Random(seed)
        self.documents, self.rules = [], []
        for path in self.directory.glob("docs.quire/*"):
            path.unlink()
        if self.archive.exists():
            self.archive.rmdir()
        self.grow()
        self.withdraw()
        with LiveServer(QUIRED, [f"docs={self.archive}"], "--withdrawn", self.rules_path) as server, \
                LiveGateway(QUIRE_HTTP, server.address) as gateway:
            self.server, self.gateway = server, gateway
            for step in range(5):
                if step:
                    self.draw.choice([self.grow, self.redact, self.withdraw])()
                    self.reload()
                for _ in range(rounds(1, 3)):
                    chosen = Filter(self.draw, self.documents)
                    with self.subTest(seed=seed, step=step, where=chosen.text):
                        self.check(chosen)

    def test_all_agree_with_a_model(self):
        print(f"seed {SEED}", file=sys.stderr)
        for number in range(rounds(2, 40)):
            self.run_round(SEED + number)


if __name__ == "__main__":
    QUIRED, QUIRE, QUIRE_HTTP = sys.argv[1:4]
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
