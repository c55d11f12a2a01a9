"""Aggregates: whole, grouped, filtered, ordered, over grouping sets, nested."""

from grammar import Scope


def source(g):
    """A FROM clause with its scope."""
    if g.chance(0.6):
        table = g.table("emp", "sale", "pair", "other", "dept", "product", "emp", "sale", "nil")
        return table, Scope.bare(table)
    left, right, x, y = g.link()
    return f"{left} a {g.one('JOIN', 'LEFT JOIN')} {right} b ON a.{x} = b.{y}", Scope.of(("a", left), ("b", right))


def whole(g):
    text, scope = source(g)
    calls = [f"{g.aggregate(scope)} AS c{n}" for n in range(1, g.rng.randint(2, 6))]
    having = f" HAVING {g.one('count(*) > 3', 'count(*) = 0', 'max(1) = 1')}" if g.chance(0.15) else ""
    return f"SELECT {', '.join(calls)} FROM {text}{g.where(scope, 0.5)}{having}"


def key(g, scope):
    kind = g.one("text", "int", "text", "int", "bool", "date")
    if not scope.kinds(kind):
        kind = g.one("text", "int")
    return g.expression(scope, kind, 1) if g.chance(0.4) else g.column(scope, kind)


def grouped(g):
    text, scope = source(g)
    keys = g.some([key(g, scope) for _ in range(3)], 1, 2)
    keys = [k for k in keys if any(name in k for name, _ in scope.columns)] or [scope.kinds("int")[0]]
    calls = [f"{g.aggregate(scope)} AS a{n}" for n in range(1, g.rng.randint(2, 4))]
    items = [f"{k} AS g{n}" for n, k in enumerate(keys, 1)]
    by = ", ".join(str(n) for n in range(1, len(keys) + 1)) if g.chance(0.3) else ", ".join(keys)
    having = ""
    if g.chance(0.35):
        having = " HAVING " + g.one("count(*) > 1", f"count({g.typed(scope)[0]}) < 4", f"max({g.column(scope, 'int')}) > 2", f"{g.aggregate(scope, True)} IS NOT NULL",
                                    f"sum({g.column(scope, 'int')}) BETWEEN 0 AND 500 OR count(*) = 1")
    if g.chance(0.15):
        items = items[1:] or ["1 AS one"]
        by = ", ".join(keys)
    return f"SELECT {', '.join(items + calls)} FROM {text}{g.where(scope, 0.4)} GROUP BY {by}{having}"


def ordered(g):
    """Aggregates whose call has an ORDER BY, ordered sets, and JSON."""
    table = g.table("emp", "sale", "pair", "product", "other")
    scope = Scope.bare(table)
    x, kind = g.typed(scope, "int", "numeric", "text", "date", "double")
    n = g.column(scope, "int", "bigint")
    t = g.column(scope, "text")
    key_order = "id" if table in ("emp", "sale", "product") else "k, v, s"
    way = g.one("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
    number = g.column(scope, "int", "double")
    calls = [
        f"array_agg({x} ORDER BY {x}{way})", f"array_agg({n} ORDER BY {key_order})", f"string_agg({t}, '{g.one(',', '; ', '')}' ORDER BY {t}{way})",
        f"string_agg(cast({n} AS text), '+' ORDER BY {n}{way})", f"array_agg(DISTINCT {x} ORDER BY {x}{way})", f"string_agg(DISTINCT {t}, '/' ORDER BY {t}{way})",
        f"percentile_cont({g.one('0', '0.25', '0.5', '0.9', '1')}) WITHIN GROUP (ORDER BY {number})",
        f"percentile_disc({g.one('0.1', '0.5', '0.75')}) WITHIN GROUP (ORDER BY {x}{g.one('', ' DESC')})", f"mode() WITHIN GROUP (ORDER BY {n})",
        f"array_agg({t} ORDER BY {n}, {t}{way}) FILTER (WHERE {n} > {g.one('0', '2')})", f"(array_agg({x} ORDER BY {x} DESC NULLS LAST))[1]",
        f"array_length(array_agg({n}), 1)", f"string_agg(upper({t}), ',' ORDER BY length({t}), {t})", f"json_agg({n} ORDER BY {n})", f"bool_or({n} > 2)",
        f"json_object_agg({key_order.split(',')[0]}, {t} ORDER BY {key_order})" if table in ("emp", "product") else f"count({t})",
    ]
    chosen = [f"{call} AS a{i}" for i, call in enumerate(g.some(calls, 1, 2), 1)]
    group = g.column(scope, "text", "int")
    if g.chance(0.6):
        return f"SELECT {group} AS g, {', '.join(chosen)} FROM {table}{g.where(scope, 0.3)} GROUP BY {group}"
    return f"SELECT {', '.join(chosen)} FROM {table}{g.where(scope, 0.5)}"


def statistics(g):
    """Regression and moments; two columns."""
    table, y, x = g.one(("emp", "rating", "id"), ("sale", "qty", "product"), ("emp", "bonus", "dept"), ("product", "weight", "id"), ("pair", "v", "k"), ("other", "k", "v"), ("nil", "k", "v"))
    function = g.one("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy")
    other = g.one("stddev_samp", "stddev_pop", "var_samp", "var_pop", "variance", "stddev")
    group = g.column(Scope.bare(table), "text", "int")
    where = g.where(Scope.bare(table), 0.3, 0)
    return g.one(
        f"SELECT {group} AS g, round({other}({y}), 3) AS a FROM {table}{where} GROUP BY {group}" if y != "rating" and y != "weight" else f"SELECT {other}({y}) IS NULL AS a FROM {table}{where}",
        f"SELECT round(cast({function}({y}, {x}) AS numeric), 6) AS a, regr_count({y}, {x}) AS n FROM {table}{where}",
        f"SELECT {group} AS g, round(cast({other}({y}) AS numeric), 6) AS a, round(cast({function}({y}, {x}) AS numeric), 6) AS b FROM {table}{where} GROUP BY {group}",
        f"SELECT round(cast({other}({y}) AS numeric), 6) AS a, round(cast({other}({x}) AS numeric), 6) AS b, count({y}) AS n FROM {table}{where}",
        f"SELECT {group} AS g, regr_count({x}, {y}) AS n, bit_and({x}) AS lo, bit_or({x}) AS hi FROM {table}{where} GROUP BY {group}",
    )


def sets(g):
    """GROUPING SETS, ROLLUP, CUBE, GROUPING()."""
    text, scope = source(g)
    keys = g.some(scope.kinds("text", "int", "bool"), 2, 3)
    listed = ", ".join(keys)
    shape = g.one(f"ROLLUP ({listed})", f"CUBE ({', '.join(keys[:2])})", f"GROUPING SETS (({listed}), ({keys[0]}), ())", f"GROUPING SETS (({keys[0]}), ({keys[1]}))",
                  f"{keys[0]}, ROLLUP ({', '.join(keys[1:])})", f"GROUPING SETS (({keys[-1]}), ({keys[-1]}), ())", f"GROUPING SETS (())", f"{keys[0]}, CUBE ({keys[1]})",
                  f"GROUPING SETS (ROLLUP ({listed}), ({keys[1]}))", f"ROLLUP (({', '.join(keys[:2])}), {keys[-1]})")
    used = [name for name in keys if name in shape]
    items = [f"{name} AS g{n}" for n, name in enumerate(used, 1)]
    if used and g.chance(0.5):
        items.append(f"GROUPING({', '.join(g.some(used, 1, len(used)))}) AS level")
    items += [f"{g.aggregate(scope)} AS a{n}" for n in range(1, g.rng.randint(2, 3))]
    having = f" HAVING {g.one('count(*) > 1', 'count(*) > 2')}" if g.chance(0.25) else ""
    return f"SELECT {', '.join(items)} FROM {text}{g.where(scope, 0.35)} GROUP BY {shape}{having}"


def nested(g):
    """Aggregates of aggregates."""
    text, scope = source(g)
    group = g.column(scope, "text", "int")
    second = g.column(scope, "int", "text")
    inner = f"SELECT {group} AS g, {second} AS h, count(*) AS n, sum({g.column(scope, 'int')}) AS total FROM {text}{g.where(scope, 0.4)} GROUP BY {group}, {second}"
    return g.one(
        f"SELECT g, sum(n) AS n, max(total) AS most, count(DISTINCT h) AS kinds FROM ({inner}) q GROUP BY g",
        f"SELECT count(*) AS groups, sum(n) AS n, min(total) AS least FROM ({inner}) q",
        f"SELECT n, count(*) AS often FROM ({inner}) q GROUP BY n",
        f"SELECT max(n) - min(n) AS spread, count(total) AS known FROM ({inner}) q WHERE n > {g.one('0', '1', '2')}",
        f"SELECT h, n FROM ({inner}) q WHERE total = (SELECT max(total) FROM ({inner}) r)",
        f"SELECT DISTINCT n, total IS NULL AS unknown FROM ({inner}) q",
    )


TOPICS = {"aggregates_whole": [(whole, 130)], "aggregates_grouped": [(grouped, 220)], "aggregates_ordered": [(ordered, 130)],
          "aggregates_statistics": [(statistics, 60)], "aggregates_grouping_sets": [(sets, 130)], "aggregates_nested": [(nested, 80)]}
