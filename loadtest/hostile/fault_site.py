#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What faults are tried on: an object store, two servers behind HAProxy with the configuration of
deploy/routing, and a gateway. All listen on the loopback only."""
import contextlib
import http.server
import importlib
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "loadtest" / "harness"))
# pylint: disable=wrong-import-position
from bench_setup import AS_IT_IS, build_text_archive
from live_gateway import LiveGateway
from live_server import LiveServer

OBJECT_SERVER = ROOT / "testing" / "storage" / "object_server.py"
CONFIGURATION = ROOT / "deploy" / "routing" / "haproxy.cfg"
ARCHIVES = tuple(f"docs-{number}" for number in range(16))
DOCUMENT_COUNT = 300
# Bytes of each document, which are random, so that the archive is as large.
DOCUMENT_SIZE = 6_000
# Only a hang takes this long.
PATIENCE_S = 60
CREDENTIALS = ("AWS_ACCESS_KEY_ID=AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY=example")


def free_ports(count):
    """Ports that were free a moment ago."""
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [listener.getsockname()[1] for listener in taken]


def load_package(directory):
    """Returns the Python package, from its sources."""
    subprocess.run([ROOT / "client" / "python" / "build_wheel.sh", directory], check=True,
                   stdout=subprocess.DEVNULL)
    (wheel,) = pathlib.Path(directory).glob("quire_archive-*.whl")
    sys.path.insert(0, str(wheel))
    return importlib.import_module("quire_archive")


def stop(process):
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Refusing(http.server.BaseHTTPRequestHandler):
    """A store that accepts no credentials."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        body = b"<Error><Code>InvalidAccessKeyId</Code></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class Site:
    """Programs, archives and the bucket; start() begins each trial."""

    def __init__(self, programs, package, directory):
        self.quired, self.quire, self.quire_http = map(str, programs)
        self.quire_archive = package
        self.directory = pathlib.Path(directory)
        self.bucket = self.directory / "store" / "bucket"
        self.bucket.mkdir(parents=True)
        self.documents = {}
        for seed, name in enumerate(ARCHIVES):
            draw = random.Random(seed)
            documents = [(f"site-{number % 7}/page-{number:04}", draw.randbytes(DOCUMENT_SIZE))
                         for number in range(DOCUMENT_COUNT)]
            documents.sort()
            build_text_archive(self.quired, str(self.directory / name), documents,
                               ["--codec", "zstd", "--block-size", "16KiB", *AS_IT_IS])
            self.documents[name] = documents
            (self.bucket / f"{name}.quire").symlink_to(self.directory / f"{name}.quire")
        help_text = subprocess.run([self.quired, "serve", "--help"], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout
        # Programs of before have no such option.
        self.stale_options = (["--store-stale-max", "1h"] if "--store-stale-max" in help_text
                              else [])
        self._homes = None

    def add_copies(self, count):
        """Returns names of further archives in the bucket, with the contents of others."""
        names = [f"copy-{number:03}" for number in range(count)]
        for number, name in enumerate(names):
            target = ARCHIVES[number % len(ARCHIVES)]
            self.documents[name] = self.documents[target]
            link = self.bucket / f"{name}.quire"
            if not link.exists():
                link.symlink_to(self.directory / f"{target}.quire")
        return names

    def path(self, archive):
        return self.directory / f"{archive}.quire"

    def local(self):
        """Arguments of a server of all archives without a store."""
        return [f"{name}={self.path(name)}" for name in ARCHIVES]

    @contextlib.contextmanager
    def start(self, seconds):
        """Yields a Trial, and ends all that it has started."""
        scratch = self.directory / "trial"
        scratch.mkdir()
        try:
            with contextlib.ExitStack() as stack:
                yield Trial(self, scratch, stack, seconds)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def homes(self):
        """Returns archive -> number of the server that HAProxy selects for it first."""
        if self._homes is None:
            with self.start(0) as trial:
                for number in (1, 2):
                    trial.start_server(number, *self.local())
                trial.start_proxy()
                trial.warm(ARCHIVES)
                calls = {number: server.metrics() for number, server in trial.servers.items()}
            self._homes = {
                name: max((1, 2), key=lambda number, name=name: sum(
                    int(count) for count in re.findall(
                        rf'^quire_archive_calls_total\{{archive="{name}"\}} (\d+)', calls[number],
                        re.MULTILINE)))
                for name in ARCHIVES}
        return self._homes


class Trial:
    """The processes of one fault."""

    def __init__(self, site, scratch, stack, seconds):
        self.site = site
        self.scratch = scratch
        self.stack = stack
        self.seconds = seconds
        self.quire, self.quire_archive = site.quire, site.quire_archive
        self.servers = {}
        ports = free_ports(6)
        self._ports, self._metrics_ports = ports[:2], ports[2:4]
        self.address = f"127.0.0.1:{ports[4]}"
        self._store_port = ports[5]
        self._store = None
        self._refusing = None
        self.gateway_url = None

    # --- The store.

    def start_store(self, delay_ms=0):
        self._store = subprocess.Popen(
            [sys.executable, OBJECT_SERVER, self.site.directory / "store", "--port",
             str(self._store_port), "--delay-ms", str(delay_ms)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.stack.callback(self.kill_store)
        self._store.stdout.readline()

    def kill_store(self):
        if self._store is not None:
            self._store.kill()
            self._store.wait()
            self._store.stdout.close()
            self._store = None

    def refusing_url(self):
        """Address of a store that answers all requests with 403."""
        if self._refusing is None:
            self._refusing = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
            self._refusing.daemon_threads = True
            threading.Thread(target=self._refusing.serve_forever, daemon=True).start()
            self.stack.callback(self._refusing.server_close)
            self.stack.callback(self._refusing.shutdown)
        return f"http://127.0.0.1:{self._refusing.server_address[1]}"

    # --- Servers.

    def remote(self, number, names, *, endpoint=None):
        """Arguments of a server whose archives are in the store, each opened on first use."""
        path = self.scratch / f"archives-{number}"
        path.write_text("".join(f"{name}=s3://bucket/{name}.quire\n" for name in names))
        return ["--archives-list", path, "--store-cache", f"{self.cache(number)}:1GiB",
                "--store-chunk", "16KiB", "--store-endpoint",
                endpoint or f"http://127.0.0.1:{self._store_port}", *self.site.stale_options]

    def cache(self, number):
        path = self.scratch / f"cache-{number}"
        path.mkdir(exist_ok=True)
        return path

    def start_server(self, number, *arguments, prefix=(), memory="256MiB"):
        """Starts server 1 or 2, at the same port each time; `prefix` precedes its command.

        Raises RuntimeError if it does not start.
        """
        server = LiveServer(
            self.site.quired, [], *arguments, "--memory", memory, "--drain-delay", "3s",
            "--drain-timeout", "10s", port=self._ports[number - 1],
            metrics_port=self._metrics_ports[number - 1], command=["env", *CREDENTIALS, *prefix])
        self.servers[number] = server
        self.stack.callback(self.end_server, server)
        return server

    @staticmethod
    def end_server(server):
        """Ends it at once, unless it has ended."""
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(PATIENCE_S)

    def restart_server(self, number, *arguments, until):
        """Restarts a server as a service manager does; returns failed starts."""
        process = self.servers[number].process
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        failed = 0
        while True:
            try:
                self.start_server(number, *arguments)
                return failed
            except RuntimeError:
                failed += 1
            if time.monotonic() > until:
                return failed
            time.sleep(0.5)

    def direct(self, number):
        """Address of a server, past the proxy."""
        return f"127.0.0.1:{self._ports[number - 1]}"

    # --- Between clients and servers.

    def start_proxy(self):
        """Starts HAProxy and the gateway."""
        text = CONFIGURATION.read_text()
        for number, (port, metrics_port) in enumerate(zip(self._ports, self._metrics_ports), 1):
            text = text.replace(f"quire-{number}:7420 port 7421",
                                f"127.0.0.1:{port} port {metrics_port}")
            text = text.replace(f"quire-{number}:7420", f"127.0.0.1:{port}")
        # There are two servers: second attempts at the second one get the id of the first.
        text = re.sub(r"(?m)^ *server quire-3 .*\n", "", text)
        text = re.sub(r"(?m)^( *server .* id) 3$", r"\1 1", text)
        text = text.replace("bind :7430", f"bind {self.address}")
        assert not re.search(r"(?m)^[^#\n]*(quire-\d:|\b74[23]\d\b)", text), (
            f"{CONFIGURATION} has other lines than expected")
        path = self.scratch / "haproxy.cfg"
        path.write_text(text)
        program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
        assert program, "haproxy: deploy/bootstrap.sh installs it"
        process = subprocess.Popen([program, "-db", "-q", "-f", path], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.stack.callback(stop, process)
        end = time.monotonic() + PATIENCE_S
        while True:
            assert process.poll() is None, "haproxy ended"
            assert time.monotonic() < end, "haproxy does not listen"
            try:
                socket.create_connection(("127.0.0.1", int(self.address.rpartition(":")[2])),
                                         5).close()
                break
            except ConnectionRefusedError:
                time.sleep(0.02)
        gateway = LiveGateway(self.site.quire_http, self.address)
        self.stack.callback(stop, gateway.process)
        self.gateway_url = gateway.url

    # --- Before the fault.

    def warm(self, archives, part=1.0, address=None):
        """Reads the first part of each archive, so that the caches have it.

        Twice: calls that find an archive being opened may be answered by the other server.
        """
        with self.quire_archive.connect(address or self.address) as client:
            for name in [*archives, *archives]:
                documents = self.site.documents[name]
                keys = [key for key, _ in documents[:int(part * len(documents))]]
                end = time.monotonic() + PATIENCE_S
                while not self._warm(client[name], keys):
                    assert time.monotonic() < end, f"{name} cannot be read"
                    time.sleep(0.1)

    def _warm(self, archive, keys):
        try:
            return all(answer.error is None for answer in archive.get_many(keys))
        except self.quire_archive.QuireError:
            return False


def own_disk(directory, size):
    """Returns a command's prefix that gives it a small file system at `directory`, which no other
    process sees; None if the machine permits no such thing."""
    share = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-rm"]
    prefix = [*share, "sh", "-c", f'mount -t tmpfs -o size={size} quire "$0" && exec "$@"',
              str(directory)]
    tried = subprocess.run([*prefix, "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False)
    return prefix if tried.returncode == 0 else None


def fill_disk(directory, process, left_bytes):
    """Fills the file system that a process sees at `directory`, up to these bytes."""
    path = pathlib.Path(f"/proc/{process.pid}/root{directory}/filler")
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4 << 10):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
        os.truncate(file.fileno(), file.tell() - left_bytes)


def open_files_max():
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
