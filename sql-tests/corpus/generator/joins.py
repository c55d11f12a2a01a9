"""Joins: inner, outer, cross, natural, USING, self, theta, of two to four relations."""

from grammar import COMPARISONS, LINKS, TABLES, Scope


def residual(g, scope):
    return f" AND {g.predicate(scope, 1)}"


def inner(g):
    left, right, x, y = g.link()
    scope = Scope.of(("a", left), ("b", right))
    form = g.rng.randrange(8)
    out = g.outputs(scope, 2, 4)
    if form == 0:
        return f"SELECT {out} FROM {left} a, {right} b WHERE a.{x} = b.{y}{residual(g, scope) if g.chance(0.5) else ''}"
    if form == 1:
        return f"SELECT {out} FROM {left} a JOIN {right} b ON a.{x} = b.{y}{residual(g, scope)}"
    if form == 2:
        return f"SELECT {out} FROM {left} a INNER JOIN {right} b ON a.{x} {g.one(COMPARISONS)} b.{y} AND a.{x} < {g.one('3', '5')}"
    if form == 3:
        low = g.one("1", "2")
        return f"SELECT {out} FROM {left} a JOIN {right} b ON b.{y} BETWEEN a.{x} - {low} AND a.{x} + {low}{residual(g, scope)}"
    if form == 4:
        return f"SELECT {out} FROM {left} a JOIN {right} b ON a.{x} + 1 = b.{y} * {g.one('1', '2')}"
    if form == 5:
        return f"SELECT {out} FROM {left} a JOIN {right} b ON a.{x} IS NOT DISTINCT FROM b.{y}{g.where(scope)}"
    if form == 6:
        return f"SELECT count(*) AS n, {g.aggregate(scope)} AS agg FROM {left} a JOIN {right} b ON a.{x} = b.{y}{g.where(scope)}"
    return f"SELECT {out} FROM {left} a JOIN {right} b ON a.{x} = b.{y} OR {g.predicate(scope, 0)} AND a.{x} = {g.one('1', '2', '3')}"


def outer(g):
    left, right, x, y = g.link()
    kind = g.one("LEFT", "RIGHT", "FULL", "LEFT OUTER", "FULL OUTER")
    a, b = Scope.of(("a", left)), Scope.of(("b", right))
    scope = a.plus(b)
    out = g.outputs(scope, 2, 4)
    on = f"a.{x} = b.{y}"
    form = g.rng.randrange(8)
    if form == 0:
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON {on}"
    if form == 1 and not kind.startswith("FULL"):
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON {on}{residual(g, scope)}"
    if form == 2:
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON {on} AND {g.predicate(a if g.chance(0.5) else b, 0)}"
    if form == 3:
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON {on} WHERE b.{y} IS NULL"
    if form == 4:
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON {on}{g.where(scope, 1)}"
    if form == 5 and not kind.startswith("FULL"):
        return f"SELECT {out} FROM {left} a {kind} JOIN {right} b ON a.{x} {g.one('<', '>', '<>')} b.{y} AND {g.predicate(b, 0)}"
    if form == 6:
        group = g.column(scope, "text", "int")
        return f"SELECT {group} AS g, count(*) AS n, count(b.{y}) AS matched, {g.aggregate(scope)} AS agg FROM {left} a {kind} JOIN {right} b ON {on} GROUP BY {group}"
    return f"SELECT {out} FROM (SELECT * FROM {left}{g.where(Scope.bare(left))}) a {kind} JOIN (SELECT * FROM {right}{g.where(Scope.bare(right))}) b ON {on}"


def using(g):
    pool = ["pair", "other", "nil"]
    left, right = g.one(pool), g.one(pool)
    kind = g.one("", "LEFT ", "RIGHT ", "FULL ", "INNER ")
    keys = g.one("k", "v", "k, v", "s", "k, s", "k, v, s")
    names = [name for name, _ in TABLES["pair"]]
    merged = keys.split(", ")
    rest = [f"{alias}.{name} AS {alias}{name}" for alias in "ab" for name in names if name not in merged]
    out = g.one("*", ", ".join(merged + g.some(rest, 1, 3))) if len(merged) > 1 or kind else ", ".join(merged + rest)
    if out == "*" and len(merged) < 3:
        out = ", ".join(merged + rest)
    form = g.rng.randrange(5)
    if form == 0:
        return f"SELECT {g.one('*', 'count(*) AS n')} FROM {left} a NATURAL {kind}JOIN {right} b"
    if form == 1:
        return f"SELECT {merged[0]}, count(*) AS n FROM {left} a {kind}JOIN {right} b USING ({keys}) GROUP BY {merged[0]}"
    if form == 2:
        return f"SELECT {out} FROM {left} a {kind}JOIN {right} b USING ({keys}) WHERE {merged[0]} IS {g.one('', 'NOT ')}NULL"
    if form == 3:
        third = g.one(pool)
        return f"SELECT k, count(*) AS n, count(c.s) AS cs FROM {left} a {kind}JOIN {right} b USING (k) {g.one('LEFT ', '')}JOIN {third} c USING (k) GROUP BY k"
    return f"SELECT {out} FROM {left} a {kind}JOIN {right} b USING ({keys})"


def cross(g):
    left, right = g.one("dept", "pair", "nil", "product"), g.one("other", "product", "nil", "dept")
    scope = Scope.of(("a", left), ("b", right))
    out = g.outputs(scope, 2, 3)
    listed = Scope.of(("a", left)).plus(Scope([("v.i", "int"), ("v.w", "text")]))
    small = f"(SELECT * FROM {right}{g.where(Scope.bare(right), 1, 0)})"
    if right in ("dept", "product"):
        small = f"(SELECT * FROM {right} WHERE id < {g.one('2', '3')})"
    return g.one(
        f"SELECT {out} FROM {left} a CROSS JOIN {small} b{g.where(scope, 1)}",
        f"SELECT {out} FROM {left} a, {small} b{g.where(scope, 1)}",
        f"SELECT count(*) AS n, {g.aggregate(scope)} AS agg FROM {left} a CROSS JOIN {right} b{g.where(scope)}",
        f"SELECT {g.outputs(listed, 2, 3)} FROM {left} a CROSS JOIN (VALUES (1, 'one'), (2, NULL)) v (i, w){g.where(listed)}",
        f"SELECT {out} FROM {left} a JOIN {right} b ON true WHERE {g.column(scope, 'int')} = {g.column(scope, 'int')} + 1",
    )


def chain(g):
    """Three or four relations, each joined to one before it."""
    tables = [g.one("emp", "sale", "dept", "pair", "product")]
    text = f"{tables[0]} r0"
    relations = [("r0", tables[0])]
    for number in range(1, g.rng.randint(3, 4)):
        options = []
        for alias, table in relations:
            for (left, right), (x, y) in LINKS.items():
                if left == table:
                    options.append((right, f"{alias}.{x} = r{number}.{y}"))
                if right == table:
                    options.append((left, f"{alias}.{y} = r{number}.{x}"))
        table, on = g.one(options)
        kind = g.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN", "JOIN")
        relations.append((f"r{number}", table))
        if g.chance(0.25) and kind != "FULL JOIN":
            on += f" AND {g.predicate(Scope.of(*relations[-1:]), 0)}"
        text += f" {kind} {table} r{number} ON {on}"
    scope = Scope.of(*relations)
    if g.chance(0.45):
        group = g.column(scope, "text", "int")
        return f"SELECT {group} AS g, count(*) AS n, {g.aggregate(scope)} AS x, {g.aggregate(scope)} AS y FROM {text}{g.where(scope, 0.4)} GROUP BY {group}"
    if g.chance(0.2):
        return f"SELECT DISTINCT {g.outputs(scope, 1, 2, 0)} FROM {text}{g.where(scope, 0.5)}"
    return f"SELECT {g.outputs(scope, 2, 4)} FROM {text}{g.where(scope, 0.9)}"


def nested(g):
    """Joins of joins and of derived tables."""
    scope = Scope.of(("e", "emp"), ("d", "dept"), ("s", "sale"))
    inside = Scope.of(("d", "dept"), ("p", "dept"))
    kind = lambda: g.one("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
    forms = [
        f"SELECT {g.outputs(scope, 2, 3)} FROM emp e {kind()} (dept d {kind()} sale s ON d.id = s.emp) ON e.dept = d.id{g.where(scope, 0.7)}",
        f"SELECT {g.outputs(scope, 2, 3)} FROM (emp e {kind()} sale s ON s.emp = e.id) {kind()} dept d ON e.dept = d.id{g.where(scope, 0.7)}",
        f"SELECT q.g AS g, q.n AS n, d.name AS name FROM (SELECT dept AS g, count(*) AS n FROM emp e{g.where(Scope.of(('e', 'emp')))} GROUP BY dept) q {kind()} dept d ON d.id = q.g",
        f"SELECT a.g AS ag, b.g AS bg, a.n AS an, b.n AS bn FROM (SELECT emp AS g, count(*) AS n FROM sale GROUP BY emp) a {kind()} (SELECT dept AS g, {g.one('count(*)', 'sum(bonus)', 'max(id)')} AS n FROM emp GROUP BY dept) b ON a.{g.one('g', 'n')} = b.{g.one('g', 'n')}",
        f"SELECT {g.outputs(inside, 2, 4)} FROM dept d {kind()} dept p ON d.parent = p.id {g.one('', 'AND p.region IS NOT NULL ')}{g.where(inside, 0.4)}",
        f"SELECT x.k AS xk, y.v AS yv, z.s AS zs FROM pair x {kind()} other y ON x.k = y.k {kind()} pair z ON z.{g.one('k', 'v')} = y.{g.one('k', 'v')} WHERE {g.predicate(Scope.of(('x', 'pair'), ('y', 'other'), ('z', 'pair')))}",
        f"SELECT u.s AS s, u.n AS n, o.v AS v FROM (SELECT DISTINCT s, k + {g.one('0', '1')} AS n FROM pair) u {kind()} other o ON o.k = u.n",
    ]
    return g.one(forms)


TOPICS = {"joins_inner": [(inner, 130)], "joins_outer": [(outer, 190)], "joins_using": [(using, 100)], "joins_cross": [(cross, 70)],
          "joins_chain": [(chain, 140)], "joins_nested": [(nested, 110)]}
