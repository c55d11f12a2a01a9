"""Subqueries as values and as conditions, correlated and not."""

from grammar import COMPARISONS, TABLES, Scope

SMALL = ["pair", "other", "nil", "dept", "emp", "sale", "product"]


def correlated(g):
    """Outer table, inner table, and a condition that joins them (aliases o and i)."""
    left, right, x, y = g.link()
    return left, right, f"i.{y} = o.{x}"


def scalar(g):
    outer, inner, on = correlated(g)
    scope, inside = Scope.of(("o", outer)), Scope.of(("i", inner))
    call = g.aggregate(inside)
    n = g.column(inside, "int")
    o = g.column(scope, "int")
    out = g.outputs(scope, 1, 2, 0)
    both = scope.plus(inside)
    return g.one(
        f"SELECT {out}, (SELECT {call} FROM {inner} i WHERE {on}) AS x FROM {outer} o{g.where(scope, 0.3)}",
        f"SELECT {out}, (SELECT {call} FROM {inner} i WHERE {on} AND {g.predicate(inside, 0)}) AS x FROM {outer} o",
        f"SELECT {out}, (SELECT {call} FROM {inner} i{g.where(inside)}) AS x FROM {outer} o{g.where(scope)}",
        f"SELECT {out} FROM {outer} o WHERE {o} {g.one(COMPARISONS)} (SELECT {g.one('max', 'min')}({n}) FROM {inner} i WHERE {on})",
        f"SELECT {out} FROM {outer} o WHERE (SELECT count(*) FROM {inner} i WHERE {on}) {g.one('=', '>', '<', '>=')} {g.one('0', '1', '2')}",
        f"SELECT {out} FROM {outer} o WHERE {o} > (SELECT avg({n}) FROM {inner} i{g.where(inside)})",
        f"SELECT {out}, coalesce((SELECT sum({n}) FROM {inner} i WHERE {on}), 0) AS x FROM {outer} o",
        f"SELECT {out}, (SELECT count(*) FROM {inner} i WHERE {n} {g.one('<', '>', '<=')} {o}) AS x FROM {outer} o",
        f"SELECT {out}, (SELECT max({n}) FROM {inner} i WHERE {on} AND {g.predicate(both, 0)}) AS x FROM {outer} o",
        f"SELECT (SELECT count(*) FROM {outer}) + (SELECT count(*) FROM {inner}) AS a, (SELECT {call} FROM {inner} i) AS b",
        f"SELECT {out}, CASE WHEN (SELECT count(*) FROM {inner} i WHERE {on}) > 1 THEN 'many' WHEN EXISTS (SELECT 1 FROM {inner} i WHERE {on}) THEN 'one' ELSE 'none' END AS x FROM {outer} o",
        f"SELECT {out}, (SELECT {g.one('d.name', 'd.id', 'upper(d.region)')} FROM dept d WHERE d.id = {o}) AS x FROM {outer} o{g.where(scope, 0.3)}",
        f"SELECT {out} FROM {outer} o WHERE (SELECT e.salary FROM emp e WHERE e.id = {o}) {g.one('>', '<', 'IS DISTINCT FROM')} {g.one('4200.50', '3000')}",
        f"SELECT {out}, (SELECT {n} FROM {inner} i WHERE {on} ORDER BY {n} {g.one('', 'DESC ')}NULLS LAST LIMIT 1) AS x FROM {outer} o",
    )


def exists(g):
    outer, inner, on = correlated(g)
    scope, inside = Scope.of(("o", outer)), Scope.of(("i", inner))
    both = scope.plus(inside)
    out = g.outputs(scope, 1, 3, 0)
    no = g.one("", "NOT ")
    third = g.table(*SMALL)
    what = g.one("1", "*", "i.*", "NULL")
    return g.one(
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT {what} FROM {inner} i WHERE {on})",
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT {what} FROM {inner} i WHERE {on} AND {g.predicate(both, 1)})",
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT {what} FROM {inner} i{g.where(inside, 1)}) {g.one('AND', 'OR')} {g.predicate(scope, 0)}",
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT 1 FROM {inner} i WHERE {g.column(inside, 'int')} {g.one('<', '>', '<>')} {g.column(scope, 'int')})",
        f"SELECT {out} FROM {outer} o WHERE EXISTS (SELECT 1 FROM {inner} i WHERE {on}) {g.one('AND NOT', 'OR', 'AND', 'OR NOT')} EXISTS (SELECT 1 FROM {third} t{g.where(Scope.of(('t', third)), 1, 0)})",
        f"SELECT {out}, {no}EXISTS (SELECT 1 FROM {inner} i WHERE {on}) AS x FROM {outer} o{g.where(scope, 0.3)}",
        f"SELECT count(*) AS n, {g.aggregate(scope)} AS a FROM {outer} o WHERE {no}EXISTS (SELECT 1 FROM {inner} i WHERE {on})",
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT 1 FROM {inner} i JOIN {third} t ON {g.column(inside, 'int')} = {g.column(Scope.of(('t', third)), 'int')} WHERE {on})",
        f"SELECT {out} FROM {outer} o WHERE {no}EXISTS (SELECT 1 FROM {inner} i WHERE {on} AND {no}EXISTS (SELECT 1 FROM {third} t WHERE {g.column(Scope.of(('t', third)), 'int')} = {g.column(inside, 'int')}))",
    )


def membership(g):
    outer, inner, on = correlated(g)
    scope, inside = Scope.of(("o", outer)), Scope.of(("i", inner))
    kind = g.one("int", "text", "int")
    x, y = g.column(scope, kind), g.column(inside, kind)
    a, b = g.column(scope, "int"), g.column(inside, "int")
    no = g.one("", "NOT ")
    out = g.outputs(scope, 1, 3, 0)
    known = f"{y} IS NOT NULL AND " if g.chance(0.5) else ""
    return g.one(
        f"SELECT {out} FROM {outer} o WHERE {x} {no}IN (SELECT {y} FROM {inner} i)",
        f"SELECT {out} FROM {outer} o WHERE {x} {no}IN (SELECT {y} FROM {inner} i WHERE {known}{g.predicate(inside, 1)})",
        f"SELECT {out} FROM {outer} o WHERE {x} {no}IN (SELECT {y} FROM {inner} i WHERE {known}{on})",
        f"SELECT {out} FROM {outer} o WHERE {x} {no}IN (SELECT {y} FROM {inner} i) {g.one('AND', 'OR')} {g.predicate(scope, 0)}",
        f"SELECT {out} FROM {outer} o WHERE ({a}, {x}) {no}IN (SELECT {b}, {y} FROM {inner} i{g.where(inside, 0.5)})",
        f"SELECT {out}, {x} {no}IN (SELECT {y} FROM {inner} i{g.where(inside, 0.5)}) AS x FROM {outer} o",
        f"SELECT {out} FROM {outer} o WHERE ({x} {no}IN (SELECT {y} FROM {inner} i)) IS {g.one('TRUE', 'NOT TRUE', 'UNKNOWN', 'FALSE', 'NULL')}",
        f"SELECT {out} FROM {outer} o WHERE {a} {no}IN (SELECT {g.one('max', 'min', 'sum', 'count')}({b}) FROM {inner} i GROUP BY {g.column(inside, 'text')})",
        f"SELECT {out} FROM {outer} o WHERE {a} + 1 {no}IN (SELECT {b} * {g.one('1', '2')} FROM {inner} i WHERE {b} IS NOT NULL)",
        f"SELECT {out} FROM {outer} o WHERE {a} {no}IN (SELECT v FROM pair WHERE v IS NOT NULL UNION {g.one('', 'ALL ')}SELECT k FROM other WHERE k > {g.one('1', '3')})",
        f"SELECT count(*) AS n FROM {outer} o WHERE {x} {no}IN (SELECT {y} FROM {inner} i WHERE {known}{g.predicate(inside, 0)})",
        f"SELECT {out} FROM {outer} o WHERE {a} {no}IN (1, 3, NULL, {b.replace('i.', 'o.') if inner == outer else '5'}) {g.one('OR', 'AND')} {x} IS NOT NULL",
    )


def quantified(g):
    outer, inner, on = correlated(g)
    scope, inside = Scope.of(("o", outer)), Scope.of(("i", inner))
    kind = g.one("int", "text", "int", "numeric", "date")
    if not (scope.kinds(kind) and inside.kinds(kind)):
        kind = "int"
    x, y = g.column(scope, kind), g.column(inside, kind)
    quantifier = g.one("ANY", "ALL", "SOME", "ALL")
    out = g.outputs(scope, 1, 2, 0)
    op = g.one(COMPARISONS)
    return g.one(
        f"SELECT {out} FROM {outer} o WHERE {x} {op} {quantifier} (SELECT {y} FROM {inner} i)",
        f"SELECT {out} FROM {outer} o WHERE {x} {op} {quantifier} (SELECT {y} FROM {inner} i WHERE {y} IS NOT NULL AND {g.predicate(inside, 0)})",
        f"SELECT {out} FROM {outer} o WHERE {x} {op} {quantifier} (SELECT {y} FROM {inner} i WHERE {on})",
        f"SELECT {out} FROM {outer} o WHERE NOT ({x} {op} {quantifier} (SELECT {y} FROM {inner} i{g.where(inside, 0.6)}))",
        f"SELECT {out}, {x} {op} {quantifier} (SELECT {y} FROM {inner} i{g.where(inside, 0.6)}) AS x FROM {outer} o",
        f"SELECT {out} FROM {outer} o WHERE {g.column(scope, 'int')} {op} {quantifier.replace('SOME', 'ANY')} (ARRAY[{g.one('1, 2, 3', '10, 20', '5, NULL', '0')}])",
        f"SELECT count(*) AS n FROM {outer} o WHERE {x} {op} {quantifier} (SELECT {y} FROM {inner} i WHERE {y} IS NOT NULL) OR {g.predicate(scope, 0)}",
    )


def derived(g):
    """Subqueries in FROM, and subqueries in them."""
    table = g.table("emp", "sale", "pair", "other", "dept")
    scope = Scope.bare(table)
    group = g.column(scope, "text", "int")
    n = g.column(scope, "int")
    q = Scope([("q.g", "text" if group in scope.kinds("text") else "int"), ("q.n", "int"), ("q.m", "int")])
    second = g.table("pair", "other", "dept")
    inner = f"SELECT {group} AS g, {n} AS n, {g.expression(scope, 'int', 1)} AS m FROM {table}{g.where(scope, 0.5)}"
    return g.one(
        f"SELECT {g.outputs(q, 2, 3)} FROM ({inner}) q{g.where(q, 0.7)}",
        f"SELECT q.g AS g, count(*) AS c, max(q.m) AS m FROM ({inner}) q GROUP BY q.g HAVING count(*) >= {g.one('1', '2')}",
        f"SELECT {g.outputs(q, 2, 3)} FROM (SELECT * FROM ({inner}) i WHERE n IS NOT NULL) q WHERE q.n > (SELECT avg(n) FROM ({inner}) r)",
        f"SELECT {g.outputs(q, 1, 2)} FROM ({inner}) q WHERE EXISTS (SELECT 1 FROM {second} t WHERE {g.column(Scope.of(('t', second)), 'int')} = q.n)",
        f"SELECT {g.outputs(q, 1, 2)} FROM ({inner}) q WHERE q.m NOT IN (SELECT {g.column(Scope.of(('t', second)), 'int')} FROM {second} t WHERE {g.predicate(Scope.of(('t', second)), 0)})",
        f"SELECT x.g AS g, x.n AS xn, y.n AS yn FROM ({inner}) x JOIN ({inner}) y ON x.n = y.m WHERE x.m > {g.one('0', '2')}",
    )


TOPICS = {"subqueries_scalar": [(scalar, 150)], "subqueries_exists": [(exists, 140)], "subqueries_in": [(membership, 160)],
          "subqueries_quantified": [(quantified, 110)], "subqueries_derived": [(derived, 80)]}
