"""Scalar expressions over rows: CASE, NULL logic, texts, numbers, dates, casts."""

from grammar import COMPARISONS, TABLES, VALUES, Scope

GLOBALLY = ", 'g'"


def listed(g, table, calls, least=1, most=3, key="id", wheres=()):
    items = ", ".join(f"{call} AS c{n}" for n, call in enumerate(g.some(calls, least, most), 1))
    where = f" WHERE {g.one(wheres)}" if wheres and g.chance(0.35) else ""
    return f"SELECT {key + ', ' if key else ''}{items} FROM {table}{where}"


def case(g):
    table = g.table("emp", "sale", "pair", "other", "dept", "product")
    scope = Scope.bare(table)
    kind = g.one("int", "text", "int", "bool", "date")
    if not scope.kinds(kind):
        kind = "text"
    v = lambda: g.expression(scope, kind, 1)
    p = lambda: g.predicate(scope, 1)
    x, xk = g.typed(scope, "int", "text")
    arms = " ".join(f"WHEN {value} THEN {v()}" for value in g.some(VALUES[xk], 1, 3))
    searched = f"CASE WHEN {p()} THEN {v()} WHEN {p()} THEN {v()} {g.one('', f'ELSE {v()} ')}END"
    simple = f"CASE {x} {arms} {g.one('', f'ELSE {v()} ')}END"
    return g.one(
        f"SELECT {x} AS x, {searched} AS c FROM {table}{g.where(scope, 0.3)}", f"SELECT {x} AS x, {simple} AS c FROM {table}{g.where(scope, 0.3)}",
        f"SELECT {simple} AS c, count(*) AS n FROM {table} GROUP BY 1", f"SELECT sum(CASE WHEN {p()} THEN 1 ELSE 0 END) AS a, count(CASE WHEN {p()} THEN 1 END) AS b FROM {table}",
        f"SELECT {x} AS x FROM {table} WHERE CASE WHEN {p()} THEN {p()} ELSE {p()} END",
        f"SELECT {x} AS x, CASE WHEN {p()} THEN CASE WHEN {p()} THEN 'a' ELSE 'b' END ELSE 'c' END AS c FROM {table}",
        f"SELECT {x} AS x, coalesce({v()}, {v()}, {v()}) AS c, nullif({v()}, {v()}) AS d FROM {table}{g.where(scope, 0.3)}",
        f"SELECT {g.one('greatest', 'least')}({g.expression(scope, 'int', 1)}, {g.expression(scope, 'int', 0)}, {g.one('3', '50')}) AS m, {x} AS x FROM {table}",
        f"SELECT {g.column(scope, 'text')} AS g, max({simple}) AS m, count(DISTINCT {simple}) AS n FROM {table} GROUP BY 1"
        if kind in ("int", "text", "date") else f"SELECT {x} AS x, NOT ({simple}) AS c FROM {table}",
    )


def nulls(g):
    """Three-valued logic over pair, other and emp."""
    table = g.table("pair", "other", "emp", "dept", "nil", "sale")
    scope = Scope.bare(table)
    p = lambda depth=1: g.predicate(scope, depth)
    x = g.column(scope, "int")
    y = g.column(scope, "int", "text")
    return g.one(
        f"SELECT {x} AS x, {p(2)} AS p FROM {table}", f"SELECT {x} AS x, ({p()}) IS {g.one('TRUE', 'FALSE', 'UNKNOWN', 'NOT TRUE', 'NOT FALSE', 'NOT UNKNOWN', 'NULL')} AS p FROM {table}",
        f"SELECT {x} AS x, {y} AS y FROM {table} WHERE {p(3)}", f"SELECT {x} AS x FROM {table} WHERE NOT ({p(2)}) OR ({p(1)}) IS NULL",
        f"SELECT ({p()}) AND ({p()}) AS a, ({p()}) OR NULL AS b, NOT ({p()}) AS c FROM {table}",
        f"SELECT {x} IS DISTINCT FROM {g.one('NULL', '1', '5')} AS a, {x} = {g.one('NULL', '1')} AS b, {y} IS NULL AS c FROM {table}",
        f"SELECT {x} IN ({g.one('1, NULL', 'NULL', '1, 2, 3', '5, NULL, 1')}) AS a, {x} NOT IN ({g.one('1, NULL', '1, 2', '10')}) AS b FROM {table}",
        f"SELECT coalesce({x}, {g.one('NULL', '0')}, 7) AS a, nullif({x}, {g.one('1', '5', '50')}) AS b, {x} + NULL AS c FROM {table}",
        f"SELECT count(*) AS a, count({x}) AS b, count({y}) AS c, count(*) FILTER (WHERE {y} IS NULL) AS d, sum({x}) AS e FROM {table}{g.where(scope, 0.5)}",
        f"SELECT {x} BETWEEN {g.one('NULL', '0')} AND {g.one('10', '3')} AS a, {x} NOT BETWEEN {g.one('2', '20')} AND NULL AS b FROM {table}",
        f"SELECT concat({g.column(scope, 'text')}, {x}) AS a, {g.column(scope, 'text')} || {g.one('NULL', chr(39) + '!' + chr(39))} AS b, num_nulls({x}, {y}) AS c FROM {table}",
        f"SELECT {x} AS x FROM {table} WHERE {x} IS {g.one('', 'NOT ')}DISTINCT FROM {g.one('1', '5', x)} {g.one('AND', 'OR')} {p(0)}",
        f"SELECT {x} AS x FROM {table} WHERE {x} {g.one('', 'NOT ')}BETWEEN SYMMETRIC {g.one('20', '5', 'NULL')} AND {g.one('2', '0')}",
        f"SELECT ({x}, {y}) IS NULL AS a, ({x}, {x}) = ({g.one('1', '5')}, {g.one('1', 'NULL', '5')}) AS b FROM {table}",
        f"SELECT bool_and({p(0)}) AS a, bool_or({p(0)}) AS b, every(({p(0)}) IS NOT NULL) AS c FROM {table}",
    )


def texts(g):
    s = g.one("s", "t", "s", "pat")
    n = g.one("1", "2", "3", "-2", "0", "7")
    lit = g.one("'a'", "'an'", "','", "''", "' '", "'x'")
    calls = [
        f"length({s})", f"char_length({s})", f"octet_length({s})", f"upper({s})", f"lower({s})", f"initcap({s})", f"reverse({s})", f"substr({s}, {g.one('1', '2', '0', '-1')})",
        f"substring({s} FROM {g.one('1', '2', '3')} FOR {g.one('1', '2', '4')})", f"left({s}, {n})", f"right({s}, {n})", f"position({lit} IN {s})", f"strpos({s}, {lit})",
        f"replace({s}, {g.one(chr(39) + 'a' + chr(39), chr(39) + ',' + chr(39))}, {lit})", f"translate({s}, 'abc', {g.one(chr(39) + 'xyz' + chr(39), chr(39) + 'x' + chr(39))})", f"lpad({s}, {g.one('3', '8')}, '*')", f"rpad({s}, {g.one('4', '10')}, 'ab')",
        f"trim({s})", f"ltrim({s}, 'a ')", f"rtrim({s}, 'eo')", f"btrim({s}, 'a')", f"trim(both 'a' from {s})", f"split_part({s}, {g.one(chr(39) + ',' + chr(39), chr(39) + '-' + chr(39))}, {g.one('1', '2', '3', '-1')})",
        f"repeat({s}, {g.one('0', '2')})", f"concat({s}, '-', t)", f"concat_ws('/', {s}, t, pat)", f"{s} || t", f"{s} || '!'", f"ascii({s})", f"md5({s})", f"starts_with({s}, {lit})",
        f"overlay({s} PLACING 'ZZ' FROM {g.one('1', '2')} FOR {g.one('0', '2')})", f"regexp_replace({s}, '{g.one('[aeiou]', '[0-9]+', 'a', '^.')}', '{g.one('#', '', '_')}'{g.one('', GLOBALLY)})",
        f"regexp_match({s}, '{g.one('[0-9]+', 'a(.)', 'o')}')", f"regexp_count({s}, '{g.one('a', '[0-9]', 'o')}')", f"{s} ~ '{g.one('^a', '[0-9]', 'e$', 'A')}'", f"{s} !~* '{g.one('^A', 'x', 'n+')}'",
        f"{s} LIKE '{g.one('a%', '%a', '_a%', '%an%', '%')}'", f"{s} ILIKE '{g.one('A%', '%E', '%AN%')}'", f"{s} LIKE pat", f"{s} NOT LIKE '{g.one('%e', 'a%')}'", f"{s} SIMILAR TO '{g.one('(a|b)%', '%[0-9]%', '_+')}'",
        f"quote_literal({s})", f"to_hex(length({s}))", f"chr(65 + length(coalesce({s}, '')) % 26)", f"encode(cast({s} AS bytea), 'hex')" if s != "pat" else f"bit_length({s})", f"format('%s-%s', {s}, id)", f"cast({s} AS varchar(3))",
        f"array_to_string(string_to_array({s}, ','), '|')", f"{s} < t", f"{s} = lower(t)", f"greatest({s}, t)", f"least({s}, t, 'm')", f"coalesce({s}, 'nil')",
        f"regexp_split_to_array({s}, '{g.one(',', '[aeiou]')}')", f"length(trim({s}))", f"substring({s} FROM '{g.one('[0-9]+', '[a-c]+', 'q(.)i')}')",
    ]
    wheres = [f"{s} IS NOT NULL", f"{s} LIKE '%a%'", f"length({s}) > {g.one('3', '5')}", f"{s} > 'b'", f"{s} <> ''", f"lower({s}) = lower(t)"]
    if g.chance(0.15):
        return f"SELECT {g.one(calls)} AS g, count(*) AS n FROM word GROUP BY 1"
    return listed(g, "word", calls, 1, 3, wheres=wheres)


def numbers(g):
    i, b = g.one("i", "i", "cast(i AS int)"), "b"
    d, n = "d", "n"
    calls = [
        f"{i} + {g.one('1', '-7')}", f"{i} * {g.one('2', '-3')}", f"{i} / {g.one('2', '-2', '7')}", f"{i} % {g.one('3', '-4')}", f"-{i}", f"abs({i})", f"mod({i}, {g.one('4', '-3')})", f"sign({n})", f"sign({d})",
        f"{b} + {i}", f"{b} / nullif({i}, 0)", f"{b} % {g.one('7', '10')}", f"{b} * 2 - {i}", f"cast({i} AS bigint) * {b}", f"{n} + 1", f"{n} * 2", f"{n} - {i}", f"round({n}, {g.one('0', '1', '2')})", f"trunc({n}, {g.one('0', '1', '2')})",
        f"ceil({n})", f"floor({n})", f"round({n} / {g.one('3', '7', '0.3')}, {g.one('2', '4')})", f"round({n} * 1.05, 2)", f"{d} * 2", f"{d} / {g.one('4', '3')}", f"{d} + 0.1", f"floor({d})", f"ceil({d})", f"round(cast({d} AS numeric), 1)",
        f"trunc({d})", f"-{d}", f"abs({d})", f"sqrt(abs({d}))", f"power({d}, 2)", f"cast(exp({d} / 1024) AS numeric(12,6))", f"round(cast(ln(abs({d}) + 1) AS numeric), 6)", f"{d} > {i}", f"{n} = {i}", f"{i} & {g.one('3', '6')}", f"{i} | 1",
        f"{i} # 5", f"~{i}", f"{i} << 2", f"{i} >> 1", f"cast({i} AS double precision)", f"cast({n} AS double precision)", f"cast({i} AS numeric(8,2))", f"cast({i} AS text)", f"cast({n} AS text)", f"cast({d} AS text)", f"gcd({i}, {g.one('4', '6')})", f"lcm({i}, {g.one('4', '6')})",
        f"greatest({i}, {g.one('5', '50')})", f"least({i}, {b})", f"width_bucket({d}, -10, 10, {g.one('4', '5')})", f"div({n}, {g.one('2', '7')})", f"{i} BETWEEN 1 AND {g.one('7', '12')}", f"coalesce({i}, {g.one('0', '-1')})", f"nullif({i}, {g.one('7', '1')})",
        f"to_char({i}, 'FM000')", f"{i} <> 0", f"{i} IS DISTINCT FROM {b}", f"round(cast(cbrt({d}) AS numeric), 10)", f"{i} * 1.5", f"{i} + {d}",
        f"cast('{g.one('12', '-7', ' 42 ')}' AS int) + {i}", f"{n} % 7", f"round({n})",
    ]
    wheres = ["i IS NOT NULL", "abs(n) < 1000", f"i {g.one(COMPARISONS)} 5", "d > 0", "b BETWEEN -100 AND 100", "n <> round(n, 0)"]
    if g.chance(0.2):
        call = g.one(f"sum({g.one('i', 'b', 'n', 'd')})", "round(avg(n), 2)", "avg(d)", "round(avg(i), 4)", "max(n)", "min(d)", "sum(i * i)", "sum(DISTINCT b)", "sum(n) - sum(i)", "count(DISTINCT n)", "max(i) - min(i)", "bit_xor(i)")
        return g.one(f"SELECT {call} AS a FROM num WHERE {g.one(wheres)}", f"SELECT i % 3 AS g, {call} AS a FROM num GROUP BY i % 3", f"SELECT {call} AS a, count(*) AS n FROM num")
    return listed(g, "num", calls, 1, 3, key=g.one("i", "j", "b"), wheres=wheres)


def times(g):
    unit = g.one("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    field = g.one("year", "month", "day", "hour", "minute", "second", "dow", "isodow", "doy", "week", "quarter", "isoyear", "epoch", "century", "decade", "microseconds", "milliseconds")
    dayfield = g.one("year", "month", "day", "dow", "doy", "week", "quarter", "isoyear", "epoch")
    span = g.one("1 day", "1 month", "1 year", "-3 hours", "90 minutes", "1 month 1 day", "36 hours")
    calls = [
        f"d + {g.one('1', '30', '-365')}", f"d - date '{g.one('2024-01-01', '1970-01-01')}'", f"d + interval '{span}'", f"ts + interval '{span}'", f"ts - interval '{span}'", f"tz + interval '{span}'", f"ts + iv", f"tz - iv", f"d + tm", f"ts - timestamp '{g.one('2024-01-01 00:00:00', '1999-12-31 23:59:59')}'",
        f"date_trunc('{unit}', ts)", f"date_trunc('{unit}', tz)", f"extract({field} FROM ts)", f"extract({dayfield} FROM d)", f"extract({field} FROM tz)", f"date_part('{field}', ts)", f"extract({g.one('hour', 'minute', 'second', 'day', 'epoch', 'month')} FROM iv)", f"extract({g.one('hour', 'minute', 'second')} FROM tm)",
        f"to_char(ts, '{g.one('YYYY-MM-DD', 'HH24:MI:SS', 'Dy, DD Mon YYYY', 'YYYY-Q', 'IYYY-IW', 'FMMonth DD', 'HH12:MI AM', 'DDD', 'MS')}')", f"cast(ts AS date)", f"cast(d AS timestamp)", f"cast(ts AS time)", f"cast(tz AS date)", f"cast(d AS text)", f"cast(ts AS text)", f"cast(iv AS text)", f"cast(tm AS text)",
        f"age(ts, timestamp '{g.one('2000-01-01 00:00:00', '2024-02-29 00:00:00')}')", f"iv * {g.one('2', '-1', '1.5')}", f"iv + interval '{span}'", f"-iv", f"iv / 2", f"justify_hours(iv)", f"justify_days(iv)", f"tm + interval '{g.one('1 hour', '-30 minutes')}'", f"tm - time '06:00:00'",
        f"ts < timestamp '2024-01-01 00:00:00'", f"d = cast(ts AS date)", f"d BETWEEN date '2000-01-01' AND date '2024-02-28'", f"iv > interval '1 hour'", f"tz AT TIME ZONE '{g.one('UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kolkata')}'", f"ts AT TIME ZONE '{g.one('UTC', 'Europe/Berlin', 'Asia/Tokyo')}'",
        f"date_bin(interval '{g.one('15 minutes', '1 hour', '1 day')}', ts, timestamp '2000-01-01 00:00:00')", f"make_date({g.one('2024', '1999')}, {g.one('2', '12')}, id)", f"to_date('{g.one('2024-05-06', '1999-12-31')}', 'YYYY-MM-DD') - d", f"greatest(ts, timestamp '2000-01-01 00:00:00')", f"coalesce(d, date '2000-01-01')",
        f"(ts, ts + interval '1 day') OVERLAPS (timestamp '2024-02-29 00:00:00', timestamp '2024-03-01 12:00:00')", f"to_timestamp(extract(epoch FROM tz))", f"isfinite(ts)", f"date_trunc('{g.one('hour', 'day')}', iv)", f"make_interval(days => id)", f"make_timestamp(2024, id, 1, 2, 3, 4.5)",
    ]
    wheres = ["ts IS NOT NULL", "d > date '2000-01-01'", "extract(year FROM ts) = 2024", "iv < interval '1 day'", "ts >= timestamp '2023-12-31 23:59:59'", "tm > time '08:00:00'"]
    if g.chance(0.15):
        return g.one(f"SELECT date_trunc('{unit}', ts) AS g, count(*) AS n, max(d) AS m FROM moment GROUP BY 1", f"SELECT extract({dayfield} FROM d) AS g, count(*) AS n FROM moment GROUP BY 1", f"SELECT d AS g, sum(iv) AS s, min(tm) AS m FROM moment GROUP BY d",
                     "SELECT min(ts) AS a, max(tz) AS b, max(ts) - min(ts) AS c FROM moment", f"SELECT date_trunc('{unit}', sold) AS g, sum(qty) AS q FROM sale GROUP BY 1", f"SELECT extract({field} FROM sold) AS g, count(*) AS n FROM sale GROUP BY 1")
    return listed(g, "moment", calls, 1, 2, wheres=wheres)


def casts(g):
    """Types of results and casts between types."""
    pairs = ["cast(i AS text)", "cast(i AS numeric)", "cast(i AS double precision)", "cast(i AS bigint)", "cast(b AS text)", "cast(n AS numeric(14,1))", "cast(n AS numeric(14,6))", "cast(d AS numeric(10,3))",
             "cast(d AS text)", "cast(i AS real)", "cast(i * 2 AS smallint)", "cast(d AS real)", "n::text", "i::text || '!'", "cast(i <> 0 AS text)", "cast(i <> 0 AS int)", "cast(cast(i AS int) AS bool)", "pg_typeof(i)", "pg_typeof(i + b)", "pg_typeof(n * i)", "pg_typeof(d + i)",
             "pg_typeof(i / 2)", "pg_typeof(n / 2)", "pg_typeof(b || 'x')", "pg_typeof(coalesce(i, b))", "pg_typeof(CASE WHEN true THEN i ELSE n END)", "pg_typeof(i > 1)", "cast('1' || cast(abs(i) AS text) AS int)", "cast(n AS int)", "cast(d AS int)", "cast(d AS bigint)", "cast(n AS bigint)",
             "cast('true' AS bool)", "cast('12.50' AS numeric(6,2)) + i", "cast(' 7 ' AS bigint) + i", "cast('1e3' AS double precision) + d", "i::double precision / 2", "i::numeric / 4", "(i::text || '0')::numeric"]
    tables = g.one(("num", "abs(n) < 1000"), ("num", "abs(n) < 1000 AND i <> 0"), ("num", "b < 1000"))
    agg = g.one("pg_typeof(sum(i))", "pg_typeof(sum(b))", "pg_typeof(avg(i))", "pg_typeof(sum(d))", "pg_typeof(count(*))", "pg_typeof(max(n))", "pg_typeof(stddev(i))", "pg_typeof(array_agg(i))", "pg_typeof(string_agg(cast(i AS text), ','))", "pg_typeof(sum(n))")
    if g.chance(0.15):
        return f"SELECT {agg} AS a FROM num"
    return listed(g, tables[0], pairs, 1, 3, key=g.one("i", ""), wheres=[tables[1]]) + ("")


TOPICS = {"case": [(case, 120)], "null_logic": [(nulls, 130)], "texts": [(texts, 160)], "numbers": [(numbers, 150)], "times": [(times, 150)], "casts": [(casts, 70)]}
