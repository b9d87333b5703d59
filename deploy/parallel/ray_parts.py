#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of an archive as tasks of Ray, and joins them.

usage: ray_parts.py DIRECTORY [CPUS]
DIRECTORY, which all nodes see, has like.quire and lists/ (see README.md). Each task takes
CPUS, 2 by default. quired is in the PATH of all nodes.
"""
import pathlib
import subprocess
import sys

import ray

HERE = pathlib.Path(__file__).resolve().parent


def build(directory, name):
    subprocess.run([HERE / "build_part.sh", directory / "like.quire",
                    directory / "lists" / name, directory / "parts"], check=True)
    return directory / "parts" / f"{name}.quire"


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    cpus = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    (directory / "parts").mkdir(exist_ok=True)
    names = sorted(path.name for path in (directory / "lists").iterdir())
    ray.init()
    # A part whose node is lost, or whose command fails, is built again.
    task = ray.remote(num_cpus=cpus, max_retries=3, retry_exceptions=True)(build)
    parts = ray.get([task.remote(directory, name) for name in names])
    subprocess.run(["quired", "join", "-o", directory / "all.quire", *parts], check=True)


if __name__ == "__main__":
    main()
