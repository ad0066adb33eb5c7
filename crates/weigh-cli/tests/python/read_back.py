"""Reads every file of an export with the readers people use, and holds each value and type
against the recording itself, which pyarrow reads as an Arrow stream.

    python read_back.py RECORDING EXPORT
"""

import csv
import json
import sqlite3
import sys
from pathlib import Path

import duckdb
import h5py
import openpyxl
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.orc
import pyarrow.parquet

TIME = pyarrow.timestamp("ns", tz="UTC")
WORD = pyarrow.dictionary(pyarrow.uint8(), pyarrow.string())


def same(found, truth, what):
    """Fails on the first difference; NaN is no value here, so it never equals anything."""
    assert len(found) == len(truth), f"{what}: {len(found)} instead of {len(truth)} rows"
    for number, (mine, theirs) in enumerate(zip(found, truth)):
        assert list(mine) == list(theirs), f"{what}, row {number}: {mine} instead of {theirs}"


def plain(table):
    """The rows of an Arrow table as Python values; times as nanoseconds since 1970."""
    columns = []
    for name in table.column_names:
        column = table.column(name)
        if pyarrow.types.is_dictionary(column.type):
            column = column.cast(pyarrow.string())
        if pyarrow.types.is_timestamp(column.type):
            column = column.cast(pyarrow.timestamp("ns", tz="UTC")).cast(pyarrow.int64())
        columns.append(column.to_pylist())
    return list(zip(*columns)) if columns and columns[0] else []


def nanoseconds(text):
    """A moment that is written as text."""
    assert text.endswith("Z") and len(text) == 30, text
    return int(pandas.Timestamp(text).value)


def parsed(text, kind):
    """A field of a CSV file."""
    if text == "" and not pyarrow.types.is_string(kind):
        return None
    if kind == TIME:
        return nanoseconds(text)
    if pyarrow.types.is_integer(kind):
        return int(text)
    return float(text) if pyarrow.types.is_floating(kind) else text


def check_csv(path, truth, rows):
    with open(path, newline="") as file:
        lines = list(csv.reader(file, strict=True))
    assert lines[0] == truth.column_names
    kinds = truth.schema.types
    found = [[parsed(cell, kind) for cell, kind in zip(line, kinds)] for line in lines[1:]]
    # CSV cannot tell a missing text from an empty one.
    texts = [pyarrow.types.is_string(kind) for kind in kinds]
    expected = [[v or "" if t else v for v, t in zip(row, texts)] for row in rows]
    same(found, expected, path)
    assert pandas.read_csv(path).shape == (len(rows), len(truth.column_names))


def from_json(record, truth):
    assert list(record) == truth.column_names
    return [
        nanoseconds(value) if kind == TIME and value is not None else value
        for value, kind in zip(record.values(), truth.schema.types)
    ]


def check_json(path, truth, rows):
    same([from_json(record, truth) for record in json.loads(path.read_text())], rows, path)


def check_jsonl(path, truth, rows):
    lines = path.read_text().splitlines()
    same([from_json(json.loads(line), truth) for line in lines], rows, path)


def check_parquet(path, truth, rows):
    table = pyarrow.parquet.read_table(path)
    assert table.schema.equals(truth.schema), f"{table.schema}\n{truth.schema}"
    for field in truth.schema:
        kept = table.schema.field(field.name).metadata or {}
        assert all(kept.get(key) == value for key, value in (field.metadata or {}).items())
    same(plain(table), rows, path)
    same(plain(polars.read_parquet(path).to_arrow()), rows, f"{path} in polars")
    relation = duckdb.sql(f"SELECT * FROM read_parquet('{path}')")
    kinds = dict(zip(relation.columns, map(str, relation.types)))
    for field in truth.schema:
        expected = {pyarrow.uint64(): "UBIGINT", pyarrow.uint32(): "UINTEGER",
                    pyarrow.int64(): "BIGINT", pyarrow.float64(): "DOUBLE"}.get(field.type)
        assert expected in (None, kinds[field.name]), f"{field} is {kinds[field.name]} in DuckDB"
    same_in_duckdb(relation, truth, rows, path)


def same_in_duckdb(relation, truth, rows, path):
    names = [
        f'epoch_ns("{name}")' if kind == TIME else f'"{name}"'
        for name, kind in zip(truth.column_names, truth.schema.types)
    ]
    found = relation.project(", ".join(names)).fetchall()
    same(found, rows, f"{path} in DuckDB")


def check_feather(path, truth, rows):
    table = pyarrow.feather.read_table(path)
    assert table.schema.equals(truth.schema, check_metadata=True)
    same(plain(table), rows, path)
    same(plain(polars.read_ipc(path).to_arrow()), rows, f"{path} in polars")
    same_in_duckdb(duckdb.from_arrow(table), truth, rows, path)


def check_orc(path, truth, rows):
    table = pyarrow.orc.read_table(path)
    for field in truth.schema:
        kind = table.schema.field(field.name).type
        if pyarrow.types.is_integer(field.type):
            # ORC has no unsigned numbers.
            assert kind == pyarrow.int64(), f"{field}: {kind}"
        elif field.type == TIME:
            assert kind == TIME, f"{field}: {kind}"
        elif field.type == WORD:
            assert kind in (WORD, pyarrow.string()), f"{field}: {kind}"
        else:
            assert kind == field.type, f"{field}: {kind}"
    same(plain(table), rows, path)
    assert pandas.read_orc(path).shape == (len(rows), len(truth.column_names))
    same(plain(polars.from_arrow(table).to_arrow()), rows, f"{path} in polars")
    same_in_duckdb(duckdb.from_arrow(table), truth, rows, path)


def check_pickle(path, truth, rows):
    frame = pandas.read_pickle(path)
    assert list(frame.columns) == truth.column_names
    for field in truth.schema:
        kind = str(frame[field.name].dtype)
        if field.type == TIME:
            assert kind == "datetime64[ns, UTC]", kind
        elif field.type == WORD:
            assert kind == "category", kind
        elif field.type == pyarrow.float64():
            assert kind == "float64", kind
        elif pyarrow.types.is_integer(field.type):
            expected = str(field.type)
            if field.nullable:
                expected = expected.replace("uint", "UInt").replace("int", "Int")
            assert kind == expected, f"{field}: {kind}"
    columns = []
    for field in truth.schema:
        series = frame[field.name]
        if field.type == TIME:
            missing = series.isna()
            values = series.astype("int64", errors="ignore") if not missing.any() else series
            columns.append([None if m else pandas.Timestamp(v).value for m, v in zip(missing, values)])
        else:
            columns.append([None if v is pandas.NA or v is None or v != v else v for v in series])
    same(list(zip(*columns)), rows, path)
    if len(frame):
        # A frame that cannot be changed would be of little use.
        frame.iloc[0, 0] = frame.iloc[0, 0]
        frame[frame.columns[-1]] = None


def in_database(value, kind):
    return nanoseconds(value) if kind == TIME and value is not None else value


def check_sqlite(path, tables):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for name, (truth, rows) in tables.items():
        cursor = connection.execute(f'SELECT * FROM "{name}"')
        assert [column[0] for column in cursor.description] == truth.column_names
        kinds = truth.schema.types
        found = [[in_database(v, k) for v, k in zip(row, kinds)] for row in cursor.fetchall()]
        same(found, rows, f"{path} {name}")
        explained = connection.execute('SELECT count(*) FROM columns WHERE "table" = ?', [name])
        assert explained.fetchone() == (len(truth.column_names),)


def check_xlsx(path, tables):
    workbook = openpyxl.load_workbook(path, read_only=True)
    for name, (truth, rows) in tables.items():
        lines = workbook[name].iter_rows(values_only=True)
        head = list(next(lines))
        assert head[1] == "time_utc" and head[:1] + head[2:] == truth.column_names, head
        found = []
        for line, row in zip(lines, rows, strict=True):
            line = list(line) + [None] * (len(head) - len(line))
            moment, text, *others = line
            assert abs(pandas.Timestamp(moment, tz="UTC").value - nanoseconds(text)) < 1_000_000
            kinds = truth.schema.types[1:]
            for place, kind in enumerate(kinds):
                value = others[place]
                if kind == TIME and value is not None:
                    others[place] = row[place + 1]
                    difference = abs(pandas.Timestamp(value, tz="UTC").value - row[place + 1])
                    assert difference < 1_000_000
                elif kind == pyarrow.string() and value is None and row[place + 1] == "":
                    others[place] = ""
            found.append([nanoseconds(text), *others])
        same(found, rows, f"{path} {name}")


def in_hdf5(value, kind):
    if kind == TIME:
        return value
    if pyarrow.types.is_string(kind) or kind == WORD:
        return (value.decode() if isinstance(value, bytes) else value) or None
    return None if value != value else value.item() if hasattr(value, "item") else value


def check_hdf5(path, tables):
    with h5py.File(path) as file:
        for name, (truth, rows) in tables.items():
            dataset = file[name]
            assert list(dataset.dtype.names) == truth.column_names
            for field in truth.schema:
                kind = dataset.dtype[field.name]
                if field.type == TIME:
                    assert kind == "<i8", f"{field}: {kind}"
                elif pyarrow.types.is_string(field.type):
                    assert kind.kind in "SO", f"{field}: {kind}"
                elif not field.nullable:
                    assert kind == str(field.type), f"{field}: {kind}"
                elif field.type == pyarrow.uint32():
                    assert kind == "<u4", f"{field}: {kind}"
                elif field.type != WORD:
                    assert kind == "<f8", f"{field}: {kind}"
            kinds = truth.schema.types
            found = [[in_hdf5(v, k) for v, k in zip(row, kinds)] for row in dataset[:]]
            expected = [[v or None if isinstance(v, str) else v for v in row] for row in rows]
            expected = [[-(2**63) if v is None and k == TIME else v for v, k in zip(row, kinds)]
                        for row in expected]
            same(found, expected, f"{path} {name}")
    for name, (truth, rows) in tables.items():
        frame = pandas.read_hdf(path, name)
        assert frame.shape == (len(rows), len(truth.column_names)), f"{name}: {frame.shape}"
        assert list(frame.columns) == truth.column_names


ONE_TABLE = {"csv": check_csv, "json": check_json, "jsonl": check_jsonl, "parquet": check_parquet,
             "feather": check_feather, "orc": check_orc, "pkl": check_pickle}
ALL_TABLES = {"sqlite": check_sqlite, "xlsx": check_xlsx, "h5": check_hdf5}


def recorded(recording):
    """What the recording itself holds, scope by scope, without its sequence numbers."""
    tables = {}
    for path in sorted(recording.glob("*/*.arrows")):
        with pyarrow.ipc.open_stream(path) as stream:
            tables[path.stem] = stream.read_all().drop_columns(["seq"])
    return tables


def main():
    recording, export = map(Path, sys.argv[1:])
    truths = recorded(recording)
    # Every machine has these; devices are as many as there are.
    assert set(truths) >= {"node", "cpu", "network", "run", "process", "own"}, set(truths)
    assert any(column.null_count for column in truths["process"].columns), "no nulls to be kept"
    # The table of the run has sums beside what was recorded.
    run = pyarrow.feather.read_table(export / "run.feather")
    assert run.select(truths["run"].column_names).equals(truths["run"])
    assert run["processes_alive"].null_count < len(run)
    truths["run"] = run
    # What happened comes from the events; that it is right is checked there, here that all
    # files agree.
    events = [json.loads(line) for line in (recording / "events.jsonl").read_text().splitlines()]
    for name, event in [("processes", "process_start"), ("phases", "phase_start"), ("marks", "mark")]:
        truths[name] = pyarrow.feather.read_table(export / f"{name}.feather")
        assert len(truths[name]) == sum(e["event"] == event for e in events), name
    tables = {name: (truth, plain(truth)) for name, truth in truths.items()}
    checked = 0
    for name, (truth, rows) in tables.items():
        for extension, check in ONE_TABLE.items():
            check(export / f"{name}.{extension}", truth, rows)
            checked += 1
    for extension, check in ALL_TABLES.items():
        check(export / f"run.{extension}", tables)
        checked += 1
    print(f"{checked} files read back")


main()
