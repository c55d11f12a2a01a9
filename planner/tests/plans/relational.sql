CREATE TABLE t (id int PRIMARY KEY, g text, v bigint)

CREATE TABLE u (k int, w double precision)

CREATE VIEW plain AS SELECT id, v * 2 AS doubled FROM t WHERE g IS NOT NULL

SELECT id, v + 1 AS next FROM t WHERE v > 10

SELECT g, count(*), sum(v), avg(v) FILTER (WHERE id > 3), count(DISTINCT v) FROM t GROUP BY g

SELECT count(*) FROM t

SELECT DISTINCT g FROM t

SELECT t.id, u.w FROM t JOIN u ON t.id = u.k AND u.w > t.v

SELECT id FROM t UNION ALL SELECT k FROM u

SELECT doubled, count(*) FROM plain GROUP BY doubled

SELECT t.id, u.w FROM t LEFT JOIN u ON t.id = u.k

SELECT id, v FROM t ORDER BY v DESC LIMIT 3

SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t

SELECT id FROM t WHERE id IN (SELECT k FROM u)

WITH c AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, b.g AS other FROM c a JOIN c b ON a.s = b.s

SELECT id, now() FROM t

SELECT id, random() FROM t
