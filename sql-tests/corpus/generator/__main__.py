"""Writes the .slt files of this folder's parent: random queries of many shapes with the answers of PostgreSQL 15.

    python3 sql-tests/corpus/generator --port 5432 --user postgres --database test [--only TOPIC] [--out FOLDER]

The database must be empty; its tables are made from tables.slt, and stay. The same seed writes the same files.
A query that PostgreSQL refuses is a fault of its template: such are counted and shown, and not written.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import aggregates  # noqa: E402
import joins  # noqa: E402
import mixed  # noqa: E402
import over  # noqa: E402
import queries  # noqa: E402
import scalars  # noqa: E402
import subqueries  # noqa: E402
from grammar import Grammar  # noqa: E402

CORPUS = pathlib.Path(__file__).parent.parent
SEED = 20261130
# A larger answer says nothing more about a query over tables of a dozen rows.
ROWS_MAX = 30
# One in so many answers may have no rows at all.
EMPTY_SHARE = 12
MARK = "@@@end@@@"


def topics():
    found = {}
    for module in (joins, aggregates, subqueries, over, queries, scalars, mixed):
        found.update(module.TOPICS)
    return found


def candidates(topic, template, count):
    """More different queries than are wanted, for some have too many rows, or none."""
    rng = random.Random(f"{SEED} {topic} {template.__name__}")
    grammar, seen = Grammar(rng), {}
    for _ in range(count * 20):
        seen.setdefault(" ".join(template(grammar).split()), None)
        if len(seen) == count * 2 + 60:
            break
    return list(seen)


class Postgres:
    """psql, one process for each list of queries."""

    def __init__(self, options):
        self.command = ["psql", "-h", options.host, "-p", str(options.port), "-U", options.user, "-d", options.database, "-X", "-q", "-A", "-t",
                        "-F", "\x1f", "-R", "\x1e", "-P", "null=NULL", "-v", "ON_ERROR_STOP=0", "-v", "VERBOSITY=terse"]

    def run(self, queries):
        """For each query its rows, or None with the message."""
        text = "SET statement_timeout = '5s';\n" + "".join(f"{sql};\n\\echo {MARK} :SQLSTATE :LAST_ERROR_MESSAGE\n" for sql in queries)
        done = subprocess.run(self.command, input=text, capture_output=True, text=True, check=False)
        answers, rest = [], done.stdout
        for _ in queries:
            body, _, rest = rest.partition(MARK + " ")
            state, _, rest = rest.partition("\n")
            if state.startswith("00000"):
                answers.append(([row.split("\x1f") for row in body.rstrip("\n").split("\x1e")] if body.strip("\n") or body.count("\n") else [], None))
            else:
                answers.append((None, state))
        return answers


def columns(postgres, queries):
    """The number of columns of each query."""
    text = "".join(f"SELECT * FROM ({sql}) q LIMIT 0 \\gdesc\n\\echo {MARK}\n" for sql in queries)
    done = subprocess.run(postgres.command, input=text, capture_output=True, text=True, check=False)
    return [len([line for line in part.strip("\n").split("\x1e") if line]) for part in done.stdout.split(MARK + "\n")[: len(queries)]]


def is_ordered(sql):
    """Whether the query ends in an ORDER BY of its own."""
    depth = 0
    for token in re.finditer(r"'(?:[^']|'')*'|\(|\)|\bORDER BY\b", sql):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
        elif token[0] == "ORDER BY" and depth == 0:
            return True
    return False


def shown(value):
    return "(empty)" if value == "" else value


def record(sql, rows, width):
    mode = "nosort" if is_ordered(sql) else "rowsort"
    lines = [" ".join(shown(value) for value in row) for row in rows]
    if mode == "rowsort":
        lines.sort()
    return f"query {'T' * width} {mode}\n{sql}\n----\n" + "".join(line + "\n" for line in lines)


def fits(rows):
    """Answers that the format can hold, and that are no longer than they need be."""
    return len(rows) <= ROWS_MAX and all("\n" not in value and value == " ".join(value.split()) for row in rows for value in row)


def write(topic, parts, postgres, out):
    records, refused = [], []
    for template, count in parts:
        made = candidates(topic, template, count)
        taken = empty = 0
        for sql, (rows, why), width in zip(made, postgres.run(made), columns(postgres, made)):
            if rows is None:
                refused.append(f"{why}: {sql}")
            elif taken < count and fits(rows) and (rows or empty * EMPTY_SHARE < count):
                taken += 1
                empty += not rows
                records.append(record(sql, rows, width))
    head = f"# Written by generator/; answers of PostgreSQL 15.\n\ninclude tables.slt\n\n"
    (out / f"{topic}.slt").write_text(head + "\n".join(records), encoding="utf8")
    return len(records), refused


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=5432)
    parser.add_argument("--user", default="postgres")
    parser.add_argument("--database", default="test")
    parser.add_argument("--only")
    parser.add_argument("--out", type=pathlib.Path, default=CORPUS)
    options = parser.parse_args()
    postgres = Postgres(options)
    tables = (CORPUS / "tables.slt").read_text(encoding="utf8")
    statements = re.findall(r"^statement ok\n(.*?)(?:\n\n|\Z)", tables, re.S | re.M)
    names = re.findall(r"CREATE TABLE (\w+)", tables)
    postgres.run([f"DROP TABLE IF EXISTS {', '.join(names)} CASCADE"] + statements)
    total = 0
    for topic, parts in topics().items():
        if options.only and options.only not in topic:
            continue
        count, refused = write(topic, parts, postgres, options.out)
        total += count
        print(f"{topic}: {count} queries, {len(refused)} refused by PostgreSQL")
        for line in refused[:8]:
            print("   ", line)
    print(total)


if __name__ == "__main__":
    main()
