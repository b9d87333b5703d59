#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of this directory, with stand-ins for the schedulers: each must make the
same archive.

QUIRE_BINARY_DIR names the build directory.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

HERE = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ["QUIRE_BINARY_DIR"]) / "bin"
# Only a hang takes this long.
PATIENCE_S = 300
PART_COUNT = 4

# Enough of the modules for the examples.
RAY = """
def init():
    pass
class Task:
    def __init__(self, function):
        self.remote = function
def remote(**options):
    assert options["max_retries"] > 0
    return Task
def get(results):
    return results
"""
SPARK = """
class SparkSession:
    class builder:
        def appName(name):
            return SparkSession.builder
        def getOrCreate():
            return SparkSession
    class sparkContext:
        def parallelize(names, count):
            assert len(names) == count
            return Collection(names)
class Collection:
    def __init__(self, names):
        self.names = names
    def foreach(self, function):
        for name in self.names:
            function(name)
"""


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(prefix="quire-parallel-")))
        words = random.Random(1)
        inputs = []
        for i in range(10):
            inputs.append(self.directory / f"in {i}.txt")
            inputs[-1].write_text(" ".join(f"word{words.randrange(500)}" for _ in range(5000)))
        self.inputs = self.directory / "inputs"
        self.inputs.write_text("".join(f"{path}\n" for path in inputs))
        self.run_example(HERE / "build_all.sh", self.inputs, PART_COUNT, 2, "out")
        self.uuid = self.uuid_of("out/all.quire")

    def run_example(self, *command, directory=None, **environment):
        environment.setdefault("PATH", f"{BIN}:{os.environ['PATH']}")
        subprocess.run([str(word) for word in command], check=True, timeout=PATIENCE_S,
                       cwd=directory or self.directory, stdin=subprocess.DEVNULL,
                       env={**os.environ, **environment})

    def uuid_of(self, archive):
        path = self.directory / archive
        subprocess.run([BIN / "quired", "verify", "--quiet", path], check=True,
                       timeout=PATIENCE_S)
        return json.loads(subprocess.run([BIN / "quired", "inspect", "--json", path], check=True,
                                         timeout=PATIENCE_S, stdout=subprocess.PIPE).stdout)["uuid"]

    def share(self, name):
        """Returns a directory with the dictionary and the lists."""
        shared = self.directory / name
        shutil.copytree(self.directory / "out" / "like.quire", shared / "like.quire")
        shutil.copytree(self.directory / "out" / "lists", shared / "lists")
        shutil.copy(HERE / "build_part.sh", shared)
        (shared / "parts").mkdir()
        self.assertEqual(len(list((shared / "lists").iterdir())), PART_COUNT)
        return shared

    def join(self, shared):
        self.run_example("quired", "join", "-o", shared / "all.quire",
                         *sorted((shared / "parts").glob("*.quire")))
        self.assertEqual(self.uuid_of(shared / "all.quire"), self.uuid)

    def test_repeats_what_is_missing(self):
        parts = self.directory / "out" / "parts"
        kept = (parts / "0001.quire" / "MANIFEST").stat().st_ino
        shutil.rmtree(parts / "0002.quire")
        self.run_example(HERE / "build_all.sh", self.inputs, PART_COUNT, 2, "out")
        self.assertEqual(self.uuid_of("out/all.quire"), self.uuid)
        self.assertEqual((parts / "0001.quire" / "MANIFEST").stat().st_ino, kept)

    def test_fails_without_a_part(self):
        (self.directory / "in 3.txt").unlink()
        shutil.rmtree(self.directory / "out" / "parts")
        (self.directory / "out" / "all.quire").rename(self.directory / "old")
        with self.assertRaises(subprocess.CalledProcessError):
            self.run_example(HERE / "build_all.sh", self.inputs, PART_COUNT, 2, "out")
        self.assertFalse((self.directory / "out" / "all.quire").exists())

    def test_slurm(self):
        shared = self.share("shared")
        shutil.copy(HERE / "build_part.sh", self.directory)
        for index in range(PART_COUNT):
            self.run_example(HERE / "slurm_array.sh", SLURM_ARRAY_TASK_ID=str(index),
                             SLURM_CPUS_PER_TASK="2")
        self.join(shared)

    def test_kubernetes(self):
        job = yaml.safe_load((HERE / "indexed-job.yaml").read_text())["spec"]
        container, = job["template"]["spec"]["containers"]
        self.assertEqual(container["workingDir"], container["volumeMounts"][0]["mountPath"])
        self.assertEqual({mount["name"] for mount in container["volumeMounts"]},
                         {volume["name"] for volume in job["template"]["spec"]["volumes"]})
        shared = self.share("build")
        for index in range(PART_COUNT):
            self.run_example(*container["command"], *container["args"], directory=shared,
                             JOB_COMPLETION_INDEX=str(index))
        self.join(shared)

    def test_ray_and_spark(self):
        modules = self.directory / "modules"
        (modules / "pyspark").mkdir(parents=True)
        (modules / "pyspark" / "__init__.py").write_text("")
        (modules / "pyspark" / "sql.py").write_text(SPARK)
        (modules / "ray.py").write_text(RAY)
        for example in "ray_parts.py", "spark_parts.py":
            with self.subTest(example):
                shared = self.share(example)
                self.run_example(sys.executable, HERE / example, shared, PYTHONPATH=str(modules))
                self.assertEqual(self.uuid_of(shared / "all.quire"), self.uuid)


if __name__ == "__main__":
    unittest.main()
