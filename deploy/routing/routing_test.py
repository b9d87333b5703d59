#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three servers behind nginx and HAProxy, with the configuration in this directory.

Clients in Python and C++ read through the proxy while servers are killed, drained and
stopped, and while one refuses its archives. Without --whole only the routes are tested,
refusals, and one server is killed behind nginx, and opens its archive slowly.

usage: routing_test.py QUIRED QUIRE [--whole]
"""
import atexit
import concurrent.futures
import contextlib
import http.server
import importlib
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import grpc
import yaml

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(ROOT / "loadtest" / "harness"), str(ROOT / "testing" / "storage")]
# pylint: disable=wrong-import-position
from live_nginx import nginx_command
from live_server import LiveServer, make_documents, write_corpus
from object_server import ObjectServer

# Only a hang takes this long.
PATIENCE_S = 120
SEED = 20261126
# Bytes of the largest document of each archive: more than one message.
LARGE_SIZE = 5_000_000
# More than buffers hold between a server and a client that reads slowly.
SLOW_SIZE = 60_000_000
# Archives, and their servers by nginx.conf.
PLACES = {"docs": (1, 2), "web-a": (2, 3), "web-b": (2, 3), "web-c": (2, 3), "web-d": (2, 3),
          "web-slow": (2, 3), "other": (3,)}
READ_ARCHIVES = [name for name in PLACES if name != "web-slow"]
HEADER = ROOT / "codecs" / "base" / "archive_name.h"


def program(name):
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    assert found, f"{name}: deploy/bootstrap.sh installs it"
    return found


def free_ports(count):
    """Ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0)))
                 for _ in range(count)]
        return [listener.getsockname()[1] for listener in taken]


class Reader(threading.Thread):
    """Reads an archive in each way, round after round, until stop(), and compares.

    `errors` has those of failed calls.
    """

    def __init__(self, address, archive, documents, **options):
        super().__init__(daemon=True)
        self.archive = archive
        self.errors = []
        self.rounds = 0
        self._documents = documents
        self._draw = random.Random(archive)
        self._client = QUIRE_ARCHIVE.connect(address, deadline=60, idle_max=60, **options)
        self._ends = threading.Event()
        self._round_ended = threading.Condition()
        self.start()

    def run(self):
        while not self._ends.is_set():
            try:
                self._round(self._client[self.archive])
            except Exception as error:  # pylint: disable=broad-exception-caught
                self.errors.append(error)
                time.sleep(0.05)
            with self._round_ended:
                self.rounds += 1
                self._round_ended.notify_all()

    def _round(self, archive):
        documents = self._documents
        key = self._draw.choice(sorted(documents))
        assert archive.read(key) == documents[key]
        keys = self._draw.sample(sorted(documents), 20)
        assert [(a.key, a.data) for a in archive.get_many(keys)] == [
            (key, documents[key]) for key in keys]
        assert sum(1 for _ in archive.documents(page_size=40)) == len(documents)
        assert {document.name: data for document, data in archive.scan()} == documents

    def await_rounds(self, count):
        """Waits until `count` more rounds have begun and ended."""
        with self._round_ended:
            goal = self.rounds + count + 1
            assert self._round_ended.wait_for(lambda: self.rounds >= goal, PATIENCE_S), self.archive

    def stop(self):
        self._ends.set()
        self.join(PATIENCE_S)
        assert not self.is_alive(), self.archive
        self._client.close()


class RefusingServer(grpc.GenericRpcHandler):
    """A server that is ready and refuses each call, as one does for an archive that it cannot
    read. `attempts` has the metadata quire-archive and quire-attempt of each call."""

    def __init__(self, port, metrics_port):
        self.attempts = []
        # pylint: disable=protected-access
        messages = QUIRE_ARCHIVE._messages
        status = messages.RpcStatus(code=14, message="the archive cannot be read here")
        info = messages.RpcErrorInfo(reason="ARCHIVE_BROKEN", domain="quire")
        retry = messages.RpcRetryInfo()
        retry.retry_delay.nanos = 1_000_000
        for name, detail in ("ErrorInfo", info), ("RetryInfo", retry):
            status.details.add(type_url=f"type.googleapis.com/google.rpc.{name}",
                               value=detail.SerializeToString())
        self._details = status.SerializeToString()
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        self._server.add_generic_rpc_handlers((self,))
        assert self._server.add_insecure_port(f"127.0.0.1:{port}") == port
        self._server.start()
        self._probes = http.server.ThreadingHTTPServer(("127.0.0.1", metrics_port), ReadyAnswer)
        threading.Thread(target=self._probes.serve_forever, daemon=True).start()

    def service(self, handler_call_details):
        metadata = dict(handler_call_details.invocation_metadata)
        self.attempts.append((metadata.get("quire-archive"), metadata.get("quire-attempt")))
        return grpc.stream_stream_rpc_method_handler(self._refuse)

    def _refuse(self, _requests, context):
        context.set_trailing_metadata((("grpc-status-details-bin", self._details),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "the archive cannot be read here")

    def stop(self):
        self._server.stop(None).wait()
        self._probes.shutdown()
        self._probes.server_close()


class ReadyAnswer(http.server.BaseHTTPRequestHandler):
    """/readyz"""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class RoutingCase(unittest.TestCase):
    """Servers, proxies and clients."""

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix="quire-routing-")))
        cls.documents = {}
        for seed, name in enumerate(PLACES):
            is_slow = name == "web-slow"
            documents = make_documents(80, seed, 12_000)
            size = SLOW_SIZE if is_slow and WHOLE else LARGE_SIZE
            documents.append((f"z-large-{name}", random.Random(seed).randbytes(size)))
            write_corpus(documents, f"{cls.directory}/{name}")
            subprocess.run([QUIRED, "build", "--quiet", "--dictionary-size", "64KiB", "-o",
                            f"{cls.directory}/{name}.quire", f"{cls.directory}/{name}.tar"],
                           check=True)
            cls.documents[name] = dict(documents)

    def setUp(self):
        self.are_replicas = False
        self.servers = {}
        self.ports = {}
        self.metrics_ports = {}
        self.scratch = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=self.directory)))

    # --- Servers and proxies.

    def archives_of(self, number):
        return sorted(name for name, places in PLACES.items()
                      if self.are_replicas or number in places)

    def start_servers(self, are_replicas):
        self.are_replicas = are_replicas
        self.metrics_ports = dict(zip((1, 2, 3), free_ports(3)))
        for number in (1, 2, 3):
            self.start_server(number)

    def start_server(self, number, archives=None, *options):
        archives = archives or [self.directory / f"{name}.quire"
                                for name in self.archives_of(number)]
        server = LiveServer(
            QUIRED, archives, "--memory", "256MiB", "--drain-delay", "3s", "--drain-timeout",
            "60s", *options, port=self.ports.get(number, 0), metrics_port=self.metrics_ports[number])
        self.servers[number] = server
        self.ports[number] = int(server.address.rpartition(":")[2])
        self.addCleanup(self.end_server, server)

    def refuse_at(self, number):
        """Replaces a server by a RefusingServer."""
        self.end_server(self.servers[number])
        server = RefusingServer(self.ports[number], self.metrics_ports[number])
        self.addCleanup(server.stop)
        return server

    @staticmethod
    def end_server(server):
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGCONT)
            server.process.kill()
        server.process.wait(PATIENCE_S)
        if not server.process.stderr.closed:
            server.process.stderr.close()

    def fill_in(self, name):
        """A configuration with the ports of this test."""
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        text = (HERE / name).read_text()
        for number, port in self.ports.items():
            # HAProxy has the port of the metrics on the same line.
            text = re.sub(rf"(quire-{number}:7420 port )7421",
                          rf"\g<1>{self.metrics_ports[number]}", text)
            text = text.replace(f"quire-{number}:7420", f"127.0.0.1:{port}")
        text = re.sub(r"(listen |bind ):?7430", rf"\g<1>{self.address}", text)
        self.assertNotRegex(re.sub(r"(?m)^ *#.*", "", text), r"\b74[23]\d\b")
        return text

    def start_proxy(self, *command):
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL)

        def stop():
            process.terminate()
            process.wait(PATIENCE_S)
        self.addCleanup(stop)
        end = time.monotonic() + PATIENCE_S
        while True:
            self.assertIsNone(process.poll(), "the proxy ended")
            self.assertLess(time.monotonic(), end)
            try:
                socket.create_connection(("127.0.0.1", self.port), 5).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.02)

    def start_nginx(self):
        (self.scratch / "quire.conf").write_text(self.fill_in("nginx.conf"))
        self.start_proxy(*nginx_command(self.scratch, f"  include {self.scratch}/quire.conf;"))

    def start_haproxy(self):
        path = self.scratch / "haproxy.cfg"
        path.write_text(self.fill_in("haproxy.cfg"))
        self.start_proxy(program("haproxy"), "-db", "-q", "-f", path)

    # --- Clients.

    def read_through(self, archive, **options):
        """A Reader; stopped at the end."""
        reader = Reader(self.address, archive, self.documents[archive], **options)
        self.addCleanup(reader.stop)
        return reader

    def check_readers(self, readers, rounds):
        """They read on, and had no errors."""
        for reader in readers:
            reader.await_rounds(rounds)
        self.assertEqual({reader.archive: reader.errors for reader in readers},
                         {reader.archive: [] for reader in readers})

    def run_quire(self, *arguments, code=0, data=None):
        """Standard output; with another exit code what is on standard error."""
        done = subprocess.run([QUIRE, "--server", self.address, *arguments], check=False,
                              capture_output=True, timeout=PATIENCE_S, input=data)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr.decode()

    def check_cli(self, archive, encoding="identity"):
        """The calls of the C++ library."""
        def quire(subcommand, *arguments, data=None):
            return self.run_quire("--encoding", encoding, "--cache-dir", "-", subcommand, archive,
                                  *arguments, data=data)
        documents = self.documents[archive]
        ids = sorted(documents)
        self.assertEqual(quire("get", ids[5]), documents[ids[5]])
        self.assertTrue(quire("get", ids[-1]) == documents[ids[-1]])
        self.assertTrue(quire("scan") == (self.directory / f"{archive}.raw").read_bytes())
        self.assertEqual(quire("ls").decode().split(), ids)
        self.assertEqual(quire("batch", data="\n".join(ids[::7]).encode()),
                         b"".join(documents[key] for key in ids[::7]))

    def calls(self, number):
        """Calls so far for each archive of a server."""
        found = re.findall(r'^quire_archive_calls_total\{archive="(.*?)"\} (\d+)',
                           self.servers[number].metrics(), re.MULTILINE)
        return {name: int(count) for name, count in found}

    def homes(self, numbers=(1, 2, 3)):
        """Asks for each archive twice; returns the number of the server that answered."""
        before = {number: self.calls(number) for number in numbers}
        for archive in [*READ_ARCHIVES, *READ_ARCHIVES]:
            self.run_quire("get", archive, sorted(self.documents[archive])[0])
        homes = {}
        for number in numbers:
            for name, count in self.calls(number).items():
                if count > before[number].get(name, 0):
                    self.assertNotIn(name, homes, "one archive at two servers")
                    homes[name] = number
        self.assertEqual(set(homes), set(READ_ARCHIVES))
        return homes

    def check_refusals(self, server, archive, homes):
        """All calls for an archive at the refusing server succeed, and those for archives at
        others never get there."""
        self.check_cli(archive)
        self.check_cli(archive, "stored")
        reader = self.read_through(archive)
        self.check_readers([reader], 10)
        reader.stop()
        first = [name for name, attempt in server.attempts if attempt is None]
        self.assertGreater(first.count(archive), 50)
        self.assertEqual(server.attempts.count((archive, "1")), 0)
        server.attempts.clear()
        for other, home in homes.items():
            if home != homes[archive]:
                self.check_cli(other)
        self.assertEqual([call for call in server.attempts if call[0] is not None], [])

    def check_list(self, expected):
        lines = self.run_quire("archives").decode().splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], expected)
        with QUIRE_ARCHIVE.connect(self.address) as client:
            self.assertEqual([info.name for info in client.archives()], expected)


class SmokeTest(RoutingCase):
    def test_nginx_routes(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        self.assertEqual((homes["docs"], homes["other"]), (1, 3))
        self.assertLessEqual({homes[name] for name in homes if name.startswith("web-")}, {2, 3})
        self.check_cli("docs")
        # Its dictionary is not at the default server.
        self.check_cli("docs", "stored")
        self.check_cli("web-a")
        # The default server lists its own archives, and answers for names that none has.
        self.check_list(self.archives_of(3))
        for name in ("absent", "a b"):
            self.assertIn(f'"{name}"', self.run_quire("get", name, "x", code=1))

    def test_nginx_with_a_killed_server(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        # Its servers are 1 and 2.
        victim = self.read_through("docs")
        other = self.read_through("other", attempts_max=1)
        self.check_readers([victim, other], 1)
        self.servers[1].process.kill()
        self.check_readers([victim, other], 3)
        victim.stop()
        self.servers[2].process.kill()
        self.check_readers([other], 3)
        self.assertIn("no server of the archive answers",
                      self.run_quire("--timeout", "1s", "get", "docs", "x", code=3))

    def test_nginx_with_a_server_that_starts(self):
        """It gets no call before its archive is open, and none fails."""
        self.start_servers(are_replicas=False)
        self.start_nginx()
        opens, may_open = threading.Event(), threading.Event()
        self.addCleanup(may_open.set)

        def hold(_method, path, _headers):
            if not path.endswith("MANIFEST"):
                opens.set()
                may_open.wait(PATIENCE_S)
        store = ObjectServer(self.directory, check=hold)
        self.addCleanup(store.stop)
        self.end_server(self.servers[1])
        starting = threading.Thread(target=self.start_server, daemon=True, args=(
            1, [f"docs={store.url}/docs.quire"], "--listen-when-open", "--store-cache",
            f"{self.scratch}/cache:64MiB"))
        starting.start()
        self.assertTrue(opens.wait(PATIENCE_S))
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", self.ports[1]))
        reader = self.read_through("docs", attempts_max=1)
        self.check_readers([reader], 5)
        may_open.set()
        starting.join(PATIENCE_S)
        # By the time nginx tries it again, which the next calls cause.
        end = time.monotonic() + PATIENCE_S
        while not self.calls(1).get("docs"):
            self.assertLess(time.monotonic(), end)
            self.check_readers([reader], 1)

    def test_haproxy_routes(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        self.homes()
        self.check_cli("docs")
        self.check_cli("web-a", "stored")
        self.check_list(sorted(PLACES))

    def test_nginx_with_a_server_that_refuses(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        self.check_refusals(self.refuse_at(1), "docs", homes)

    def test_nginx_with_a_replica_that_refuses(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        for number in (2, 3):
            archive = next((name for name, home in homes.items()
                            if home == number and name.startswith("web-")), None)
            if archive is not None:
                break
        self.check_refusals(self.refuse_at(number), archive,
                            {name: home for name, home in homes.items()
                             if name == archive or home != number})

    def test_haproxy_with_a_server_that_refuses(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        homes = self.homes()
        server = self.refuse_at(homes["docs"])
        # It learns again that all are ready.
        self.start_haproxy()
        self.check_refusals(server, "docs", homes)

    def test_the_headers_are_those_of_the_clients(self):
        header = HEADER.read_text()
        (key,) = re.findall(r'kArchiveMetadataKey\[\] = "(.*)"', header)
        (attempt,) = re.findall(r'kAttemptMetadataKey\[\] = "(.*)"', header)
        self.assertIn('map "$http_{} $http_{}" '.format(
            attempt.replace("-", "_"), key.replace("-", "_")), (HERE / "nginx.conf").read_text())
        haproxy = (HERE / "haproxy.cfg").read_text()
        self.assertIn(f"balance hash req.hdr({key})", haproxy)
        self.assertIn(f"use_backend quire-again if {{ req.hdr({attempt}) -m found }}", haproxy)
        route = yaml.safe_load((HERE / "grpc-route.yaml").read_text())
        self.assertEqual((route["kind"], route["apiVersion"]),
                         ("GRPCRoute", "gateway.networking.k8s.io/v1"))
        *rules, rest = route["spec"]["rules"]
        self.assertNotIn("matches", rest)
        for rule in rules:
            for match in rule["matches"]:
                self.assertEqual(match["method"], {"service": "quire.v1.Archive"})
                self.assertEqual([header["name"] for header in match["headers"]], [key])
        for rule in [*rules, rest]:
            self.assertEqual([backend["port"] for backend in rule["backendRefs"]], [7420])


class WholeTest(RoutingCase):
    """Faults. Clients of archives at other servers may not repeat calls."""

    def read_slowly(self):
        """Starts a scan that takes 10 s; returns a function that waits for it."""
        result = []

        def read():
            with QUIRE_ARCHIVE.connect(self.address, attempts_max=1) as client:
                parts = []
                try:
                    for part in client["web-slow"].stream_range():
                        parts.append(part)
                        time.sleep(10 * len(part) / SLOW_SIZE)
                    result.append(b"".join(parts))
                except QUIRE_ARCHIVE.QuireError as error:
                    result.append(error)
        thread = threading.Thread(target=read, daemon=True)
        thread.start()

        def finish():
            thread.join(PATIENCE_S)
            self.assertTrue(result and result[0] == (self.directory / "web-slow.raw").read_bytes(),
                            [part for part in result if not isinstance(part, bytes)])
        return finish

    def slow_home(self):
        """The server of the scan, which runs."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for number in self.servers:
                if self.calls(number).get("web-slow"):
                    return number
            time.sleep(0.1)
        return self.fail("no server has the scan")

    def start_readers(self, victim, homes):
        """Readers of archives at the server, and at others."""
        found = [[], []]
        for name, home in homes.items():
            if len(found[home != victim]) < 2:
                options = {} if home == victim else {"attempts_max": 1}
                found[home != victim].append(self.read_through(name, **options))
        self.check_readers(found[0] + found[1], 1)
        return found

    def check_kill(self, victim, homes):
        victims, others = self.start_readers(victim, homes)
        self.servers[victim].process.kill()
        self.check_readers(others + victims, 5)
        self.servers[victim].process.wait(PATIENCE_S)
        left = [number for number in (1, 2, 3) if number != victim]
        moved = self.homes(left)
        self.assertEqual({name: home for name, home in homes.items() if home != victim},
                         {name: moved[name] for name in homes if homes[name] != victim})
        self.start_server(victim)
        self.check_readers(others + victims, 2)
        self.await_homes(homes)

    def await_homes(self, homes):
        """The archives of a server return to it."""
        end = time.monotonic() + PATIENCE_S
        while self.stop_and_ask() != homes:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.5)

    def stop_and_ask(self):
        try:
            return self.homes()
        except AssertionError:
            # While it changes.
            return None

    def check_drain(self, homes):
        finish = self.read_slowly()
        victim = self.slow_home()
        victims, others = self.start_readers(victim, homes)
        server = self.servers[victim].process
        server.send_signal(signal.SIGTERM)
        self.check_readers(others + victims, 5)
        finish()
        self.assertEqual(server.wait(PATIENCE_S), 0)
        self.check_readers(others + victims, 5)
        self.start_server(victim)
        self.check_readers(others + victims, 2)

    def check_paused_stream(self):
        """A stream that is not read holds up no other call of the client."""
        documents = self.documents["web-slow"]
        key = sorted(documents)[0]
        with QUIRE_ARCHIVE.connect(self.address, attempts_max=1, deadline=20) as client:
            for _ in range(3):
                pieces = client["web-slow"].stream_range()
                next(pieces)
                # Buffers fill up.
                time.sleep(0.5)
                self.assertEqual(client["web-slow"].read(key), documents[key])
                pieces.close()

    def test_nginx_paused_stream(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        self.check_paused_stream()

    def test_haproxy_paused_stream(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        self.check_paused_stream()

    def test_nginx_kill(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        self.check_kill(1, homes)

    def test_nginx_drain(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        # It has no other server.
        homes.pop("other")
        self.check_drain(homes)

    def test_nginx_stop(self):
        self.start_servers(are_replicas=False)
        self.start_nginx()
        homes = self.homes()
        victims, others = self.start_readers(3, homes)
        self.servers[3].process.send_signal(signal.SIGSTOP)
        self.check_readers(others, 10)
        self.servers[3].process.send_signal(signal.SIGCONT)
        # nginx does not notice; their calls take longer.
        self.check_readers(others + victims, 2)

    def test_haproxy_kill(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        homes = self.homes()
        self.check_kill(homes["docs"], homes)

    def test_haproxy_drain(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        self.check_drain(self.homes())

    def test_haproxy_stop(self):
        self.start_servers(are_replicas=True)
        self.start_haproxy()
        homes = self.homes()
        victim = homes["docs"]
        victims, others = self.start_readers(victim, homes)
        self.servers[victim].process.send_signal(signal.SIGSTOP)
        # The health check notices it, and ends the calls.
        self.check_readers(others, 10)
        for reader in victims:
            reader.await_rounds(3)
            reader.errors.clear()
        self.check_readers(others + victims, 5)
        self.servers[victim].process.send_signal(signal.SIGCONT)
        self.check_readers(others + victims, 2)


def load_package():
    """The Python package from its sources."""
    directory = tempfile.mkdtemp(prefix="quire-routing-package-")
    atexit.register(shutil.rmtree, directory)
    subprocess.run([ROOT / "client" / "python" / "build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("*.whl")
    sys.path.insert(0, str(wheel))
    return importlib.import_module("quire_archive")


if __name__ == "__main__":
    WHOLE = "--whole" in sys.argv
    QUIRED, QUIRE = sys.argv[1:3]
    QUIRE_ARCHIVE = load_package()
    unittest.main(argv=sys.argv[:1], defaultTest=None if WHOLE else "SmokeTest")
