#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the parts of an archive as tasks of Spark, and joins them.

usage: spark-submit --conf spark.task.cpus=2 spark_parts.py DIRECTORY
DIRECTORY, which all nodes see, has like.quire and lists/ (see README.md). quired is in the
PATH of all nodes, and build_part.sh in DIRECTORY.
"""
import pathlib
import subprocess
import sys

from pyspark.sql import SparkSession


def build(directory, name):
    subprocess.run([directory / "build_part.sh", directory / "like.quire",
                    directory / "lists" / name, directory / "parts"], check=True)


def main():
    directory = pathlib.Path(sys.argv[1]).resolve()
    (directory / "parts").mkdir(exist_ok=True)
    names = sorted(path.name for path in (directory / "lists").iterdir())
    context = SparkSession.builder.appName("quire-parts").getOrCreate().sparkContext
    # Spark repeats a failed task three times (spark.task.maxFailures).
    context.parallelize(names, len(names)).foreach(lambda name: build(directory, name))
    subprocess.run(["quired", "join", "-o", directory / "all.quire",
                    *(directory / "parts" / f"{name}.quire" for name in names)], check=True)


if __name__ == "__main__":
    main()
