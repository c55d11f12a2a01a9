-- A view for each operator. "-- name; row; promise" begins each: which row comes and goes (see work.rs), and what that may cost. "none" has no view.
-- none: t; middle; flat
-- none: u; other; flat
-- none: few; few; flat
-- none: tree; leaf; flat
-- filter; middle; flat
SELECT id, v FROM t WHERE v % 3 <> 5
-- projection; middle; flat
SELECT id, v * 2 AS d, upper(s) AS s FROM t
-- unnest; middle; flat
SELECT id, unnest(xs) AS x FROM t
-- UNION ALL; middle; flat
SELECT id, v FROM t UNION ALL SELECT id, v FROM u
-- UNION; middle; flat
SELECT g, k FROM t UNION SELECT 0, k FROM u
-- DISTINCT; middle; flat
SELECT DISTINCT k, g % 2 AS h FROM t
-- INTERSECT; middle; flat
SELECT k FROM t INTERSECT SELECT k FROM u
-- EXCEPT; middle; flat
SELECT k FROM t EXCEPT SELECT k FROM u
-- EXCEPT ALL; middle; flat
SELECT k FROM t EXCEPT ALL SELECT k FROM u
-- count, sum, avg; middle; flat
SELECT g, count(*), sum(v), avg(v) FROM t GROUP BY g
-- count, sum, no GROUP BY; middle; flat
SELECT count(*), sum(v) FROM t
-- stddev, corr; middle; flat
SELECT g, stddev(v), corr(v, k) FROM t GROUP BY g
-- ROLLUP; middle; flat
SELECT g, p, count(*), sum(v) FROM t GROUP BY ROLLUP (g, p)
-- min, max; middle; log n
SELECT g, min(v), max(v) FROM t GROUP BY g
-- count(DISTINCT); middle; log n
SELECT g, count(DISTINCT k) FROM t GROUP BY g
-- median; middle; log n
SELECT g, median(v) FROM t GROUP BY g
-- median, no GROUP BY; middle; log n
SELECT median(v) FROM t
-- percentile_cont; middle; log n
SELECT g, percentile_cont(0.9) WITHIN GROUP (ORDER BY v) FROM t GROUP BY g
-- percentile_disc; middle; log n
SELECT g, percentile_disc(0.1) WITHIN GROUP (ORDER BY v) FROM t GROUP BY g
-- string_agg; middle; group of 100
SELECT p, string_agg(s, ',' ORDER BY id) FROM t GROUP BY p
-- array_agg; middle; group of 100
SELECT p, array_agg(v ORDER BY v DESC) FROM t GROUP BY p
-- mode, first_value; middle; group of 100
SELECT p, mode() WITHIN GROUP (ORDER BY g), first_value(v ORDER BY v) FROM t GROUP BY p
-- INNER JOIN, 1 match; middle; matches
SELECT t.id, u.v FROM t JOIN u ON t.k = u.k
-- INNER JOIN, 10 matches; other; matches
SELECT t.id, u.v FROM t JOIN u ON t.k = u.k
-- LEFT JOIN, 1 match; middle; matches
SELECT t.id, u.v FROM t LEFT JOIN u ON t.k = u.k
-- LEFT JOIN, 10 matches; other; matches
SELECT t.id, u.v FROM t LEFT JOIN u ON t.k = u.k
-- FULL JOIN, 1 match; middle; matches
SELECT t.id, u.v FROM t FULL JOIN u ON t.k = u.k
-- FULL JOIN, 10 matches; other; matches
SELECT t.id, u.v FROM t FULL JOIN u ON t.k = u.k
-- EXISTS; middle; matches
SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
-- NOT EXISTS; middle; matches
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
-- NOT EXISTS, 10 matches; other; matches
SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)
-- NOT IN; middle; matches
SELECT id FROM t WHERE k NOT IN (SELECT k FROM u)
-- band join, 5 matches; few; matches
SELECT t.id, f.id AS f FROM few f JOIN t ON t.v BETWEEN f.v - 5 AND f.v + 5
-- band LEFT JOIN, 5 matches; few; matches
SELECT t.id, f.id AS f FROM few f LEFT JOIN t ON t.v BETWEEN f.v - 5 AND f.v + 5
-- band join of two large, 4 matches; middle; matches
SELECT t.id, u.id AS u FROM t JOIN u ON u.v BETWEEN t.v - 5 AND t.v + 5
-- inequality join, 5 matches; few at end; matches
SELECT t.id, f.id AS f FROM few f JOIN t ON t.v > f.v AND f.id > 9
-- scalar subquery; middle; flat
SELECT id FROM few WHERE v > (SELECT avg(v) FROM t)
-- correlated scalar subquery; middle; matches
SELECT f.id, (SELECT sum(t.v) FROM t WHERE t.g = f.id) AS s FROM few f
-- LIMIT, row not shown; middle; log n
SELECT id, v FROM t ORDER BY v DESC LIMIT 10
-- LIMIT OFFSET, row shown; end; log n
SELECT id, v FROM t ORDER BY v DESC LIMIT 1100 OFFSET 10
-- row_number() <= 3, row not shown; middle; log n
SELECT id, g FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM t) q WHERE n <= 3
-- row_number() <= 150, row shown; end; log n
SELECT id, g FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC) AS n FROM t) q WHERE n <= 150
-- DISTINCT ON; middle; log n
SELECT DISTINCT ON (g) g, id, v FROM t ORDER BY g, v DESC
-- LATERAL with LIMIT; middle; log n
SELECT f.id, x.v FROM few f, LATERAL (SELECT v FROM t WHERE t.g = f.id ORDER BY v DESC LIMIT 3) x
-- row_number(); end; suffix of 100
SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t
-- rank(); end; suffix of 100
SELECT id, rank() OVER (PARTITION BY g ORDER BY v) AS n FROM t
-- running sum; end; suffix of 100
SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v) AS n FROM t
-- running max; end; suffix of 100
SELECT id, max(v % 1000) OVER (PARTITION BY g ORDER BY v) AS n FROM t
-- lag; middle; log n
SELECT id, lag(v) OVER (PARTITION BY g ORDER BY v) AS n FROM t
-- lag, no PARTITION BY; middle; log n
SELECT id, lag(v) OVER (ORDER BY v) AS n FROM t
-- moving ROWS frame; middle; log n
SELECT id, avg(v) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN 5 PRECEDING AND CURRENT ROW) AS n FROM t
-- moving RANGE frame; middle; partition of 100
SELECT id, sum(v) OVER (PARTITION BY p ORDER BY v RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS n FROM t
-- ntile, percent_rank; middle; partition of 100
SELECT id, ntile(4) OVER (PARTITION BY p ORDER BY v) AS n, percent_rank() OVER (PARTITION BY p ORDER BY v) AS r FROM t
-- WITH RECURSIVE, a leaf; leaf; flat
WITH RECURSIVE reached (node, depth) AS (SELECT 0::bigint, 0 UNION SELECT tree.child, depth + 1 FROM reached JOIN tree ON tree.parent = reached.node)
SELECT node, depth FROM reached
-- WITH RECURSIVE, 111 nodes; branch; nodes
WITH RECURSIVE reached (node, depth) AS (SELECT 0::bigint, 0 UNION SELECT tree.child, depth + 1 FROM reached JOIN tree ON tree.parent = reached.node)
SELECT node, depth FROM reached
-- HOP; middle; flat
SELECT window_start, count(*) AS n, max(v) AS m FROM HOP(t, ts, INTERVAL '2 seconds', INTERVAL '10 seconds') GROUP BY window_start
