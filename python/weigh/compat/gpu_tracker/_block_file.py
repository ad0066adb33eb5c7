"""Sub-tracking files: a row where a code block starts, and a row where it stops.

A row is appended by one write, so rows of several processes do not mix. CSV as Python's ``csv``
writes it, or the table ``data`` of an SQLite database.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]

_SQL_TYPES = {int: "INTEGER", float: "FLOAT", str: "VARCHAR"}

#: Files that this process has begun to write.
_begun: set[str] = set()


def check_name(path: str) -> None:
    """Refuses a name that is neither of a CSV file nor of a database."""
    if not path.endswith((".csv", ".sqlite")):
        raise ValueError(
            f'Invalid file name: "{path}". Valid file extensions are ".csv" and ".sqlite".')


def append(path: str, row: Row, overwrite: bool) -> None:
    """Appends a row; the first one of this process creates the file."""
    if path not in _begun:
        if os.path.isfile(path):
            if not overwrite:
                raise FileExistsError(
                    f"File {path} already exists. "
                    "Set overwrite to True to overwrite the existing file.")
            os.remove(path)
        _create(path, row)
        _begun.add(path)
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"The file {path} was removed in the middle of writing data to it.")
    if path.endswith(".csv"):
        _write_line(path, row.values(), os.O_APPEND)
    else:
        marks = ", ".join("?" for _ in row)
        _execute(path, f"INSERT INTO data VALUES ({marks})", tuple(row.values()))


def _create(path: str, row: Row) -> None:
    if path.endswith(".csv"):
        _write_line(path, row.keys(), os.O_CREAT | os.O_EXCL)
        return
    columns = ", ".join(f"{name} {_SQL_TYPES[type(value)]}" for name, value in row.items())
    _execute(path, f"CREATE TABLE data ({columns})", ())


def _write_line(path: str, cells: Iterable[Any], flags: int) -> None:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    file = os.open(path, os.O_WRONLY | flags, 0o666)
    try:
        os.write(file, line.getvalue().encode())
    finally:
        os.close(file)


def _execute(path: str, statement: str, values: tuple[Any, ...]) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute(statement, values)
    finally:
        connection.close()
