# SPDX-License-Identifier: Apache-2.0
"""nginx for tests, with all its files in one directory: messages, access.log and others."""
import os
import pathlib
import pwd
import shutil
import subprocess
import time

# Only a hang takes this long.
PATIENCE_S = 60
CONFIGURATION = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/messages;
events {{ worker_connections 1000; }}
http {{
  access_log {directory}/access.log;
  client_body_temp_path {directory}/body;
  fastcgi_temp_path {directory}/fastcgi;
  proxy_temp_path {directory}/proxy;
  scgi_temp_path {directory}/scgi;
  uwsgi_temp_path {directory}/uwsgi;
{http}
}}
"""


def nginx_command(directory, http):
    """Returns the command that runs nginx; `http` is for its block of that name."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert nginx, "nginx: deploy/bootstrap.sh installs it"
    path = pathlib.Path(directory) / "nginx.conf"
    path.write_text(CONFIGURATION.format(directory=directory, http=http))
    # Others may not read the directory.
    user = ["-g", f"user {pwd.getpwuid(0).pw_name};"] if os.getuid() == 0 else []
    return [nginx, "-p", directory, "-e", f"{directory}/messages", "-c", path, *user]


def start_nginx(case, directory, http):
    """Runs nginx until the end of a test; returns once it listens."""
    process = subprocess.Popen(nginx_command(directory, http), stderr=subprocess.DEVNULL)
    case.addCleanup(process.wait, PATIENCE_S)
    case.addCleanup(process.terminate)
    messages = pathlib.Path(directory, "messages")
    end = time.monotonic() + PATIENCE_S
    while not pathlib.Path(directory, "nginx.pid").exists():
        case.assertIsNone(process.poll(), messages.exists() and messages.read_text())
        case.assertLess(time.monotonic(), end)
        time.sleep(0.01)
