"""Columns in scope and random expressions over them, typed, so that PostgreSQL accepts what is made and the answer does not depend on chance.

What is avoided here, once for all topics:
- the number of digits of a computed numeric (documented: a decimal of fixed scale), so computed numerics are rounded to 2 digits where they are shown;
- sums of doubles whose rounding depends on the order of rows: the doubles of the tables are multiples of 1/8;
- errors: divisors are constants or NULLIF(x, 0), products are of small columns.
"""

TABLES = {
    "dept": [("id", "int"), ("name", "text"), ("region", "text"), ("budget", "numeric"), ("opened", "date"), ("parent", "int")],
    "emp": [("id", "int"), ("dept", "int"), ("boss", "int"), ("name", "text"), ("salary", "numeric"), ("bonus", "int"),
            ("hired", "date"), ("rating", "double"), ("active", "bool")],
    "product": [("id", "int"), ("name", "text"), ("kind", "text"), ("price", "numeric"), ("weight", "double"), ("added", "timestamp")],
    "sale": [("id", "int"), ("emp", "int"), ("product", "int"), ("qty", "int"), ("amount", "bigint"), ("sold", "timestamp"), ("note", "text")],
    "pair": [("k", "int"), ("v", "int"), ("s", "text")],
    "other": [("k", "int"), ("v", "int"), ("s", "text")],
    "nil": [("k", "int"), ("v", "int"), ("s", "text")],
}

# Which column of which table joins to which.
LINKS = {
    ("emp", "dept"): ("dept", "id"), ("sale", "emp"): ("emp", "id"), ("sale", "product"): ("product", "id"),
    ("dept", "dept"): ("parent", "id"), ("emp", "emp"): ("boss", "id"), ("pair", "other"): ("k", "k"), ("pair", "pair"): ("k", "k"),
    ("other", "other"): ("v", "v"), ("pair", "nil"): ("k", "k"), ("other", "nil"): ("v", "v"), ("pair", "dept"): ("k", "id"),
    ("pair", "emp"): ("k", "id"), ("other", "emp"): ("k", "dept"), ("product", "sale"): ("id", "qty"), ("dept", "sale"): ("id", "emp"),
    ("dept", "product"): ("id", "id"), ("nil", "nil"): ("k", "v"),
}

VALUES = {
    "int": ["0", "1", "2", "3", "5", "-1", "10", "50", "100"],
    "bigint": ["0", "1000", "-2490", "500", "8900"],
    "numeric": ["0", "3100.25", "4200.50", "7500.25", "0.10", "24.9", "5000"],
    "double": ["0", "0.5", "1.5", "3.25", "4", "-1.5"],
    "text": ["'a'", "'b'", "'e'", "'north'", "'south'", "'part'", "'tool'", "'Bob'", "''", "'rush'", "'first'", "'zz'"],
    "date": ["date '2016-03-15'", "date '2019-07-31'", "date '2020-02-29'", "date '2021-12-31'"],
    "timestamp": ["timestamp '2023-01-02 10:00:00'", "timestamp '2023-03-01 00:00:00'", "timestamp '2021-02-28 23:59:59'"],
    "bool": ["true", "false"],
}
NUMBERS = ("int", "bigint", "numeric", "double")
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]


class Scope:
    """The columns that an expression may name: (qualified name, type)."""

    def __init__(self, columns):
        self.columns = columns

    @staticmethod
    def of(*relations):
        """Of (alias, table) pairs."""
        return Scope([(f"{alias}.{name}", kind) for alias, table in relations for name, kind in TABLES[table]])

    @staticmethod
    def bare(table):
        return Scope(list(TABLES[table]))

    def kinds(self, *kinds):
        return [name for name, kind in self.columns if kind in kinds]

    def plus(self, other):
        return Scope(self.columns + other.columns)


class Grammar:
    """Random choices with a seed of their own, so that one topic does not change another."""

    def __init__(self, rng):
        self.rng = rng

    def one(self, *options):
        return self.rng.choice(options[0] if len(options) == 1 else options)

    def chance(self, probability):
        return self.rng.random() < probability

    def some(self, options, least, most):
        options = list(dict.fromkeys(options))
        return self.rng.sample(options, min(len(options), self.rng.randint(least, most)))

    def column(self, scope, *kinds):
        """A column of one of the kinds, or a constant when there is none."""
        found = scope.kinds(*kinds)
        return self.one(found) if found else self.constant(kinds[0])

    def constant(self, kind):
        """A constant of exactly this type: a literal with a point is a numeric, not a double."""
        value = self.one(VALUES[kind])
        return f"cast({value} AS double precision)" if kind == "double" else value

    def typed(self, scope, *kinds):
        """A column with its type."""
        found = [(name, kind) for name, kind in scope.columns if not kinds or kind in kinds]
        return self.one(found)

    # -- scalar expressions

    def expression(self, scope, kind, depth=1):
        if depth <= 0 or self.chance(0.35):
            return self.column(scope, kind) if self.chance(0.85) else self.constant(kind)
        return getattr(self, "_" + kind)(scope, depth - 1)

    def _int(self, scope, depth):
        x = lambda: self.expression(scope, "int", depth)
        pick = self.rng.randrange(10)
        if pick == 0:
            return f"{x()} + {self.one('1', '7', '-3')}"
        if pick == 1:
            return f"({x()} - {x()})"
        if pick == 2:
            return f"{x()} * {self.one('2', '-1', '3')}"
        if pick == 3:
            return f"({x()}) / {self.one('2', '3', '-4')}"
        if pick == 4:
            return f"({x()}) % {self.one('3', '4', '7')}"
        if pick == 5:
            return f"coalesce({x()}, {self.one('0', '-1', '99')})"
        if pick == 6:
            return f"CASE WHEN {self.predicate(scope, depth)} THEN {x()} ELSE {x()} END"
        if pick == 7:
            return f"abs({x()})"
        if pick == 8:
            return f"length({self.expression(scope, 'text', depth)})"
        return f"nullif({x()}, {self.one('0', '1', '100')})"

    def _bigint(self, scope, depth):
        x = lambda: self.expression(scope, "bigint", depth)
        return self.one(f"{x()} + 1", f"-({x()})", f"coalesce({x()}, 0)", f"{x()} / 7", f"{x()} * 2",
                        f"CASE WHEN {self.predicate(scope, depth)} THEN {x()} END", f"cast({self.expression(scope, 'int', depth)} AS bigint)")

    def _numeric(self, scope, depth):
        x = lambda: self.expression(scope, "numeric", depth)
        inner = self.one(f"{x()} * 1.1", f"{x()} + {self.expression(scope, 'int', depth)}", f"{x()} - {x()}", f"coalesce({x()}, 0)", f"-{x()}",
                         f"{x()} / {self.one('3', '2.5', '7')}", f"greatest({x()}, {x()})", f"abs({x()} - 100)")
        return f"round({inner}, 2)"

    def _double(self, scope, depth):
        x = lambda: self.expression(scope, "double", depth)
        return self.one(f"{x()} * 2", f"{x()} + 0.5", f"coalesce({x()}, 0)", f"{x()} / 4", f"-({x()})", f"floor({x()})", f"({x()} - {x()})",
                        f"abs({x()})")

    def _text(self, scope, depth):
        x = lambda: self.expression(scope, "text", depth)
        return self.one(f"upper({x()})", f"lower({x()})", f"{x()} || '-' || {x()}", f"coalesce({x()}, '?')", f"substr({x()}, 1, 2)",
                        f"left({x()}, 3)", f"CASE WHEN {self.predicate(scope, depth)} THEN {x()} ELSE 'none' END", f"replace({x()}, 'a', 'A')",
                        f"concat({x()}, '/', {self.expression(scope, 'int', 0)})", f"cast({self.expression(scope, 'int', depth)} AS text)",
                        f"nullif({x()}, '')", f"trim({x()})", f"reverse({x()})")

    def _date(self, scope, depth):
        x = lambda: self.expression(scope, "date", depth)
        return self.one(f"{x()} + 30", f"{x()} - 1", f"coalesce({x()}, date '2000-01-01')", f"greatest({x()}, date '2018-01-01')")

    def _timestamp(self, scope, depth):
        x = lambda: self.expression(scope, "timestamp", depth)
        return self.one(f"date_trunc('month', {x()})", f"date_trunc('hour', {x()})", f"{x()} + interval '1 day'", f"{x()} - interval '90 minutes'",
                        f"coalesce({x()}, timestamp '2000-01-01 00:00:00')")

    def _bool(self, scope, depth):
        return f"({self.predicate(scope, depth)})"

    # -- predicates

    def predicate(self, scope, depth=1):
        if depth > 0 and self.chance(0.35):
            p = lambda: self.predicate(scope, depth - 1)
            return self.one(f"({p()} AND {p()})", f"({p()} OR {p()})", f"NOT ({p()})", f"({p()}) IS NOT TRUE", f"({p()}) IS UNKNOWN")
        kind = self.typed(scope)[1]
        x = self.column(scope, kind)
        pick = self.rng.randrange(10)
        if kind == "bool":
            return self.one(x, f"NOT {x}", f"{x} IS TRUE", f"{x} IS NOT FALSE", f"{x} IS NULL")
        if pick <= 3:
            return f"{x} {self.one(COMPARISONS)} {self.one(VALUES[kind])}"
        if pick == 4:
            return f"{x} {self.one(COMPARISONS)} {self.expression(scope, kind, depth)}"
        if pick == 5:
            return f"{x} IS {self.one('', 'NOT ')}NULL"
        if pick == 6:
            low, high = self.one(VALUES[kind]), self.one(VALUES[kind])
            return f"{x} {self.one('', 'NOT ')}BETWEEN {low} AND {high}"
        if pick == 7:
            return f"{x} {self.one('', 'NOT ')}IN ({', '.join(self.some(VALUES[kind], 2, 4))})"
        if pick == 8 and kind == "text":
            return f"{x} {self.one('LIKE', 'NOT LIKE', 'ILIKE')} {self.one(QUOTED_PATTERNS)}"
        return f"({x} IS {self.one('', 'NOT ')}DISTINCT FROM {self.one(self.one(VALUES[kind]), self.column(scope, kind))})"

    # -- aggregates

    def aggregate(self, scope, plain=False):
        """A call whose result does not depend on the order of rows."""
        name, kind = self.typed(scope, "int", "bigint", "numeric", "double", "text", "date", "timestamp", "bool")
        x = self.expression(scope, kind, 1) if self.chance(0.4) else name
        # An ORDER BY of a constant is a position.
        x = name if x.startswith("'") else x
        call = self.one(self._aggregates(x, kind))
        if not plain and self.chance(0.2) and not call.startswith("round"):
            call += f" FILTER (WHERE {self.predicate(scope)})"
        return call

    def _aggregates(self, x, kind):
        calls = ["count(*)", f"count({x})", f"count(DISTINCT {x})"]
        if kind != "bool":
            calls += [f"min({x})", f"max({x})"]
        if kind in ("int", "bigint"):
            calls += [f"sum({x})", f"sum(DISTINCT {x})", f"round(avg({x}), 4)", f"sum({x} * 2)", f"bit_and({x})", f"bit_or({x})",
                      f"round(cast(stddev({x}) AS numeric), 4)", f"round(cast(var_pop({x}) AS numeric), 4)"]
        if kind == "numeric":
            calls += [f"sum({x})", f"round(avg({x}), 4)", f"round(avg(DISTINCT {x}), 2)", f"sum(DISTINCT {x})"]
        if kind == "double":
            calls += [f"sum({x})", f"avg({x})", f"round(cast(stddev_pop({x}) AS numeric), 6)", f"round(cast(variance({x}) AS numeric), 6)"]
        if kind == "bool":
            calls += [f"bool_and({x})", f"bool_or({x})", f"every({x})"]
        if kind == "text":
            calls += [f"string_agg({x}, ',' ORDER BY {x})", f"array_agg({x} ORDER BY {x})", f"string_agg(DISTINCT {x}, '|' ORDER BY {x})"]
        if kind in ("int", "date"):
            calls += [f"array_agg({x} ORDER BY {x} DESC NULLS LAST)"]
        return calls

    # -- queries

    def outputs(self, scope, least=1, most=4, depth=1):
        """A select list; each item has a name so that it can be a view's column."""
        items = []
        for number in range(self.rng.randint(least, most)):
            kind = self.typed(scope)[1]
            items.append(f"{self.expression(scope, kind, depth if self.chance(0.5) else 0)} AS c{number + 1}")
        return ", ".join(items)

    def where(self, scope, probability=0.6, depth=1):
        return f" WHERE {self.predicate(scope, depth)}" if self.chance(probability) else ""

    def table(self, *names):
        return self.one(names or ["dept", "emp", "product", "sale", "pair", "other", "nil"])

    def link(self):
        """Two tables with the condition that joins them: (left, right, condition over aliases a and b)."""
        (left, right), (x, y) = self.one(list(LINKS.items()))
        if self.chance(0.3):
            left, right, x, y = right, left, y, x
        return left, right, x, y


QUOTED_PATTERNS = ["'%a%'", "'_o%'", "'B%'", "'%e'", "'r__h'", "'%'"]
