# SPDX-License-Identifier: Apache-2.0
"""pandas, pyarrow and DuckDB read tables in an archive through fsspec."""
import pathlib
import tempfile
import unittest

import duckdb
import fsspec
import pandas
import pyarrow.dataset
import pyarrow.parquet

from package_harness import LiveServer, QUIRED, build

ROWS = 5000
FILES = 4


class EcosystemTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        tables = directory / "tables"
        tables.mkdir()
        cls.frames = [pandas.DataFrame({
            "id": range(number * ROWS, (number + 1) * ROWS),
            "text": [f"row {row} of {number}" for row in range(ROWS)]})
            for number in range(FILES)]
        for number, frame in enumerate(cls.frames):
            frame.to_parquet(tables / f"part-{number}.parquet")
            frame.to_csv(tables / f"part-{number}.csv", index=False)
        cls.whole = pandas.concat(cls.frames, ignore_index=True)
        cls.server = cls.enterClassContext(LiveServer(
            QUIRED, [build(directory / "tables.quire", tables)]))
        cls.url = f"quire://{cls.server.address}/tables"
        cls.fs = fsspec.filesystem("quire", server=cls.server.address)

    def test_pandas(self):
        for number, frame in enumerate(self.frames):
            pandas.testing.assert_frame_equal(
                pandas.read_csv(f"{self.url}/part-{number}.csv"), frame)
            pandas.testing.assert_frame_equal(
                pandas.read_parquet(f"{self.url}/part-{number}.parquet"), frame)

    def test_pyarrow(self):
        table = pyarrow.parquet.read_table("tables/part-2.parquet", filesystem=self.fs,
                                           columns=["id"])
        self.assertEqual(table.column("id").to_pylist(), list(self.frames[2]["id"]))
        found = pyarrow.dataset.dataset(
            sorted(self.fs.glob("tables/*.parquet")), filesystem=self.fs).to_table()
        self.assertEqual(found.num_rows, ROWS * FILES)
        self.assertEqual(sorted(found.column("id").to_pylist()), list(range(ROWS * FILES)))

    def test_duckdb(self):
        with duckdb.connect() as database:
            database.register_filesystem(self.fs)
            count, total = database.execute(
                "select count(*), sum(id) from read_parquet('quire://tables/*.parquet')"
            ).fetchone()
        self.assertEqual((count, total), (ROWS * FILES, int(self.whole["id"].sum())))


if __name__ == "__main__":
    unittest.main()
