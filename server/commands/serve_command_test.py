#!/usr/bin/python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests `quired serve` from the command line: messages, refusals, signals, configuration."""
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.parse
import urllib.request

from served_case import (PATIENCE_S, PROGRAMS, ServedCase, await_text, launch, metrics_url, run,
                         start)

STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
METRICS = pathlib.Path(__file__).parent.parent / "service" / "metrics" / "METRICS.md"

class ServeTest(ServedCase):
    def start(self, *arguments):
        """Returns the server and its messages until it listened."""
        return start(self, *arguments)

    def test_says_what_it_holds_and_drains(self):
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--memory", "300MiB")
        for part in ("memory: 300 MiB", "archive docs", "block cache", "reads through", " of 1 file\n"):
            self.assertIn(part, said)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)
        self.assertIn("stopped", server.stderr.read())

    def many(self, count):
        """Returns arguments that serve `count` copies of the archive."""
        paths = [self.directory / f"copy{i:03}.quire" for i in range(count)]
        for path in paths:
            if not path.exists():
                shutil.copytree(self.archive, path)
        return paths

    def test_opens_many_archives_and_reloads_them(self):
        server, said = self.start(*self.many(200), "--listen", "127.0.0.1:0")
        address = said.split()[-1]
        self.assertRegex(said, rf"^{STAMP} info reachable on {address}, opening 200 archives\n")
        self.assertIn("195 other archives", said)
        server.send_signal(signal.SIGHUP)
        for line in server.stderr:
            if "SIGHUP" not in line:
                self.assertIn(" info 200 archives: unchanged;", line)
                break
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_listens_when_the_archives_are_open(self):
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--listen-when-open")
        address = said.split()[-1]
        self.assertRegex(said, rf"^{STAMP} info not yet reachable on {address}, opening 1 archive\n")
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_stops_while_it_opens(self):
        for signal_number, *options in ((signal.SIGTERM,), (signal.SIGINT,),
                                        (signal.SIGTERM, "--listen-when-open")):
            server = launch(self, *self.many(200), "--listen", "127.0.0.1:0", *options)
            self.assertIn("opening 200 archives", server.stderr.readline())
            server.send_signal(signal_number)
            self.assertEqual(server.wait(PATIENCE_S), 0)
            self.assertTrue(server.stderr.read().endswith("stopped\n"))

    def test_reloads_after_a_signal_during_the_start(self):
        server = launch(self, *self.many(200), "--listen", "127.0.0.1:0")
        self.assertIn("opening 200 archives", server.stderr.readline())
        server.send_signal(signal.SIGHUP)
        said = await_text(self, server, "unchanged")
        self.assertRegex(said, r"(?s)listening on .*200 archives: unchanged;.*\n$")

    def test_logs_in_lines_of_json(self):
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--log-format", "json")
        for line in said.splitlines():
            message = json.loads(line)
            self.assertEqual(list(message), ["time", "level", "message"])
            self.assertRegex(message["time"], rf"^{STAMP}$")
            self.assertEqual(message["level"], "info")
        self.assertIn("listening on", message["message"])

    def test_logs_from_a_level_on(self):
        archive = self.directory / "truncated.quire"
        shutil.copytree(self.archive, archive)
        os.truncate(archive / "segment-00000000", 100)
        refused = run("quired", "serve", archive, "--listen", "127.0.0.1:0", "--log-level", "error")
        self.assertRegex(refused.stderr, rf"^{STAMP} error .*truncated.quire.*\n$")

    def test_writes_an_access_log_and_lets_it_be_rotated(self):
        log = self.directory / "access.log"
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--access-log", log,
                                  "--access-log-documents", "plain")
        address = said.split()[-1]
        for file in (log, log):
            self.assertEqual(run("quire", "--server", address, "archives").returncode, 0)
            lines = self.await_lines(file)
            self.assertEqual(lines[-1]["code"], "OK")
            self.assertEqual(lines[-1]["address"], "ipv4:127.0.0.1")
            self.assertEqual(lines[-1]["method"], "ListArchives")
            log.rename(f"{log}.1")
            server.send_signal(signal.SIGHUP)
            await_text(self, server, "access log: reopened")
            self.assertTrue(log.exists())
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def await_lines(self, file):
        """Waits for lines of JSON: the server writes them several times per second."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            text = file.read_text()
            if text.endswith("\n"):
                return [json.loads(line) for line in text.splitlines()]
            time.sleep(0.02)
        self.fail(f"nothing was written to {file}")

    def test_says_which_archive_cannot_be_opened(self):
        damaged = self.directory / "unreadable.quire"
        shutil.copytree(self.archive, damaged)
        segment = damaged / "segment-00000000"
        data = bytearray(segment.read_bytes())
        data[-100] ^= 1  # In the footer: the sizes stay as the manifest has them.
        segment.write_bytes(data)
        refused = run("quired", "serve", *self.many(20), damaged, "--listen", "127.0.0.1:0")
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn("unreadable.quire/segment-00000000", refused.stderr.splitlines()[-1])

    def test_goes_on_when_nobody_reads_what_it_says(self):
        server, _ = self.start(self.archive, "--listen", "127.0.0.1:0")
        server.stderr.close()
        server.send_signal(signal.SIGHUP)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_serves_metrics_and_reloads(self):
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--metrics",
                                  "127.0.0.1:0", "--memory", "512MiB")
        url = metrics_url(said)
        server.send_signal(signal.SIGHUP)
        self.assertIn("unchanged", await_text(self, server, "archive docs").splitlines()[-1])
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            metrics = answer.read().decode()
        for sample in ('quire_reloads_total{outcome="succeeded"} 0', "quire_build_info{",
                       'quire_archive_memory_bytes{archive="docs",part="block_index"}',
                       "quire_cache_hits_total 0", "quire_block_failures_total 0",
                       "quire_queued_fetches 0", "quire_last_reload_succeeded 1",
                       'quire_archive_info{archive="docs",uuid="',
                       f"quire_memory_limit_bytes {512 << 20}", 'quire_drive_queued_requests{device="',
                       "quire_call_duration_seconds_bucket"):
            self.assertIn(sample, metrics)

    def test_tells_probes_whether_it_is_ready(self):
        def get(address, path, method="GET"):
            request = urllib.request.Request(f"http://{address}{path}", method=method)
            try:
                with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, error.read().decode()

        server, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--admin",
                                  "127.0.0.1:0")
        url = metrics_url(said)
        admin = urllib.parse.urlparse(url).netloc
        self.assertEqual(get(admin, "/healthz"), (200, "alive\n"))
        self.assertEqual(get(admin, "/readyz"), (200, "ready\n"))
        self.assertEqual(get(admin, "/readyz", "HEAD"), (200, ""))
        self.assertIn("quire_build_info{", get(admin, "/metrics")[1])
        for path in "/", "/readyz/more", "/metricsx", "/../etc/passwd":
            self.assertEqual(get(admin, path)[0], 404, path)
        self.assertNotEqual(get(admin, "/metrics", "POST")[0], 200)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_says_on_reload_that_blocks_of_the_same_archive_were_not_checked(self):
        copy = self.directory / "damaged.quire"
        shutil.copytree(self.archive, copy)
        server, _ = self.start(copy, "--listen", "127.0.0.1:0")
        with open(copy / "segment-00000000", "r+b") as segment:
            segment.seek(64)
            segment.write(b"damaged")
        server.send_signal(signal.SIGHUP)
        line = await_text(self, server, "archive damaged").splitlines()[-1]
        self.assertIn("; its blocks were not checked: quired verify does that", line)

    def test_takes_times_in_every_form(self):
        config = self.directory / "times.toml"
        config.write_text('stall-timeout = "1m30s"\n')
        for form in ("10", "10s", "2m", "1h30m", "0.5", "500ms"):
            server, _ = self.start(self.archive, "--listen", "127.0.0.1:0", "--config", config,
                                   "--drain-timeout", form)
            server.send_signal(signal.SIGTERM)
            self.assertEqual(server.wait(PATIENCE_S), 0)
        for bad in ("soon", "-1", "nan", "25h", "10 apples"):
            refused = run("quired", "serve", self.archive, "--drain-timeout", bad)
            self.assertEqual(refused.returncode, 2, bad)
            self.assertIn("--drain-timeout: must be a time from 0 to 24h", refused.stderr)

    def test_starts_and_reloads_while_an_archive_is_replaced(self):
        archive = self.directory / "replaced.quire"
        build = ("build", "--quiet", "--force", "-o", archive, "--segment-size", "20KiB")
        self.assertEqual(run("quired", *build, self.documents).returncode, 0)
        done = threading.Event()

        def replace():
            for i in range(12):
                run("quired", *build, self.documents if i % 2 == 0 else self.documents / "page01")
            done.set()

        replacer = threading.Thread(target=replace)
        replacer.start()
        self.addCleanup(replacer.join)
        while not done.is_set():
            server, _ = self.start(archive, "--listen", "127.0.0.1:0")
            server.send_signal(signal.SIGHUP)
            line = await_text(self, server, "archive replaced").splitlines()[-1]
            self.assertNotIn("stays unchanged", line)
            server.kill()
            server.wait(PATIENCE_S)

    def test_exports_the_metrics_that_are_documented(self):
        _, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0",
                             "--scrub-interval", "1h")
        url = metrics_url(said)
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
            lines = answer.read().decode().splitlines()
        types = dict(line.split()[2:4] for line in lines if line.startswith("# TYPE quire_"))
        labels = {name: set() for name in types}
        for line in lines:
            sample = re.match(r"(quire_\w+)(?:{(.*)})? ", line)
            if sample:
                name = sample[1] if sample[1] in types else sample[1].rpartition("_")[0]
                labels[name].update(re.findall(r'(\w+)="', sample[2] or ""))
        exported = {(name, types[name], frozenset(labels[name] - {"le"})) for name in types}
        rows = re.findall(r"^\| `(\w+)` \| (\w+) \|([^|]*)\|", METRICS.read_text(), re.MULTILINE)
        documented = {(name, kind, frozenset(re.findall(r"\w+", names)))
                      for name, kind, names in rows
                      # remote_archive_test.py has the others.
                      if not name.startswith("quire_store_")}
        self.assertEqual(documented, exported)
        self.assertEqual(len(rows), len({name for name, _, _ in rows}))
        of_process = {line.split()[2] for line in lines if line.startswith("# TYPE process_")}
        self.assertEqual(set(re.findall(r"`(process_\w+)`", METRICS.read_text())), of_process)

    def test_says_which_port_is_taken(self):
        _, said = self.start(self.archive, "--listen", "127.0.0.1:0")
        taken = said.split()[-1]
        for arguments, message in [
                (["--listen", taken], f"cannot listen on {taken}: the port is in use"),
                (["--listen", "127.0.0.1:0", "--metrics", taken],
                 f"cannot serve metrics on {taken}: the port is in use; choose another address with "
                 "--admin or --metrics")]:
            with self.subTest(arguments=arguments):
                refused = run("quired", "serve", self.archive, *arguments)
                self.assertIn(message, refused.stderr)
                self.assertEqual(refused.returncode, 1)

    def test_takes_its_options_from_a_file(self):
        config = self.directory / "serve.toml"
        config.write_text(f'listen = "127.0.0.1:0"\nmemory = "310MiB"\n'
                          f'archive = ["first={self.archive}", "second={self.archive}"]\n')
        _, said = self.start("--config", config)
        self.assertIn("memory: 310 MiB", said)
        self.assertIn("archive first", said)
        self.assertIn("archive second", said)
        _, said = self.start("--config", config, "--memory", "320MiB")
        self.assertIn("memory: 320 MiB", said)

    def test_takes_its_options_from_tables_environment_and_flags(self):
        config = self.directory / "tables.toml"
        config.write_text('memory = "310MiB"\n'
                          '[archives]\nfirst = "docs.quire"\n'
                          '[drain]\ntimeout = 7\n')
        self.assertEqual(self.archive, self.directory / "docs.quire")
        with unittest.mock.patch.dict(os.environ, {
                "QUIRED_CONFIG": str(config), "QUIRED_MEMORY": "320MiB",
                "QUIRED_LISTEN": "127.0.0.1:0", "QUIRED_DRAIN_TIMEOUT": "",
                # Set by Kubernetes for a service of that name.
                "QUIRED_PORT": "tcp://10.0.0.1:7420", "QUIRED_SERVICE_HOST": "10.0.0.1",
                "QUIRED_MEMROY": "1GiB"}):
            server, said = self.start()
            self.assertIn(" warning environment variable QUIRED_MEMROY is ignored: no option has "
                          "this name; did you mean QUIRED_MEMORY?\n", said)
            self.assertEqual(said.count("environment variable"), 1, said)
            self.assertIn("memory: 320 MiB", said)
            self.assertIn("archive first", said)
            server.send_signal(signal.SIGTERM)
            self.assertIn("have 7s to end", server.stderr.read())
            _, said = self.start("--memory", "330MiB")
            self.assertIn("memory: 330 MiB", said)
        with unittest.mock.patch.dict(os.environ, {"QUIRED_STORE_REQUESTS": "many"}):
            refused = run("quired", "serve", self.archive)
            self.assertIn("QUIRED_STORE_REQUESTS: ", refused.stderr)
        both = {"QUIRED_ADMIN": "127.0.0.1:0", "QUIRED_METRICS": "127.0.0.1:0"}
        with unittest.mock.patch.dict(os.environ, both):
            refused = run("quired", "serve", self.archive)
            self.assertIn("QUIRED_METRICS: is another name of QUIRED_ADMIN; set one of them",
                          refused.stderr)
            self.assertEqual(refused.returncode, 2)

    def test_chooses_its_memory(self):
        _, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--memory", "auto")
        self.assertRegex(said, r"info --memory auto: [\d.]+ [MGT]iB, (7/8|half) of ")

    def test_checks_a_configuration(self):
        config = self.directory / "checked.toml"
        good = ('memory = "auto"\naccess-log = "access.log"\narchive = ["docs.quire"]\n'
                '[log]\nformat = "json"\n[archives]\nmore = "docs.quire"\n')
        config.write_text(good)
        checked = run("quired", "check-config", config)
        self.assertEqual((checked.stdout, checked.stderr, checked.returncode),
                         (f"{config}: good\n", "", 0))
        # Each line of the bad part, with its message.
        lines = [("lisen = 1", 'unknown key "lisen"'),
                 ('listen = ""', '"listen" is empty'),
                 ("drain-delay = true", '"drain-delay" must be text or a number'),
                 ("store-requests = 0", "--store-requests: "),
                 ('drive = ["rotational", "auto"]', '"drive" takes one value, not 2'),
                 ('[experiment]\nengine = "magic"', "magic"),
                 ('access = "absent"', 'absent" cannot be read'),
                 ('access-log = "no/such/log"', "is not a writable directory"),
                 ("archive = []", '"archive" is empty'),
                 ('archives = ["a.quire"]', "archives must be a table: [archives]"),
                 ("memory = 1GiB", "must be in quotes"),
                 ('[archives]\nlog-level = "info"', "an option must stand above [archives]"),
                 ('[tsl]\ncert = "a"', 'unknown table "tsl"'),
                 ("[tls.more]\na = 1", "a table within a table is unknown"),
                 ('[tls]\ncertificate = "a"', 'unknown key "tls-certificate"'),
                 ('memory = "1GiB"\nmemory = "2GiB"', "memory"),
                 ("= 1", "")]
        for text, reason in lines:
            with self.subTest(text):
                config.write_text("# first\n" + text + "\n")
                checked = run("quired", "check-config", config)
                self.assertEqual(checked.returncode, 2)
                self.assertRegex(checked.stderr, rf"^quired: {re.escape(str(config))}:[23]: ")
                self.assertIn(reason, checked.stderr)
        config.write_text("\n".join(text for text, _ in lines[:4]))
        checked = run("quired", "check-config", config)
        # All of them, not only the first.
        self.assertEqual(len(checked.stderr.splitlines()), 4, checked.stderr)
        config.write_text('archive = "docs.quire"\n[tls]\ncert = "docs.quire"\n')
        self.assertIn("must be given together", run("quired", "check-config", config).stderr)
        config.write_text('metrics = "127.0.0.1:1"\nadmin = "127.0.0.1:2"\n')
        self.assertIn("is set twice", run("quired", "check-config", config).stderr)
        # All faults that serve would find, together.
        (self.directory / "bad.access").write_text("reader\n")
        faults = {'listen = "7420"': '"7420" is not a listen address',
                  'admin = "127.0.0.1:99999"': "is not an address for metrics",
                  'access = "bad.access"': "line 1: must be token ID",
                  '[tls]\ncert = "bad.access"\nkey = "bad.access"': "must hold a certificate",
                  }
        config.write_text('archive = "docs.quire"\nmemory = "1MiB"\n' + "\n".join(faults))
        checked = run("quired", "check-config", config)
        self.assertEqual(checked.returncode, 2)
        for reason in (*faults.values(), "are needed"):
            self.assertIn(reason, checked.stderr)
        self.assertEqual(len(checked.stderr.splitlines()), 5, checked.stderr)
        self.assertIn("absent.toml", run("quired", "check-config", self.directory / "absent.toml").stderr)

    def test_reads_with_each_codec_in_the_least_memory(self):
        mixed = self.directory / "mixed"
        mixed.mkdir()
        text = b"".join(b"line %d of a member\n" % (i * i) for i in range(3000))
        (mixed / "member.gz").write_bytes(gzip.compress(text, 6, mtime=0))
        (mixed / "text").write_bytes(text)
        codecs = re.findall(r"^  (\S+) +\S", run("quired", "build", "--help-all").stdout.split("\nCodecs:\n")[1], re.M)
        self.assertIn("rlz-zz", codecs)
        for codec in codecs:
            with self.subTest(codec):
                archive = self.directory / f"{codec}.quire"
                built = run("quired", "build", "--quiet", "--codec", codec, "--inflate", "auto",
                            "--block-size", "1MiB", "-o", archive, mixed)
                self.assertEqual(built.returncode, 0, built.stderr)
                here = [archive, "--listen", "127.0.0.1:0"]
                refused = run("quired", "serve", *here, "--memory", "1MiB").stderr
                needed = re.search(r"is too little: ([\d.]+) MiB are needed", refused)
                # The message has three digits.
                server, said = self.start(*here, "--memory", f"{float(needed.group(1)) + 1}MiB")
                for document in "member.gz", "text":
                    read = subprocess.run(
                        [PROGRAMS / "quire", "--server", said.split()[-1], "get", codec, document],
                        stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
                    self.assertEqual(read.returncode, 0, read.stderr)
                    self.assertEqual(read.stdout, (mixed / document).read_bytes())
                server.send_signal(signal.SIGTERM)
                self.assertEqual(server.wait(PATIENCE_S), 0)

    def test_serves_from_a_modelled_drive(self):
        server, said = self.start(self.archive, "--listen", "127.0.0.1:0",
                                  "--config", self.experiment('device-model = "table1-ssd"'))
        self.assertIn("drive modelled: solid-state, reads through model:table1-ssd", said)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(server.wait(PATIENCE_S), 0)

    def experiment(self, key):
        config = self.directory / "experiment.toml"
        config.write_text(f"[experiment]\n{key}\n")
        return config

    def test_experiments_are_no_options_of_the_command_line(self):
        self.assertNotIn("experiment", run("quired", "serve", "--help").stdout)
        refused = run("quired", "serve", self.archive, "--experiment-engine", "pread")
        self.assertIn('unknown option "--experiment-engine"', refused.stderr)
        with unittest.mock.patch.dict(os.environ, {"QUIRED_EXPERIMENT_ENGINE": "pread"}):
            _, said = self.start(self.archive, "--listen", "127.0.0.1:0")
            self.assertIn("reads through pread", said)

    def test_ignores_removed_options_and_names_them(self):
        config = self.directory / "old.toml"
        config.write_text('range-decode = "whole"\ndevice-depth = 7\narchive = "docs.quire"\n')
        checked = run("quired", "check-config", config)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        self.assertIn(f"warning: {config}: --range-decode is ignored, and will be unknown to the "
                      "next release: ", checked.stderr)
        with unittest.mock.patch.dict(os.environ, {"QUIRED_DECODE_THREADS": "3"}):
            server, said = self.start("--listen", "127.0.0.1:0", "--config", config,
                                      "--engine", "magic", "--slow-call-log", "1s")
        for name in "range-decode", "device-depth", "decode-threads", "engine", "slow-call-log":
            self.assertRegex(said, f" warning --{name} is ignored")
        self.assertIn("set it in the table [experiment] of the configuration file", said)
        # A reload names those of the file, which need no restart.
        config.write_text('connection-age-grace = "1s"\narchive = "docs.quire"\n')
        server.send_signal(signal.SIGHUP)
        said = await_text(self, server, "unchanged")
        self.assertIn(" warning --connection-age-grace is ignored", said)
        self.assertNotIn("needs a restart", said)
        self.assertNotIn("--engine", said)

    def test_is_told_what_the_drive_is(self):
        for kind in "rotational", "solid-state":
            _, said = self.start(self.archive, "--listen", "127.0.0.1:0", "--drive", kind)
            self.assertIn(f": {kind}, reads through", said)

    def test_reads_past_the_page_cache_or_says_why_not(self):
        here = ["--listen", "127.0.0.1:0"]
        _, said = self.start(self.archive, *here)
        self.assertNotIn("page cache", said)
        _, said = self.start(self.archive, *here, "--direct-io", "auto")
        self.assertIn("past the page cache (O_DIRECT)", said)
        if "is read through the page cache: " in said:
            refused = run("quired", "serve", self.archive, *here, "--direct-io", "on")
            self.assertIn("O_DIRECT", refused.stderr)
            self.assertEqual(refused.returncode, 1, refused.stderr)
        else:
            self.start(self.archive, *here, "--direct-io", "on")

    def test_refuses_with_the_reason(self):
        bad = self.directory / "bad.toml"
        bad.write_text('lisen = "127.0.0.1:0"\n')
        worse = self.directory / "worse.toml"
        worse.write_text('[experiment]\ndevice-depth = "many"\n')
        here = ["--listen", "127.0.0.1:0"]
        for arguments, code, reason in [
                ([], 2, "at least one archive must be given"),
                ([self.directory / "absent"], 1, "absent"),
                ([self.directory / "documents"], 1, "is no archive"),
                (["--archives-dir", self.archive], 2, "is itself an archive; serve it by name"),
                ([self.archive, *here, "--withdrawn", "absent"], 1, "--withdrawn: absent: cannot be read"),
                ([self.archive, self.archive], 2, "two archives"),
                ([f"a b={self.archive}"], 2, "cannot be an archive's name"),
                ([self.archive, *here, "--quota", "calls=0"], 2, "--quota: calls must be a number"),
                ([self.archive, *here, "--quota", "size=1"], 2, "--quota: a quota must be one or"),
                ([self.archive, *here, "--access-log", "/no/such/directory/log"], 1,
                 "/no/such/directory/log: cannot open as the access log: No such file"),
                ([self.archive, *here, "--log-format", "xml"], 2, "--log-format: xml not in"),
                ([self.archive, "--listen", "7420"], 2, "not a listen address"),
                ([self.archive, "--listen", "203.0.113.1:7420"], 1,
                 "cannot listen on 203.0.113.1:7420: this machine has no such address; choose"),
                ([self.archive, *here, "--metrics", "203.0.113.1:1"], 1,
                 "cannot serve metrics on 203.0.113.1:1: this machine has no such address; choose"),
                ([self.archive, *here, "--metrics", "7421"], 2, "not an address for metrics"),
                ([self.archive, *here, "--memory", "1MiB"], 1, "are needed"),
                ([self.archive, *here, "--memory", "lots"], 2,
                 '--memory: a size must be a number of bytes, or one with a unit, like 64KiB, 16MiB or 1.5GiB, got "lots"'),
                ([self.archive, *here, "--drive", "magic"], 2, "magic"),
                ([self.archive, "--config", self.directory / "none.toml"], 2, "none.toml"),
                ([self.archive, "--config", bad], 2, "bad.toml:1: unknown key \"lisen\"; quired serve --help"),
                ([self.archive, "--config", worse], 2, "device-depth"),
                ([self.archive, "--config", self.experiment('device-model = "floppy"')], 2,
                 "wd-red")]:
            with self.subTest(arguments=arguments):
                refused = run("quired", "serve", *arguments)
                self.assertIn(reason, refused.stderr)
                self.assertEqual(refused.returncode, code, refused.stderr)


if __name__ == "__main__":
    unittest.main()
