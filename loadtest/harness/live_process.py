# SPDX-License-Identifier: Apache-2.0
"""A program that runs until SIGTERM, for tests and benchmarks."""
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

START_SECONDS_MAX = 120
STOP_SECONDS_MAX = 60


class LiveProcess:
    """A program that names its addresses on standard error when it is ready.

    A context manager; on a clean exit it asserts that the program ends with code 0 on
    SIGTERM, unless it has ended.
    """

    def __init__(self, name, command, listening):
        """`listening`: regular expression of the address in the last message of the start."""
        self.name = name
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE,
                                        stdout=subprocess.DEVNULL, text=True)
        self.messages = []
        self.address = None
        self.metrics_url = None
        self._started = threading.Event()
        self._reader = threading.Thread(target=self._read_messages, args=[listening], daemon=True)
        self._reader.start()
        if not self._started.wait(START_SECONDS_MAX) or self.address is None:
            self.process.kill()
            code = self.process.wait()
            raise RuntimeError(f"{name} did not start (exit code {code}):\n" + "".join(self.messages))

    def _read_messages(self, listening):
        for line in self.process.stderr:
            self.messages.append(line)
            if match := re.search(r"metrics on (http://\S+)", line):
                self.metrics_url = match[1]
            match = re.search(listening, line)
            if match and self.address is None:
                self.address = match[1]
                self._started.set()
        self._started.set()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            self.process.kill()
            print("".join([f"{self.name} said:\n", *self.messages[-40:]]), file=sys.stderr)
        elif self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = f"none {STOP_SECONDS_MAX} s after SIGTERM"
        self._reader.join()
        self.process.stderr.close()
        if kind is None and code != 0:
            raise RuntimeError(f"{self.name}: exit code {code}; it said:\n" + "".join(self.messages))

    def _memory(self, field):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{field}:\s+(\d+) kB", status, re.MULTILINE)[1]) * 1024

    def resident_bytes(self):
        return self._memory("VmRSS")

    def resident_peak_bytes(self):
        return self._memory("VmHWM")

    def cpu_seconds(self):
        """Returns the processor time so far, to the nanosecond."""
        # By clock_getcpuclockid(3).
        return time.clock_gettime((~self.process.pid << 3) | 2)
