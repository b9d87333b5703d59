# SPDX-License-Identifier: Apache-2.0
"""Two network namespaces joined by a link of a given rate.

Needs root, `ip` and `tc` (Debian: iproute2). Everything created has the number of this
process in its name and is removed when the context ends, however it ends; the next
process removes leftovers of a killed one.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

PREFIX = "quire-wire-"
ADDRESSES = {"server": "10.213.7.1", "client": "10.213.7.2"}
# Rates in tc's notation; None: no link, both ends on one loopback interface.
LINKS = {"100mbit": "100mbit", "1gbit": "1gbit", "loopback": None}


def fault():
    """Returns why namespaces cannot be created here, for people; None if they can."""
    missing = [tool for tool in ("ip", "tc", "setpriv") if not shutil.which(tool, path=PATH)]
    if missing:
        return (f"{' and '.join(missing)} not found; deploy/bootstrap.sh installs what is needed "
                "(Debian: iproute2, util-linux)")
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    return None


PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def run(*words, check=True):
    result = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            check=False, env={**os.environ, "PATH": PATH}, timeout=30)
    if check and result.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {result.stdout.strip()}")
    return result.stdout


def remove_stale():
    """Removes namespaces whose processes have ended."""
    for name in re.findall(rf"^{PREFIX}(\d+)-\w+", run("ip", "netns", "list"), re.MULTILINE):
        if not pathlib.Path(f"/proc/{name}").exists():
            for end in ADDRESSES:
                run("ip", "netns", "del", f"{PREFIX}{name}-{end}", check=False)


class WireLink:
    """A context manager; `host` is the server's address in it."""

    def __init__(self, link):
        self.rate = LINKS[link]
        self.host = ADDRESSES["server"] if self.rate else "127.0.0.1"
        self.names = {end: f"{PREFIX}{os.getpid()}-{end}" for end in ADDRESSES}
        self.interfaces = {end: f"qw{os.getpid()}{end[0]}" for end in ADDRESSES}

    def command(self, end):
        """Returns the prefix of a command that runs at that end; it ends with this process."""
        name = self.names[end if self.rate else "server"]
        return ["setpriv", "--pdeathsig", "KILL", "ip", "netns", "exec", name]

    def received_bytes(self):
        """Returns the bytes of the client's interface so far, including headers; of
        loopback both directions together."""
        name, interface = ((self.names["client"], self.interfaces["client"]) if self.rate
                           else (self.names["server"], "lo"))
        text = run("ip", "netns", "exec", name, "cat", "/proc/net/dev")
        return int(re.search(rf"{interface}:\s*(\d+)", text).group(1))

    def __enter__(self):
        # Signals that would end the process at once end the context first.
        self._handler = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        remove_stale()
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def _make(self):
        for name in self.names.values():
            run("ip", "netns", "add", name)
            run("ip", "netns", "exec", name, "ip", "link", "set", "lo", "up")
        if self.rate is None:
            return
        ends = list(ADDRESSES)
        run("ip", "link", "add", self.interfaces[ends[0]], "netns", self.names[ends[0]], "type",
            "veth", "peer", "name", self.interfaces[ends[1]], "netns", self.names[ends[1]])
        for end in ends:
            inside = ("ip", "netns", "exec", self.names[end])
            device = self.interfaces[end]
            run(*inside, "ip", "addr", "add", f"{ADDRESSES[end]}/30", "dev", device)
            run(*inside, "ip", "link", "set", device, "up")
            # The bucket must hold the kernel's bursts, up to 64 KiB.
            run(*inside, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", self.rate,
                "burst", "256kb", "latency", "50ms")

    def _remove(self):
        for name in self.names.values():
            run("ip", "netns", "del", name, check=False)

    def __exit__(self, kind, value, trace):
        self._remove()
        signal.signal(signal.SIGTERM, self._handler)
