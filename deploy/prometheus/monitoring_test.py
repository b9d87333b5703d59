#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tests Debian's Prometheus and Alertmanager with a loaded server: a bit of an archive is
flipped, the alert reaches a webhook, and is resolved after the repair. One of its archives
is in an object store, which is then stopped: the alert of stores fires, and that of drives
does not. Each panel of the dashboard has data.

Windows and intervals are short in this test's copies of the files; it waits for each
event, however long a loaded machine takes.
"""
import http.server
import itertools
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "testing" / "storage"))
from object_server import ObjectServer  # noqa: E402  pylint: disable=wrong-import-position

BIN = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
# Generous: only a hang takes this long.
PATIENCE_S = 240
WINDOW = "20s"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(condition, what):
    """Returns the first true value of `condition`."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.2)
    raise AssertionError(f"this did not happen within {PATIENCE_S} s: {what}")


def answers(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
    except OSError:
        return False


class Webhook:
    """Records the alerts that it receives."""

    def __init__(self):
        received = self.received = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                received.extend((self.path, alert) for alert in message["alerts"])
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def find(self, path, name, status):
        return [alert for where, alert in list(self.received)
                if where == path and alert["labels"]["alertname"] == name
                and alert["status"] == status]


class MonitoringTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="quire-monitoring-")
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.webhook = Webhook()
        self.addCleanup(self.webhook.close)

    def start(self, name, *command):
        """Starts a program that ends with the test; its output is in a file."""
        log = self.directory / f"{name}.log"
        with open(log, "wb") as output:
            # pylint: disable=consider-using-with
            program = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, cwd=self.directory)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program, log

    def start_listening(self, name, command_for):
        """Starts a program with its port on the command line; another program might get
        the port first."""
        for _ in range(5):
            port = free_port()
            program, log = self.start(name, *command_for(port))
            wait_for(lambda p=port, q=program: q.poll() is not None
                     or answers(f"http://127.0.0.1:{p}/-/ready"), f"{name} is ready")
            if program.poll() is None:
                return port
        self.fail(f"{name} does not start:\n{log.read_text()}")

    def build(self, name, text):
        documents = self.directory / f"{name}.documents"
        documents.mkdir()
        for i in range(300):
            (documents / f"page{i:03}").write_text(text.format(i=i) * 40)
        archive = self.directory / f"{name}.quire"
        subprocess.run([BIN / "quired", "build", "--quiet", "-o", archive, "--block-size", "4KiB",
                        documents], stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
        return archive

    def start_store(self):
        """Returns the URL of an archive in an object store whose text cannot be compressed."""
        documents = self.directory / "stored.documents"
        documents.mkdir()
        draw = random.Random(1)
        for i in range(40):
            (documents / f"page{i:03}").write_bytes(draw.randbytes(30_000))
        objects = self.directory / "objects"
        objects.mkdir()
        # A dictionary would have all of the text, and be read at the start.
        subprocess.run([BIN / "quired", "build", "--quiet", "-o", objects / "stored.quire",
                        "--codec", "zstd", documents], stdin=subprocess.DEVNULL, check=True, timeout=PATIENCE_S)
        self.store = ObjectServer(objects)
        self.addCleanup(self.store.stop)
        return f"{self.store.url}/stored.quire"

    def start_gateway(self):
        gateway, log = self.start("quire-http", BIN / "quire-http", "--server", self.address,
                                  "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
        wait_for(lambda: "listening on" in log.read_text() or gateway.poll() is not None,
                 "the gateway listens")
        self.assertIsNone(gateway.poll(), log.read_text())
        self.gateway_url = "http://" + re.search(r"listening on (\S+)", log.read_text())[1]
        return re.search(r"metrics on http://(\S+)/metrics", log.read_text())[1]

    def start_server(self, *archives):
        server, log = self.start("quired", BIN / "quired", "serve", *archives, "--listen",
                                 "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--store-cache",
                                 f"{self.directory / 'copies'}:64MiB", "--store-chunk", "16KiB")
        self.server_log = log
        said = wait_for(lambda: re.search(r"metrics on http://(\S+)/metrics\n.*listening on (\S+)\n",
                                          log.read_text()) or server.poll() is not None,
                        "the server listens")
        self.assertIsNone(server.poll(), log.read_text())
        return said[1], said[2]

    def start_monitoring(self, metrics_address, gateway_address):
        config = self.directory / "alertmanager.yml"
        text = (HERE / "alertmanager.yml").read_text()
        text = text.replace("127.0.0.1:9095", "127.0.0.1:%d" % self.webhook.server.server_port)
        config.write_text(re.sub(r"(group_\w+al|group_wait): \w+", r"\1: 1s", text))
        alertmanager = self.start_listening("alertmanager", lambda port: [
            "prometheus-alertmanager", f"--config.file={config}", "--cluster.listen-address=",
            f"--storage.path={self.directory / 'alerts'}", f"--web.listen-address=127.0.0.1:{port}"])
        text = (HERE / "prometheus.yml").read_text()
        for old, new in (("127.0.0.1:9093", f"127.0.0.1:{alertmanager}"),
                         ('"127.0.0.1:7421"', f'"{metrics_address}"'),
                         ('"127.0.0.1:8081"', f'"{gateway_address}"'),
                         ("interval: 15s", "interval: 1s")):
            self.assertIn(old, text)
            text = text.replace(old, new)
        config = self.directory / "prometheus.yml"
        config.write_text(text)
        rules = (HERE / "rules.yml").read_text()
        rules = rules.replace("for: 2m", "for: 2s")
        (self.directory / "rules.yml").write_text(re.sub(r"\[\w+\]", f"[{WINDOW}]", rules))
        self.prometheus = self.start_listening("prometheus", lambda port: [
            "prometheus", f"--config.file={config}", f"--web.listen-address=127.0.0.1:{port}",
            f"--storage.tsdb.path={self.directory / 'series'}", "--storage.tsdb.retention.time=1d"])

    def query(self, path, **parameters):
        url = (f"http://127.0.0.1:{self.prometheus}/api/v1/{path}?"
               + urllib.parse.urlencode(parameters))
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)["data"]

    def value(self, expression):
        result = self.query("query", query=expression)["result"]
        return float(result[0]["value"][1]) if result else None

    def has_data(self, expression):
        """Returns True if it had a number at any time since the start."""
        expression = (expression.replace("$__rate_interval", WINDOW)
                      .replace("$job", ".*").replace("$instance", ".*").replace("$http", ".*"))
        now = time.time()
        series = self.query("query_range", query=expression, start=self.started, end=now, step="1")
        return any(math.isfinite(float(value)) for one in series["result"]
                   for _, value in one["values"])

    def quire(self, *arguments):
        return subprocess.run([BIN / "quire", *arguments, "--server", self.address],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S,
                              check=False)

    def test_damage_is_alerted_and_taken_back(self):
        metrics_address, self.address = self.start_server(
            self.build("docs", "<p>page {i} of the archive that has the load</p>\n"),
            self.build("other", "<p>page {i} of the archive that is damaged</p>\n"),
            self.start_store())
        self.started = time.time()
        self.start_monitoring(metrics_address, self.start_gateway())
        wait_for(lambda: self.value('up{job="quire"}') == 1, "the server is scraped")
        # Read drives only now, when rates have a value to start from.
        wait_for(lambda: self.value("quire_cache_hits_total") is not None, "metrics are there")
        self.start("loadtest", BIN / "quire-loadtest", "docs", "--server", self.address,
                   "--what", "documents", "--rate", "50", "--duration", "3600s")
        wait_for(lambda: (self.value(f"sum(rate(quire_calls_total[{WINDOW}]))") or 0) > 1,
                 "the load is seen")
        self.assertEqual(self.quire("get", "docs", "no such page").returncode != 0, True)

        segment = self.directory / "other.quire" / "segment-00000000"
        whole = segment.read_bytes()
        shutil.copy(segment, self.directory / "kept")
        with open(segment, "r+b") as file:
            file.seek(200)
            byte = file.read(1)[0]
            file.seek(200)
            file.write(bytes([byte ^ 1]))

        def fired():
            # Repeat each time: the first read may have fallen between two scrapes.
            self.assertNotEqual(self.quire("scan", "other").returncode, 0)
            return self.webhook.find("/page", "QuireDataDamaged", "firing")

        alert = wait_for(fired, "the webhook is told of the damage")[0]
        self.assertEqual(alert["labels"]["instance"], metrics_address)
        self.assertEqual(alert["annotations"]["runbook_url"], "RUNBOOK.md#quiredatadamaged")
        self.assertIn("met damaged blocks", alert["annotations"]["summary"])
        self.assertEqual(self.webhook.find("/page", "QuireDataDamaged", "resolved"), [])

        segment.write_bytes(whole)
        scanned = self.quire("scan", "other")
        self.assertEqual(scanned.returncode, 0, scanned.stderr)
        self.assertIn(b"page 299 of the archive that is damaged", scanned.stdout)
        wait_for(lambda: self.webhook.find("/page", "QuireDataDamaged", "resolved"),
                 "the alert is taken back after the repair")
        # Half of it, so that the outage meets chunks that have no copy.
        for i in range(20):
            self.quire("get", "stored", f"page{i:03}")
        self.check_dashboard()
        self.check_outage()

    def check_outage(self):
        pages = itertools.cycle(f"page{i:03}" for i in range(20, 40))
        self.store.lies.set("status_500")

        def fired():
            # The block cache may have a page; most are read from the store.
            self.quire("--timeout", "5s", "get", "stored", next(pages))
            return self.webhook.find("/page", "QuireStoreDown", "firing")

        wait_for(fired, "the webhook is told of the outage")
        # Its rule has been evaluated as often; nothing but its expression keeps it quiet.
        self.assertGreater(self.value("sum(quire_device_errors_total)"), 0)
        for name in ("QuireDriveErrors", "QuireBlocksRecovered"):
            self.assertEqual(self.query("query", query=f'ALERTS{{alertname="{name}"}}')["result"], [])
        self.store.lies.clear()
        wait_for(lambda: self.quire("get", "stored", "page039").returncode == 0,
                 "the store is read again")

    def check_dashboard(self):
        dashboard = json.loads((HERE / "dashboard.json").read_text())
        targets = [(panel["title"], target["expr"]) for panel in dashboard["panels"]
                   for target in panel.get("targets", [])]
        self.assertGreater(len(targets), 20)
        for title, expression in targets:
            wait_for(lambda e=expression: answers(self.gateway_url + "/v1/docs/doc/page000")
                     and self.has_data(e), f"data for {title}: {expression}")


if __name__ == "__main__":
    unittest.main()
