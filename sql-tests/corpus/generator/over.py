"""OVER: ranking, offsets, running and framed aggregates, windows by name, windows over aggregates, Top-N by row_number."""

from grammar import Scope

# Table and an order that is total over it.
TOTAL = {"emp": "id", "dept": "id", "product": "id", "pair": "k, v, s", "other": "k, v, s", "sale": "id"}


def total(g, table, prefix=""):
    """An ORDER BY that ends in a total order, up to rows that are equal in all columns."""
    scope = Scope.bare(table)
    first = g.column(scope, "int", "text", "numeric", "date")
    way = g.one("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
    keys = ", ".join(prefix + name for name in TOTAL[table].split(", "))
    return g.one(f"{prefix}{first}{way}, {keys}", keys, f"{prefix}{first}{way}, {keys}")


def pick(g):
    table = g.one("emp", "sale", "pair", "other", "dept", "product", "emp", "sale")
    return table, Scope.bare(table)


def partition(g, scope, probability=0.7):
    if not g.chance(probability):
        return ""
    return "PARTITION BY " + ", ".join(g.some(scope.kinds("text", "int", "bool"), 1, 1 if g.chance(0.8) else 2)) + " "


def shown(g, table, scope):
    keys = TOTAL[table].split(", ")
    return ", ".join(dict.fromkeys(keys + g.some([name for name, _ in scope.columns], 1, 2)))


def ranking(g):
    table, scope = pick(g)
    tie = g.column(scope, "int", "text", "numeric", "date")
    way = g.one("", " DESC", " NULLS FIRST", " DESC NULLS LAST")
    call = g.one("rank()", "dense_rank()", "rank()", "dense_rank()", "round(cast(percent_rank() {over} AS numeric), 6)", "round(cast(cume_dist() {over} AS numeric), 6)",
                 "row_number()", f"ntile({g.one('2', '3', '4')})")
    order = total(g, table) if call in ("row_number()",) or call.startswith("ntile") else tie + way
    over = f"OVER ({partition(g, scope)}ORDER BY {order})"
    call = call.format(over=over) if "{over}" in call else f"{call} {over}"
    second = f", rank() OVER (ORDER BY {g.column(scope, 'int')}) AS r2" if g.chance(0.25) else ""
    return f"SELECT {shown(g, table, scope)}, {call} AS r{second} FROM {table}{g.where(scope, 0.4)}"


def offsets(g):
    table, scope = pick(g)
    x, kind = g.typed(scope, "int", "text", "date", "numeric")
    over = f"({partition(g, scope)}ORDER BY {total(g, table)})"
    frame = g.one("", " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " ROWS UNBOUNDED PRECEDING")
    framed = over[:-1] + frame + ")"
    default = {"int": "-7", "text": "'none'", "date": "date '1900-01-01'", "numeric": "0.00"}[kind]
    call = g.one(f"lag({x}) OVER {over}", f"lead({x}) OVER {over}", f"lag({x}, {g.one('2', '3', '0')}) OVER {over}", f"lead({x}, {g.one('1', '2')}, {default}) OVER {over}",
                 f"first_value({x}) OVER {framed}", f"last_value({x}) OVER {framed}", f"nth_value({x}, {g.one('1', '2', '3')}) OVER {framed}")
    return f"SELECT {shown(g, table, scope)}, {call} AS r FROM {table}{g.where(scope, 0.3)}"


def frame(g):
    """A frame of ROWS, RANGE or GROUPS; what needs an ORDER BY of one number says so."""
    low = g.one("UNBOUNDED PRECEDING", "2 PRECEDING", "1 PRECEDING", "CURRENT ROW", "1 FOLLOWING")
    high = {"UNBOUNDED PRECEDING": ["CURRENT ROW", "1 PRECEDING", "UNBOUNDED FOLLOWING", "2 FOLLOWING"], "2 PRECEDING": ["1 PRECEDING", "CURRENT ROW", "1 FOLLOWING"],
            "1 PRECEDING": ["1 FOLLOWING", "CURRENT ROW", "1 PRECEDING"], "CURRENT ROW": ["UNBOUNDED FOLLOWING", "2 FOLLOWING", "CURRENT ROW"],
            "1 FOLLOWING": ["UNBOUNDED FOLLOWING", "3 FOLLOWING"]}[low]
    exclude = g.one("", "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE TIES", " EXCLUDE GROUP", " EXCLUDE NO OTHERS")
    return f"BETWEEN {low} AND {g.one(high)}{exclude}"


def framed(g):
    table, scope = pick(g)
    call = None
    while call is None or "DISTINCT" in call or "ORDER BY" in call or call.startswith("round"):
        call = g.aggregate(scope, plain=g.chance(0.8))
    parts = partition(g, scope)
    number = g.column(scope, "int")
    form = g.rng.randrange(6)
    if form == 0:
        over = f"({parts}ORDER BY {total(g, table)} ROWS {frame(g)})"
    elif form == 1:
        over = f"({parts}ORDER BY {number}{g.one('', ' DESC', ' NULLS FIRST')} RANGE {frame(g)})"
    elif form == 2:
        over = f"({parts}ORDER BY {number}{g.one('', ' DESC')} GROUPS {frame(g)})"
    elif form == 3:
        over = f"({parts}ORDER BY {number})"
    elif form == 4:
        over = f"({parts.strip()})"
    else:
        over = f"({parts}ORDER BY {total(g, table)})"
    return f"SELECT {shown(g, table, scope)}, {call} OVER {over} AS r FROM {table}{g.where(scope, 0.3)}"


def timed(g):
    """RANGE over dates and timestamps with intervals."""
    table, column = g.one(("emp", "hired"), ("sale", "sold"), ("dept", "opened"), ("product", "added"))
    scope = Scope.bare(table)
    span = g.one("1 day", "1 month", "1 year", "90 days", "12 hours")
    call = g.one("count(*)", f"sum({g.column(scope, 'int')})", f"max({g.column(scope, 'int', 'numeric')})", f"min({g.column(scope, 'text')})")
    bounds = g.one(f"BETWEEN interval '{span}' PRECEDING AND CURRENT ROW", f"BETWEEN interval '{span}' PRECEDING AND interval '{span}' FOLLOWING",
                   f"BETWEEN CURRENT ROW AND interval '{span}' FOLLOWING", f"BETWEEN UNBOUNDED PRECEDING AND interval '{span}' PRECEDING")
    return f"SELECT {shown(g, table, scope)}, {call} OVER ({partition(g, scope, 0.3)}ORDER BY {column}{g.one('', ' DESC')} RANGE {bounds}) AS r FROM {table}{g.where(scope, 0.2)}"


def composed(g):
    """Windows over groups, joins and subqueries, by name, in expressions, and Top-N per group."""
    table, scope = pick(g)
    left, right, x, y = g.link()
    both = Scope.of(("a", left), ("b", right))
    group = g.column(scope, "text", "int")
    n = g.column(scope, "int")
    k = g.one("1", "2", "3")
    number = f"row_number() OVER (PARTITION BY {g.column(scope, 'text', 'int')} ORDER BY {total(g, table)})"
    rank = f"{g.one('rank', 'dense_rank')}() OVER ({partition(g, scope)}ORDER BY {n} DESC NULLS LAST)"
    return g.one(
        f"SELECT {group} AS g, count(*) AS n, sum(count(*)) OVER (ORDER BY {group}) AS running FROM {table}{g.where(scope, 0.3)} GROUP BY {group}",
        f"SELECT {group} AS g, sum({n}) AS s, rank() OVER (ORDER BY sum({n}) DESC NULLS LAST) AS r FROM {table} GROUP BY {group}",
        f"SELECT * FROM (SELECT {shown(g, table, scope)}, {number} AS r FROM {table}) q WHERE r {g.one('<=', '=', '<', '>')} {k}",
        f"SELECT * FROM (SELECT {shown(g, table, scope)}, {rank} AS r FROM {table}{g.where(scope, 0.4)}) q WHERE r {g.one('<=', '=')} {k}",
        f"SELECT * FROM (SELECT {shown(g, table, scope)}, {number} AS r FROM {table}) q WHERE r BETWEEN {k} AND {k} + 1",
        f"SELECT {shown(g, table, scope)}, {n} - avg({n}) OVER w > 0 AS above, count(*) OVER w AS size FROM {table} WINDOW w AS ({partition(g, scope, 1).strip()})",
        f"SELECT {shown(g, table, scope)}, sum({n}) OVER w AS s, max({n}) OVER (w ROWS 1 PRECEDING) AS m FROM {table} WINDOW w AS ({partition(g, scope)}ORDER BY {total(g, table)})",
        f"SELECT a.{x} AS x, count(*) OVER (PARTITION BY a.{x}) AS n, {g.column(both, 'text')} AS t FROM {left} a {g.one('JOIN', 'LEFT JOIN')} {right} b ON a.{x} = b.{y}{g.where(both, 0.5)}",
        f"SELECT DISTINCT {group} AS g, max({n}) OVER (PARTITION BY {group}) AS m FROM {table}",
        f"SELECT g, max(r) AS m FROM (SELECT {group} AS g, {rank} AS r FROM {table}) q GROUP BY g",
        f"SELECT {shown(g, table, scope)}, CASE WHEN {number} = 1 THEN 'first' ELSE 'later' END AS r FROM {table}",
        f"SELECT {shown(g, table, scope)}, sum({n}) OVER (ORDER BY {total(g, table)}) - coalesce({n}, 0) AS before FROM {table}{g.where(scope, 0.4)}",
    )


TOPICS = {"over_ranking": [(ranking, 120)], "over_offsets": [(offsets, 110)], "over_frames": [(framed, 160), (timed, 40)], "over_composed": [(composed, 140)]}
