"""Makes rates and grids from the plain export once more, with pandas, and compares."""

import numpy
import pandas

STEP = 50_000_000
KEYS = {"node": [], "process": ["pid", "started"]}


def read(directory, table):
    return pandas.read_parquet(f"{directory}/{table}.parquet")


def kinds(table):
    import pyarrow.parquet

    schema = pyarrow.parquet.read_schema(f"plain/{table}.parquet")
    kind = {field.name: (field.metadata or {}).get(b"kind") for field in schema}
    words = [field.name for field in schema if str(field.type).startswith("dictionary")]
    counters = [name for name in kind if kind[name] == b"counter"]
    gauges = [name for name in kind if kind[name] == b"gauge" and name not in words]
    return counters, gauges, words


def entities(frame, table):
    return frame.groupby(KEYS[table], sort=False) if KEYS[table] else [((), frame)]


def check_rates(table):
    plain, rates = read("plain", table), read("rates", table)
    counters, gauges, words = kinds(table)
    pandas.testing.assert_frame_equal(
        plain[["time", *KEYS[table], *gauges, *words]], rates[["time", *KEYS[table], *gauges, *words]]
    )
    for _, rows in entities(plain, table):
        for counter in counters:
            known = rows[["time", counter]].dropna()
            seconds = known["time"].astype("int64").diff() / 1e9
            expected = known[counter].astype(float).diff() / seconds
            found = rates.loc[rows.index, f"{counter}_per_second"]
            numpy.testing.assert_allclose(found.loc[known.index], expected, rtol=1e-9)
            assert found.drop(known.index).isna().all()


def held(rows, column, begin, end):
    """The time-weighted mean of a value that holds until the next one is read."""
    known = rows[["time", column]].dropna()
    times = known["time"].astype("int64").to_numpy()
    values = known[column].astype(float).to_numpy()
    ends = numpy.append(times[1:], end)
    weights = (numpy.minimum(ends, end) - numpy.maximum(times, begin)).clip(0)
    return (values * weights).sum() / weights.sum() if weights.sum() > 0 else None


def check_grid(table, directory, rates):
    plain, grid = read("plain", table), read(directory, table)
    counters, gauges, words = kinds(table)
    checked = 0
    groups = dict(list(entities(plain, table)))
    for key, steps in entities(grid, table):
        rows = groups[key]
        times = rows["time"].astype("int64")
        # The step in which somebody begins or ends is covered in part: those inside are whole.
        for _, step in steps.iloc[1:-1].iterrows():
            begin = step["time"].value
            end = begin + STEP
            so_far = rows[times < end]
            for gauge in gauges:
                expected = held(so_far, gauge, begin, end)
                if expected is not None:
                    numpy.testing.assert_allclose(step[gauge], expected, rtol=1e-9)
                    checked += 1
            for counter in counters:
                known = so_far[["time", counter]].dropna()
                before = known[known["time"].astype("int64") < begin][counter]
                if known.empty or before.empty:
                    continue
                if rates:
                    growth = float(known[counter].iloc[-1]) - float(before.iloc[-1])
                    numpy.testing.assert_allclose(
                        step[f"{counter}_per_second"], growth / (STEP / 1e9), rtol=1e-6, atol=1e-9
                    )
                else:
                    assert step[counter] == float(known[counter].iloc[-1])
                checked += 1
            for word in words:
                known = so_far[word].dropna()
                assert known.empty or step[word] == known.iloc[-1]
    assert checked > 20, f"only {checked} values of {table} in {directory}"


for table in KEYS:
    check_rates(table)
    check_grid(table, "grid", rates=False)
    check_grid(table, "both", rates=True)
print("rates, grid and both agree")
