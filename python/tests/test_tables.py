"""Tables through the Arrow C stream interface."""

import time

import pytest
import weigh


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with weigh.track(output=tmp_path_factory.mktemp("t") / "rec", interval=0.02) as run:
        with run.phase("one"):
            end = time.process_time() + 0.2
            while time.process_time() < end:
                pass
    return run


def test_pyarrow_pandas_polars_and_duckdb_read_the_same_rows(run):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    table = pyarrow.table(run.table("process"))
    assert table.num_rows > 2 and "pid" in table.column_names
    assert len(run.table("process").to_pandas()) == table.num_rows
    assert run.table("process").to_polars().height == table.num_rows
    assert duckdb.from_arrow(table).count("*").fetchall() == [(table.num_rows,)]


def test_table_can_be_read_again(run):
    table = run.table("run")
    assert table.to_pyarrow() == table.to_pyarrow()


def test_every_table_is_readable(run):
    assert {"process", "run", "phases", "own"} <= set(run.tables)
    for name in run.tables:
        assert run.table(name).to_pyarrow().num_rows > 0, name


def test_table_that_is_not_there_is_named(run):
    with pytest.raises(ValueError, match="there is no table nothing"):
        run.table("nothing")


def test_capsule_that_nobody_reads_is_released(run):
    for _ in range(100):
        run.table("process").__arrow_c_stream__()
