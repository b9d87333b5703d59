# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands that tests kill."""
import subprocess
import sys
import time


def kill_after(command, seconds, path=None):
    """Kills the command after `seconds`, or when `path` appears if that is None. Returns
    False if it ended before; ends the test if it failed by itself."""
    with subprocess.Popen(command) as process:
        if seconds is None:
            while process.poll() is None and not path.exists():
                time.sleep(0)
            process.kill()
        else:
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        if process.returncode not in (0, -9):
            sys.exit(f"the command failed by itself: {process.returncode}")
        return process.returncode != 0
