"""Shapes of whole queries: set operations, DISTINCT, CTEs, LATERAL, order and limit, VALUES, UNNEST."""

from grammar import TABLES, Scope
from over import TOTAL, total


def branch(g, kinds):
    """A SELECT with columns of these types."""
    table = g.table("pair", "other", "emp", "sale", "dept", "nil", "product")
    scope = Scope.bare(table)
    items = ", ".join(f"{g.expression(scope, kind, 1 if g.chance(0.25) else 0)} AS c{n}" for n, kind in enumerate(kinds, 1))
    return f"SELECT {items} FROM {table}{g.where(scope, 0.6)}"


def sets(g):
    kinds = g.one(["int"], ["int", "text"], ["text"], ["int", "int"], ["text", "int"])
    small = lambda: g.one("SELECT k AS c1, s AS c2 FROM pair", "SELECT k, s FROM other", "SELECT k, s FROM nil", "SELECT v, s FROM other", "SELECT id, name FROM dept WHERE id < 4", "SELECT v, 'a' FROM pair")
    op = lambda: g.one("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "UNION DISTINCT")
    q = Scope([("q.c1", kinds[0])])
    return g.one(
        f"{branch(g, kinds)} {op()} {branch(g, kinds)}",
        f"{small()} {op()} {small()}", f"{small()} {op()} {small()} {op()} {small()}", f"({small()} {op()} {small()}) {op()} {small()}",
        f"{small()} {op()} ({small()} {op()} {small()})", f"{branch(g, kinds)} {op()} {branch(g, kinds)} {op()} {branch(g, kinds)}",
        f"SELECT q.c1 AS c1, count(*) AS n FROM ({branch(g, kinds)} {op()} {branch(g, kinds)}) q GROUP BY q.c1",
        f"SELECT * FROM ({branch(g, kinds)} {op()} {branch(g, kinds)}) q{g.where(q, 1)}",
        f"SELECT {g.one('1', '5', '2')} AS a {op()} SELECT {g.one('1', 'NULL', '3')} {op()} SELECT k FROM pair",
        f"SELECT * FROM ({small()} {op()} {small()}) q ORDER BY 1 {g.one('', 'DESC ')}NULLS LAST, 2 LIMIT {g.one('2', '4')}",
    )


def distinct(g):
    table = g.table("pair", "other", "emp", "sale", "dept", "product", "nil")
    scope = Scope.bare(table)
    left, right, x, y = g.link()
    both = Scope.of(("a", left), ("b", right))
    keys = ", ".join(g.some(scope.kinds("text", "int", "bool"), 1, 2))
    shown = ", ".join(dict.fromkeys(keys.split(", ") + (TOTAL[table].split(", ") if table in TOTAL else ["k", "v", "s"])))
    order = TOTAL.get(table, "k, v, s")
    return g.one(
        f"SELECT DISTINCT {keys} FROM {table}{g.where(scope)}",
        f"SELECT DISTINCT {g.outputs(scope, 1, 3)} FROM {table}{g.where(scope)}",
        f"SELECT DISTINCT {g.outputs(both, 1, 2)} FROM {left} a {g.one('JOIN', 'LEFT JOIN', 'FULL JOIN')} {right} b ON a.{x} = b.{y}",
        f"SELECT DISTINCT ON ({keys}) {shown} FROM {table}{g.where(scope, 0.4)} ORDER BY {keys}, {order}",
        f"SELECT DISTINCT ON ({keys}) {shown} FROM {table} ORDER BY {', '.join(key + ' DESC NULLS LAST' for key in keys.split(', '))}, {', '.join(o + ' DESC' for o in order.split(', '))}",
        f"SELECT count(*) AS n FROM (SELECT DISTINCT {keys} FROM {table}{g.where(scope)}) q",
        f"SELECT DISTINCT count(*) AS n FROM {table}{g.where(scope)} GROUP BY {keys}",
        f"SELECT DISTINCT {g.column(scope, 'int')} % 3 AS m, {g.predicate(scope)} AS p FROM {table}",
    )


def ctes(g):
    table = g.table("emp", "sale", "pair", "other", "dept")
    scope = Scope.bare(table)
    group = g.column(scope, "text", "int")
    n = g.column(scope, "int")
    left, right, x, y = g.link()
    q = Scope([("g", "text" if group in scope.kinds("text") else "int"), ("n", "int"), ("m", "int")])
    first = f"q AS {g.one('', 'MATERIALIZED ', 'NOT MATERIALIZED ')}(SELECT {group} AS g, {n} AS n, {g.expression(scope, 'int')} AS m FROM {table}{g.where(scope, 0.5)})"
    deep = g.one("1", "2", "3", "5")
    return g.one(
        f"WITH {first} SELECT {g.outputs(q, 1, 3)} FROM q{g.where(q)}",
        f"WITH {first} SELECT a.g AS g, b.n AS n FROM q a JOIN q b ON a.n = b.m WHERE a.n < {g.one('5', '100')}",
        f"WITH {first}, r AS (SELECT g, count(*) AS c, max(m) AS m FROM q GROUP BY g) SELECT r.g AS g, r.c AS c FROM r WHERE r.c = (SELECT max(c) FROM r)",
        f"WITH {first}, r (a, b) AS (SELECT g, sum(n) FROM q GROUP BY g) SELECT a, b FROM r WHERE b IS NOT NULL",
        f"WITH {first} SELECT n FROM q WHERE n IN (SELECT m FROM q) UNION {g.one('', 'ALL ')}SELECT m FROM q WHERE m > 3",
        f"WITH a AS (SELECT * FROM {left}), b AS (SELECT * FROM {right}) SELECT count(*) AS n, {g.aggregate(Scope.of(('a', left), ('b', right)))} AS x FROM a {g.one('LEFT ', 'FULL ', '')}JOIN b ON a.{x} = b.{y}",
        f"SELECT * FROM (WITH {first} SELECT g, count(*) AS c FROM q GROUP BY g) z WHERE c > {g.one('0', '1')}",
        f"WITH q AS (SELECT k, v FROM pair), q2 AS (SELECT k, v FROM other UNION ALL SELECT * FROM q) SELECT k, count(v) AS n FROM q2 GROUP BY k HAVING count(*) > {g.one('1', '2')}",
        f"WITH RECURSIVE r (n, m) AS (SELECT {g.one('1', '2')}, {g.one('1', '0')} UNION ALL SELECT n + 1, m * 2 + {g.one('1', '3')} FROM r WHERE n < {g.one('4', '7')}) SELECT n, m FROM r",
        f"WITH RECURSIVE reach (node) AS (SELECT {deep} UNION SELECT e.dst FROM edge e JOIN reach r ON e.src = r.node) SELECT node FROM reach",
        f"WITH RECURSIVE reach AS (SELECT src, dst FROM edge{g.one('', ' WHERE cost > 1', ' WHERE src < 5')} UNION SELECT r.src, e.dst FROM reach r JOIN edge e ON e.src = r.dst) SELECT {g.one('src, dst', 'src, count(*) AS n', 'dst, min(src) AS s')} FROM reach" ,
        f"WITH RECURSIVE tree AS (SELECT id, name, 0 AS level FROM dept WHERE parent IS NULL UNION ALL SELECT d.id, d.name, t.level + 1 FROM dept d JOIN tree t ON d.parent = t.id) SELECT {g.one('id, name, level', 'level, count(*) AS n', 'max(level) AS depth')} FROM tree",
        f"WITH RECURSIVE chief AS (SELECT id, boss, cast(name AS text) AS path FROM emp WHERE {g.one('boss IS NULL', 'id = 2', 'id = 4')} UNION ALL SELECT e.id, e.boss, c.path || '/' || coalesce(e.name, '?') FROM emp e JOIN chief c ON e.boss = c.id) SELECT id, path FROM chief{g.one('', ' WHERE id > 3', ' WHERE length(path) > 5')}",
    )


def grouped_tail(sql):
    """Adds the GROUP BY that the select list of a random choice asks for."""
    head, _, source = sql.rpartition(" SELECT ")
    for item, group in (("src, count(*) AS n", "src"), ("dst, min(src) AS s", "dst"), ("level, count(*) AS n", "level")):
        if source.startswith(item):
            return f"{sql} GROUP BY {group}"
    return sql


def with_queries(g):
    return grouped_tail(ctes(g))


def lateral(g):
    left, right, x, y = g.link()
    scope, inside = Scope.of(("o", left)), Scope.of(("i", right))
    on = f"i.{y} = o.{x}"
    n = g.column(inside, "int")
    order = ", ".join("i." + key for key in TOTAL.get(right, "k, v, s").split(", "))
    shown = ", ".join(f"i.{key} AS i{key}" for key in TOTAL.get(right, "k, v, s").split(", "))
    outer = f"o.{x} AS ox"
    return g.one(
        f"SELECT {outer}, q.* FROM {left} o CROSS JOIN LATERAL (SELECT {shown} FROM {right} i WHERE {on}) q",
        f"SELECT {outer}, q.* FROM {left} o, LATERAL (SELECT {shown} FROM {right} i WHERE {on}{g.one('', f' AND {g.predicate(inside, 0)}')}) q",
        f"SELECT {outer}, q.* FROM {left} o LEFT JOIN LATERAL (SELECT {shown} FROM {right} i WHERE {on} ORDER BY {n} {g.one('', 'DESC ')}NULLS LAST, {order} LIMIT {g.one('1', '2')}) q ON true",
        f"SELECT {outer}, q.* FROM {left} o CROSS JOIN LATERAL (SELECT count(*) AS n, {g.aggregate(inside)} AS a FROM {right} i WHERE {on}) q",
        f"SELECT {outer}, q.* FROM {left} o LEFT JOIN LATERAL (SELECT {g.aggregate(inside)} AS a FROM {right} i WHERE {on}{g.one('', f' AND {n} > {g.column(scope, chr(105) + chr(110) + chr(116))}')}) q ON true",
        f"SELECT {outer}, q.d AS d FROM {left} o, LATERAL (SELECT {g.expression(scope, 'int', 1)} AS d) q{g.where(scope, 0.5)}",
        f"SELECT {outer}, a.n AS an, b.m AS bm FROM {left} o, LATERAL (SELECT o.{x} + 1 AS n) a, LATERAL (SELECT a.n * 2 AS m) b WHERE b.m > {g.one('2', '5')}",
        f"SELECT {outer}, w.c AS c FROM {left} o CROSS JOIN LATERAL (VALUES (o.{x}), ({g.column(scope, 'int')})) w (c) WHERE w.c IS NOT NULL",
        f"SELECT {outer}, q.n AS n FROM {left} o JOIN LATERAL (SELECT DISTINCT {n} AS n FROM {right} i WHERE {on}) q ON q.n > {g.one('0', '2')}",
        f"SELECT {outer}, s.i AS i FROM {left} o CROSS JOIN LATERAL generate_series(1, least(o.{x}, 3)) s (i)",
        f"SELECT {outer}, q.g AS g, q.n AS n FROM {left} o CROSS JOIN LATERAL (SELECT {g.column(inside, 'text')} AS g, count(*) AS n FROM {right} i WHERE {on} GROUP BY 1) q",
    )


def ordered(g):
    """ORDER BY over a total order, with LIMIT, OFFSET and WITH TIES. Rows that are equal in all keys are equal in all that is shown."""
    table = g.one("emp", "sale", "pair", "other", "dept", "product")
    scope = Scope.bare(table)
    keys = TOTAL[table]
    first = g.column(scope, "int", "text", "numeric", "date", "double")
    way = g.one("", " ASC", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST")
    group = g.column(scope, "text", "int")
    cut = g.one(f"LIMIT {g.one('1', '3', '5')}", f"LIMIT {g.one('2', '4')} OFFSET {g.one('1', '3')}", f"OFFSET {g.one('2', '5')}", f"FETCH FIRST {g.one('2', '3')} ROWS ONLY", "LIMIT 0", "LIMIT ALL")
    ties = f"FETCH FIRST {g.one('1', '2', '4')} ROWS WITH TIES"
    shown = ", ".join(dict.fromkeys(keys.split(", ") + [first]))
    left, right, x, y = g.link()
    return g.one(
        f"SELECT {shown} FROM {table}{g.where(scope, 0.5)} ORDER BY {first}{way}, {keys} {cut}",
        f"SELECT {shown} FROM {table}{g.where(scope, 0.5)} ORDER BY {total(g, table)}",
        f"SELECT {first} AS x FROM {table}{g.where(scope, 0.5)} ORDER BY {first}{way} {cut}",
        f"SELECT {first} AS x FROM {table} ORDER BY {first}{way} {ties}",
        f"SELECT {group} AS g, count(*) AS n FROM {table} GROUP BY {group} ORDER BY n DESC, g{g.one('', ' NULLS FIRST', ' DESC')} {cut}",
        f"SELECT {shown}, {g.column(scope, 'int')} * -1 AS neg FROM {table} ORDER BY abs({g.column(scope, 'int')}){way}, {keys} {cut}",
        f"SELECT * FROM (SELECT {shown} FROM {table} ORDER BY {total(g, table)} LIMIT {g.one('3', '5')}) q ORDER BY {', '.join('q.' + k + ' DESC' for k in keys.split(', '))}",
        f"SELECT a.{x} AS x, b.{y} AS y FROM {left} a JOIN {right} b ON a.{x} = b.{y} ORDER BY x DESC, y {cut}",
        f"SELECT count(*) AS n, sum(q.i) AS s FROM (SELECT {g.column(scope, 'int')} AS i FROM {table} ORDER BY {first}{way}, {keys} LIMIT {g.one('2', '4', '6')}) q",
        f"SELECT upper({g.column(scope, 'text')}) AS u, {keys} FROM {table} ORDER BY u{way}, {keys} {cut}",
        f"SELECT {shown} FROM {table} ORDER BY {first} IS NULL, {first}{g.one('', ' DESC')}, {keys}",
        f"SELECT {shown} FROM {table} ORDER BY CASE WHEN {g.predicate(scope, 0)} THEN 0 ELSE 1 END, {keys} {cut}",
    )


def values(g):
    rows = g.one("(1, 'one'), (2, 'two'), (NULL, 'none'), (2, NULL)", "(5, 'e'), (5, 'e'), (1, 'a')", "(1, 'a'), (1, 'b'), (2, 'c'), (3, '')", "(-1, 'x'), (0, NULL)")
    v = Scope([("v.i", "int"), ("v.w", "text")])
    table = g.table("pair", "other", "dept", "emp")
    scope = Scope.of(("t", table))
    both = v.plus(scope)
    kind = g.one("int", "text")
    return g.one(
        f"SELECT {g.outputs(v, 1, 3)} FROM (VALUES {rows}) v (i, w){g.where(v)}",
        f"SELECT {g.aggregate(v)} AS a, {g.aggregate(v)} AS b FROM (VALUES {rows}) v (i, w){g.where(v, 0.4)}",
        f"SELECT v.w AS w, {g.aggregate(v)} AS a FROM (VALUES {rows}) v (i, w) GROUP BY v.w",
        f"SELECT {g.outputs(both, 2, 3)} FROM {table} t {g.one('JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN')} (VALUES {rows}) v (i, w) ON {g.column(v, kind)} = {g.column(scope, kind)}",
        f"SELECT {g.outputs(scope, 1, 2)} FROM {table} t WHERE {g.column(scope, 'int')} {g.one('', 'NOT ')}IN (VALUES (1), (3), ({g.one('5', '10')}))",
        f"SELECT {g.outputs(scope, 1, 2)} FROM {table} t WHERE ({g.column(scope, 'int')}, {g.column(scope, 'text')}) IN (VALUES {rows})",
        f"VALUES {rows}", f"SELECT * FROM (VALUES {rows}) v (i, w) UNION {g.one('', 'ALL ')}SELECT k, s FROM {g.one('pair', 'other')}",
        f"WITH v (i, w) AS (VALUES {rows}) SELECT v.i AS i, count(*) AS n FROM v{g.where(v, 0.3)} GROUP BY v.i",
        f"SELECT {g.expression(v, 'int', 2)} AS a, {g.expression(v, 'text', 2)} AS b FROM (VALUES {rows}) v (i, w)",
    )


def arrays(g):
    x = g.one("1", "2", "3", "10", "-1")
    literal = g.one("ARRAY[1, 2, 2, NULL]", "ARRAY[3, 1]", "'{5,6}'::int[]", "ARRAY[10, 20, 30]")
    return g.one(
        f"SELECT a.id AS id, u.x AS x FROM arr a CROSS JOIN UNNEST(a.xs) u (x){g.one('', f' WHERE u.x > {x}', ' WHERE u.x IS NOT NULL')}",
        f"SELECT id, unnest(xs) AS x FROM arr{g.one('', f' WHERE id > {x}')}", f"SELECT id, unnest(ss) AS x FROM arr WHERE id <> {x}",
        f"SELECT u.x AS x, count(*) AS n FROM arr a, UNNEST(a.{g.one('xs', 'ss')}) u (x) GROUP BY u.x{g.one('', ' HAVING count(*) > 1')}",
        f"SELECT a.id AS id, u.x AS x FROM arr a LEFT JOIN UNNEST(a.xs) u (x) ON {g.one('true', f'u.x > {x}')}",
        f"SELECT x FROM unnest({literal}) x{g.one('', ' WHERE x > 1', ' ORDER BY x DESC NULLS LAST')}",
        f"SELECT u.x AS x, u.o AS o FROM unnest({literal}) WITH ORDINALITY u (x, o)",
        f"SELECT a.id AS id, u.x AS x, u.o AS o FROM arr a CROSS JOIN UNNEST(a.{g.one('xs', 'ss')}) WITH ORDINALITY u (x, o){g.one('', f' WHERE u.o < {g.one(2, 3)}')}",
        f"SELECT id, xs[{g.one('1', '2', '0', '9')}] AS e, {g.one('array_length(xs, 1)', 'cardinality(xs)', 'array_upper(xs, 1)')} AS n FROM arr",
        f"SELECT id, {x} = ANY (xs) AS has, array_position(xs, {x}) AS at FROM arr", f"SELECT id FROM arr WHERE {x} {g.one('=', '<', '<>', '>')} {g.one('ANY', 'ALL')} (xs)",
        f"SELECT id, {g.one(f'xs || {x}', f'array_append(xs, {x})', f'array_prepend({x}, xs)', f'array_remove(xs, {x})', f'array_cat(xs, {literal})', f'xs || {literal}', f'array_replace(xs, {x}, 7)')} AS a FROM arr",
        f"SELECT id, array_to_string({g.one('xs', 'ss')}, '{g.one(',', '; ')}'{g.one('', ', chr(63)')}) AS t FROM arr",
        f"SELECT id, xs {g.one('@>', '<@', '&&', '=', '<', '||')} {literal} AS p FROM arr", f"SELECT id, xs[{g.one('1:2', '2:', ':2')}] AS part FROM arr",
        f"SELECT n FROM generate_series({g.one('1', '-2', '0')}, {g.one('5', '3', '-3')}{g.one('', ', 2', ', 3')}) n{g.one('', ' WHERE n % 2 = 0', ' ORDER BY n DESC')}",
        f"SELECT p.k AS k, n FROM pair p, generate_series(1, {g.one('2', 'p.k')}) n WHERE p.k {g.one('<', '>')} {g.one('3', '2')}",
        f"SELECT a.id AS id, (SELECT {g.one('sum', 'max', 'count')}(x) FROM unnest(a.xs) x{g.one('', f' WHERE x < {x}')}) AS s FROM arr a",
        f"SELECT id, ARRAY(SELECT x * {g.one('2', '-1')} FROM unnest(xs) x ORDER BY 1{g.one('', ' DESC')}) AS a FROM arr",
        f"SELECT e.id AS id FROM emp e WHERE e.id = ANY (ARRAY(SELECT k FROM {g.one('pair', 'other')} WHERE v > {g.one('10', '20')}))",
        f"SELECT string_to_array({g.one('name', 'upper(name)')}, '{g.one('a', 'o', 'l')}') AS parts FROM dept", f"SELECT array_agg({g.one('x', 'x + 1')} ORDER BY x{g.one('', ' DESC')}) AS a FROM arr, unnest(xs) x{g.one('', f' WHERE x > {x}')}",
    )


TOPICS = {"set_operations": [(sets, 170)], "distinct": [(distinct, 110)], "ctes": [(with_queries, 120)], "lateral": [(lateral, 110)], "order_limit": [(ordered, 150)],
          "values": [(values, 90)], "arrays_unnest": [(arrays, 130)]}
