"""Several things in one query: joins under aggregates under OVER, subqueries in HAVING and FILTER, sets of groups, Top-N joined back."""

from aggregates import source
from grammar import Scope
from over import TOTAL, total


def grouped(g, name="n"):
    """A grouped SELECT with columns g (text or int) and n (a number), and whether g is a text."""
    text, scope = source(g)
    kind = g.one("text", "int")
    group = g.column(scope, kind)
    value = g.one("count(*)", f"sum({g.column(scope, 'int')})", f"max({g.column(scope, 'int')})", f"count(DISTINCT {g.typed(scope)[0]})")
    having = g.one("", "", f" HAVING count(*) > {g.one('0', '1')}")
    return f"SELECT {group} AS g, {value} AS {name} FROM {text}{g.where(scope, 0.4)} GROUP BY {group}{having}", kind


def same_kind(g, kind):
    while True:
        found = grouped(g)
        if found[1] == kind:
            return found[0]


def mixed(g):
    first, kind = grouped(g)
    second = same_kind(g, kind)
    table = g.table("emp", "sale", "pair", "other", "dept")
    scope = Scope.bare(table)
    keys = TOTAL[table].split(", ")
    group, n = g.column(scope, "text", "int"), g.column(scope, "int")
    left, right, x, y = g.link()
    both = Scope.of(("a", left), ("b", right))
    key = g.column(both, "text", "int")
    ranked = f"SELECT {', '.join(keys)}, {group} AS g, row_number() OVER (PARTITION BY {group} ORDER BY {total(g, table)}) AS r FROM {table}{g.where(scope, 0.3)}"
    join = g.one("LEFT JOIN", "FULL JOIN", "JOIN", "RIGHT JOIN")
    op = g.one("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
    return g.one(
        f"SELECT g, n, rank() OVER (ORDER BY n DESC NULLS LAST) AS r, sum(n) OVER () AS total FROM ({first}) q",
        f"SELECT p.g AS g, p.n AS pn, q.n AS qn FROM ({first}) p {join} ({second}) q ON p.g = q.g",
        f"SELECT coalesce(p.g, q.g) AS g, coalesce(p.n, 0) - coalesce(q.n, 0) AS d FROM ({first}) p {join} ({second}) q ON p.g = q.g AND p.n >= q.n",
        f"SELECT g, sum(n) AS n, count(*) AS c FROM ({first} UNION ALL {second}) u GROUP BY g",
        f"{first} {op} {second}",
        f"SELECT DISTINCT p.n AS n FROM ({first}) p {join} ({second}) q ON p.n = q.n",
        f"SELECT g, n FROM ({first}) q WHERE n >= (SELECT avg(n) FROM ({second}) r)",
        f"SELECT g, n FROM ({first}) q WHERE g {g.one('IN', 'NOT IN')} (SELECT g FROM ({second}) r WHERE g IS NOT NULL)",
        f"SELECT {key} AS g, count(*) AS n FROM {left} a {join} {right} b ON a.{x} = b.{y} GROUP BY {key} HAVING count(*) >= (SELECT avg(n) FROM ({first}) q)",
        f"SELECT {key} AS g, count(*) FILTER (WHERE EXISTS (SELECT 1 FROM other z WHERE z.k = a.{x})) AS n FROM {left} a {join} {right} b ON a.{x} = b.{y} GROUP BY {key}",
        f"SELECT {key} AS g, count(*) AS n, rank() OVER (ORDER BY count(*) DESC, {key}) AS r FROM {left} a {join} {right} b ON a.{x} = b.{y}{g.where(both, 0.4)} GROUP BY {key}",
        f"SELECT t.{keys[0]} AS id, q.r AS r FROM {table} t JOIN ({ranked}) q ON t.{keys[0]} = q.{keys[0]} WHERE q.r = {g.one('1', '2')}",
        f"SELECT g, max(r) AS m, count(*) FILTER (WHERE r > 1) AS later FROM ({ranked}) q GROUP BY g",
        f"SELECT o.{keys[0]} AS id, (SELECT count(*) FROM ({first}) q WHERE q.n = o.{keys[0]}) AS c FROM {table} o",
        f"WITH p AS ({first}), q AS (SELECT g, n FROM p WHERE n > 1) SELECT p.g AS g, p.n AS n, q.n IS NOT NULL AS kept FROM p LEFT JOIN q ON p.g IS NOT DISTINCT FROM q.g",
        f"SELECT {n} AS x FROM {table} WHERE {n} IN (SELECT n FROM ({first}) q INTERSECT SELECT k FROM pair)",
        f"SELECT g, n, lag(n) OVER (ORDER BY g) AS before, n - lag(n) OVER (ORDER BY g) AS step FROM ({first}) q WHERE g IS NOT NULL",
        f"SELECT g, n FROM ({first}) q ORDER BY n DESC NULLS LAST, g LIMIT {g.one('1', '2', '4')}",
        f"SELECT count(*) AS n, sum(n) AS s FROM (SELECT g, n FROM ({first}) q ORDER BY n DESC NULLS LAST, g NULLS FIRST LIMIT {g.one('2', '3')}) t",
        f"SELECT DISTINCT ON (g) g, {', '.join('i_' + k for k in keys)} FROM (SELECT {group} AS g, {', '.join(k + ' AS i_' + k for k in keys)} FROM {table}{g.where(scope, 0.4)}) q ORDER BY g, {', '.join('i_' + k for k in keys)}",
        f"SELECT n % 2 AS odd, count(*) AS c, min(g) AS first FROM ({first}) q GROUP BY n % 2",
    )


TOPICS = {"mixed": [(mixed, 210)]}
