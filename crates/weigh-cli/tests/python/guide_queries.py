"""Runs the SQL of the guide in DuckDB, where the dataset `runs.dataset` lies, and has the
other engines read it as one table.

    python guide_queries.py GUIDE
"""

import re
import sys

import datafusion
import duckdb
import polars
import pyarrow.dataset

queries = re.findall(r"```sql\n(.*?)```", open(sys.argv[1]).read(), re.DOTALL)
for query in queries:
    rows = duckdb.sql(query).fetchall()
    assert rows, f"no rows:\n{query}"
    assert any(value is not None for row in rows for value in row), f"only nulls:\n{query}"

for table in ["runs", "process", "phases"]:
    files = f"runs.dataset/{table}/**/*.parquet"
    by_duckdb = duckdb.sql(
        f"SELECT run, host, count(*) FROM read_parquet('{files}', hive_partitioning = true)"
        " GROUP BY run, host ORDER BY run"
    ).fetchall()
    assert len(by_duckdb) == 3, by_duckdb
    frame = polars.scan_parquet(files, hive_partitioning=True).group_by("run", "host").len()
    assert sorted(frame.collect().rows()) == by_duckdb
    session = datafusion.SessionContext()
    partitions = [("run", "string"), ("host", "string")]
    session.register_parquet("t", f"runs.dataset/{table}", table_partition_cols=partitions)
    found = session.sql("SELECT run, host, count(*) AS n FROM t GROUP BY run, host").to_pylist()
    assert sorted((row["run"], row["host"], row["n"]) for row in found) == by_duckdb
    dataset = pyarrow.dataset.dataset(f"runs.dataset/{table}", partitioning="hive")
    assert dataset.count_rows() == sum(rows for _, _, rows in by_duckdb)
print(f"{len(queries)} queries")
