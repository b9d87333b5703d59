#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A collector with collector.yaml reads the access log of a server, over a rotation, and sends
spans; the test receives them.

usage: tracing_test.py QUIRED QUIRE
Needs Go and a network: compiles a collector into build/go.
"""
import http.server
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "go"
sys.path.insert(0, str(HERE.parents[1] / "loadtest" / "harness"))
from live_server import LiveServer  # pylint: disable=wrong-import-position

VERSION = "v0.165.0"
MODULES = [
    "github.com/open-telemetry/opentelemetry-collector-contrib/receiver/filelogreceiver@v0.165.1",
    f"go.opentelemetry.io/collector/otelcol@{VERSION}",
    f"go.opentelemetry.io/collector/exporter/otlphttpexporter@{VERSION}",
    "go.opentelemetry.io/collector/confmap/provider/fileprovider@v1.71.0"]
# Only a hang takes this long.
PATIENCE_S = 120
BUILD_PATIENCE_S = 3000
TRACE = "4bf92f3577b34da6a3ce929d0e0e473{}"
PARENT = "00f067aa0ba902b7"


def collector():
    """The program, which is compiled once for each version of its source."""
    source = (HERE / "collector" / "collector_main.go").read_text()
    mark = BUILD / "collector.source"
    program = BUILD / "bin" / "collector"
    wanted = "\n".join([source, *MODULES])
    if program.exists() and mark.exists() and mark.read_text() == wanted:
        return program
    assert shutil.which("go"), "go: the collector is compiled from the Go module proxy"
    environment = {**os.environ, "GOPATH": str(BUILD), "GOFLAGS": "-modcacherw -buildvcs=false"}
    with tempfile.TemporaryDirectory(prefix="quire-collector-") as directory:
        shutil.copy(HERE / "collector" / "collector_main.go", directory)
        for command in (["mod", "init", "collector"], ["get", *MODULES], ["mod", "tidy"],
                        ["build", "-o", program, "."]):
            subprocess.run(["go", *command], cwd=directory, env=environment, check=True,
                           timeout=BUILD_PATIENCE_S)
    mark.write_text(wanted)
    return program


class Receiver(http.server.BaseHTTPRequestHandler):
    """Takes OTLP in JSON."""

    def do_POST(self):  # pylint: disable=invalid-name
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        for resource in body["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    self.server.spans.put((resource["resource"], span))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


class TracingTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-tracing-")))
        document = self.directory / "document"
        document.write_text("one document\n")
        subprocess.run([QUIRED, "build", "-q", "-o", self.directory / "docs.quire", document],
                       check=True, timeout=PATIENCE_S)
        self.log = self.directory / "access.log"
        self.server = LiveServer(QUIRED, [self.directory / "docs.quire"],
                                 "--access-log", self.log)
        self.addCleanup(self.server.process.wait, PATIENCE_S)
        self.addCleanup(self.server.process.kill)
        self.receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        self.receiver.spans = queue.Queue()
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()
        self.addCleanup(self.receiver.shutdown)

    def start_collector(self):
        text = (HERE / "collector.yaml").read_text()
        for before, after in (
                ("/var/log/quire/*/access.log", str(self.log)), ("start_at: end", "start_at: beginning"),
                ("endpoint: http://127.0.0.1:4318",
                 f"endpoint: http://127.0.0.1:{self.receiver.server_port}\n"
                 "    encoding: json\n    compression: none")):
            self.assertIn(before, text)
            text = text.replace(before, after)
        path = self.directory / "collector.yaml"
        path.write_text(text)
        process = subprocess.Popen([collector(), "--config", path], stdin=subprocess.DEVNULL,
                                   stderr=open(self.directory / "messages", "w"))
        self.addCleanup(process.wait, PATIENCE_S)
        self.addCleanup(process.terminate)

    def call(self, *arguments, trace=None, code=0):
        extra = ["--traceparent", f"00-{TRACE.format(trace)}-{PARENT}-01"] if trace else []
        done = subprocess.run([QUIRE, "--server", self.server.address, *extra, *arguments],
                              capture_output=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, code, done.stderr)

    def next_span(self, method, trace):
        try:
            while True:
                resource, span = self.receiver.spans.get(timeout=PATIENCE_S)
                if (span["name"], span["traceId"]) == (f"quire.v1.Archive/{method}",
                                                       TRACE.format(trace)):
                    return resource, span
        except queue.Empty:
            return self.fail(self.log.read_text()[-3000:])

    def test_calls_become_spans(self):
        begun = time.time_ns()
        self.call("get", "docs", "document", trace=6)
        self.call("get", "docs", "document")
        self.start_collector()
        resource, span = self.next_span("ReadStream", 6)
        attributes = {entry["key"]: next(iter(entry["value"].values()))
                      for entry in span["attributes"]}
        self.assertIn({"key": "service.name", "value": {"stringValue": "quired"}},
                      resource["attributes"])
        self.assertEqual(span["parentSpanId"], PARENT)
        self.assertRegex(span["spanId"], "^[0-9a-f]{16}$")
        self.assertEqual(span["kind"], 2)
        self.assertEqual(span["status"].get("code"), 1)
        self.assertEqual((attributes["quire.archive"], attributes["quire.bytes"]), ("docs", "13"))
        # As long as the line says, in this test's time.
        lines = [json.loads(line) for line in self.log.read_text().splitlines()]
        line = next(line for line in lines if line["method"] == "ReadStream" and "trace_id" in line)
        start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        self.assertEqual(end - start, line["duration_us"] * 1000)
        self.assertLess(begun - 10**9, start)
        self.assertLess(end, time.time_ns() + 10**9)

        self.call("get", "docs", "absent", trace=7, code=1)
        _, span = self.next_span("ReadStream", 7)
        self.assertEqual(span["status"], {"code": 2, "message": "DOCUMENT_NOT_FOUND"})
        # Rotation.
        self.log.rename(self.directory / "access.log.1")
        # The collector looks every 0.2 s, and finds the file gone; the server writes there yet.
        time.sleep(1)
        self.call("get", "docs", "document", trace=8)
        self.server.process.send_signal(signal.SIGHUP)
        self.next_span("ReadStream", 8)
        end = time.monotonic() + PATIENCE_S
        while not self.log.exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.call("get", "docs", "document", trace=9)
        self.next_span("ReadStream", 9)
        # Calls without a trace have no span.
        for _, span in self.receiver.spans.queue:
            self.assertTrue(span["traceId"].startswith(TRACE[:-2]), span)


if __name__ == "__main__":
    QUIRED, QUIRE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
