#!/usr/bin/env bash
# `pragma incremental_vacuum(1000)` gives back up to a thousand free pages of a SQLite file. Asked
# by SQLAlchemy 2.1.9, or by Python's own sqlite3 below it, it gives back one, without an error,
# even if all of its rows are fetched: the module takes one step of a statement that has no
# columns, and here each step is a page. A loop of a thousand such pragmas does what one says.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sqlalchemy==2.1.9
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import platform
import sqlite3
import sys

import sqlalchemy as sa

print("SQLAlchemy", sa.__version__, "Python", platform.python_version(), sqlite3.sqlite_version)
engine = sa.create_engine(f"sqlite:///{sys.argv[1]}/rows.db")


def free(connection):
    return connection.exec_driver_sql("pragma freelist_count").scalar_one()


with engine.connect() as connection:
    connection.exec_driver_sql("pragma auto_vacuum=incremental")
    connection.exec_driver_sql("create table rows (text varchar)")
    rows = [{"text": "x" * 1000}] * 20_000
    connection.execute(sa.text("insert into rows values (:text)"), rows)
    connection.commit()
    connection.exec_driver_sql("delete from rows")
    connection.commit()
    driver = connection.connection.driver_connection
    seen = [free(connection)]
    connection.exec_driver_sql("pragma incremental_vacuum(1000)").close()
    seen.append(free(connection))
    driver.execute("pragma incremental_vacuum(1000)").fetchall()
    seen.append(free(connection))
    for _ in range(1000):
        driver.execute("pragma incremental_vacuum(1)")
    seen.append(free(connection))
    connection.commit()

given_back = [before - after for before, after in zip(seen, seen[1:])]
print("pages that were free:", seen[0])
print("given back by SQLAlchemy, by sqlite3, by a thousand pragmas:", given_back)
sys.exit(given_back != [1, 1, 1000])
PYTHON
