# SPDX-License-Identifier: Apache-2.0
"""Disk images of some of a directory's files, made without mounting anything."""
import os
import pathlib
import shutil
import subprocess
import tempfile

BLOCK_SIZE = 4096
# A disk keeps its identity when its files change.
IDENTITY = "6c1f2c1e-0d0b-4a3e-9a55-5f1e0c8f4b21"
# Not everybody's PATH has these.
SYSTEM_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def run_tool(name, *words):
    program = shutil.which(name, path=SYSTEM_PATH)
    if program is None:
        raise RuntimeError(f"no {name}; install it: apt-get install e2fsprogs")
    result = subprocess.run([program, *map(str, words)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                            check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{name} failed: {result.stderr.strip()}")


def append_image(files, root, target, work):
    """Appends an ext4 image of `files`, which are below `root`, shrunk to about what they
    need, to the open file `target`; `work` is for intermediate files, some times their size."""
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        tree, image = pathlib.Path(scratch) / "tree", pathlib.Path(scratch) / "image"
        for file in files:
            copy = tree / file.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)
        entries = list(tree.rglob("*"))
        blocks = sum(-(-entry.stat().st_size // BLOCK_SIZE) + 1 for entry in entries)
        # A block more for each file and 4 MiB are room for tables, of which resize2fs takes
        # back what it can: far less of a larger image. No journal, as it would be zeros.
        run_tool("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,^resize_inode",
                 "-b", BLOCK_SIZE, "-m", 0, "-N", len(entries) + 64, "-U", IDENTITY,
                 "-E", f"hash_seed={IDENTITY}", "-d", tree, image, blocks + 1024)
        run_tool("resize2fs", "-f", "-M", image)
        with image.open("rb") as source:
            shutil.copyfileobj(source, target)
