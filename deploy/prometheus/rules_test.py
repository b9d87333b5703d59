#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks configuration, rules, runbook and dashboard with Prometheus' own tools and
against each other. monitoring_test.py runs them."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).parent
METRICS = [HERE.parents[1] / path for path in ("server/service/metrics/METRICS.md", "docs/http.md")]


def run(*command, cwd=HERE):
    return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300, check=False)


class RulesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        rules = [rule for group in yaml.safe_load((HERE / "rules.yml").read_text())["groups"]
                 for rule in group["rules"]]
        cls.alerts = {rule["alert"]: rule for rule in rules if "alert" in rule}
        cls.records = {rule["record"] for rule in rules if "record" in rule}
        cls.expressions = [rule["expr"] for rule in rules]
        cls.dashboard = json.loads((HERE / "dashboard.json").read_text())

    def assert_passes(self, *command):
        ran = run(*command)
        self.assertEqual(ran.returncode, 0, f"{' '.join(command)}:\n{ran.stdout}")

    def test_prometheus_takes_the_files(self):
        self.assert_passes("promtool", "check", "config", "prometheus.yml")
        self.assert_passes("amtool", "check-config", "alertmanager.yml")

    def test_alerts_fire_when_they_should(self):
        self.assert_passes("promtool", "test", "rules", "rules_test.yml")

    def test_every_alert_is_tested(self):
        fire, rest = set(), set()
        for test in yaml.safe_load((HERE / "rules_test.yml").read_text())["tests"]:
            for case in test["alert_rule_test"]:
                (fire if case["exp_alerts"] else rest).add(case["alertname"])
        self.assertEqual(fire, set(self.alerts))
        self.assertEqual(rest, set(self.alerts))

    def test_an_alert_that_is_silent_fails_its_test(self):
        text = (HERE / "rules.yml").read_text()
        silent = text.replace("process_open_fds{", "process_open_files{")
        self.assertNotEqual(silent, text)
        with tempfile.TemporaryDirectory(prefix="quire-rules-") as scratch:
            shutil.copy(HERE / "rules_test.yml", scratch)
            pathlib.Path(scratch, "rules.yml").write_text(silent)
            ran = run("promtool", "test", "rules", "rules_test.yml", cwd=scratch)
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("QuireFilesNearLimit", ran.stdout)

    def test_runbook_has_each_alert(self):
        runbook = (HERE / "RUNBOOK.md").read_text()
        sections = re.split(r"^## ", runbook, flags=re.MULTILINE)[1:]
        self.assertEqual([section.split("\n")[0] for section in sections], list(self.alerts))
        for section in sections:
            for part in ("**Meaning.**", "**Check.**", "**Action.**"):
                self.assertIn(part, section, section.split("\n")[0])

    def test_alerts_say_what_to_do(self):
        for name, alert in self.alerts.items():
            self.assertIn(alert["labels"]["severity"], ("page", "ticket"), name)
            self.assertEqual(alert["annotations"]["runbook_url"], f"RUNBOOK.md#{name.lower()}")
            self.assertTrue(alert["annotations"]["summary"], name)
            self.assertTrue(alert["annotations"]["description"], name)

    def test_names_are_those_of_metrics(self):
        known = {name for path in METRICS for name in
                 re.findall(r"`((?:quire|process)_\w+)(?:{\w+})?`", path.read_text())}
        queries = [target["expr"] for panel in self.dashboard["panels"]
                   for target in panel.get("targets", [])]
        used = set()
        for text in (*self.expressions, *queries, (HERE / "RUNBOOK.md").read_text()):
            for record in self.records:
                text = text.replace(record, "")
            text = re.sub(r"\bquire:\w+:\w+", lambda match: self.fail(f"no rule {match[0]}"), text)
            used.update(re.findall(r"\b(?:quire|process)_\w+", text))
        for name in used:
            self.assertIn(re.sub(r"_(bucket|count|sum)$", "", name), known)

    def test_dashboard_is_whole(self):
        panels = self.dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        self.assertEqual(len({panel["title"] for panel in panels}), len(panels))
        for panel in panels:
            self.assertEqual(panel["type"] == "row", "targets" not in panel, panel["title"])


if __name__ == "__main__":
    unittest.main()
