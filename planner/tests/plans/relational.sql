CREATE TABLE t (id int PRIMARY KEY, g text, v bigint)

CREATE TABLE u (k int, w double precision)

CREATE VIEW plain AS SELECT id, v * 2 AS doubled FROM t WHERE g IS NOT NULL

SELECT id, v + 1 AS next FROM t WHERE v > 10
----
Materialize (stored by key (id))
  -> project t.id, t.v + Int64(1) AS next (node 3)
       key (id), retracting, O(1), no state
    -> filter t.v > Int64(10) (node 2)
         key (id), retracting, O(1), no state
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state

SELECT g, count(*), sum(v), avg(v) FILTER (WHERE id > 3), count(DISTINCT v) FROM t GROUP BY g
----
Materialize (stored by key (g))
  -> project t.g, count(Int64(1)) AS count(*) AS count, sum(t.v) AS sum, avg(t.v) FILTER (WHERE t.id > Int64(3)) AS avg, count(DISTINCT t.v) AS count4 (node 3)
       key (g), retracting, O(1), no state
    -> aggregate count(Int64(1)), sum(t.v), avg(t.v) FILTER (WHERE t.id > Int32(3)) AS avg(t.v) FILTER (WHERE t.id > Int64(3)), count(DISTINCT t.v) by t.g (node 2)
         key (g), retracting, O(log n), state: an entry a group and an entry a different value (bounded by its input)
      -> project t.g AS column0, t.v AS column1, t.id > Int32(3) AS column2 (node 1)
           no key, retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state

SELECT count(*) FROM t
----
Materialize (stored by key ())
  -> project count(Int64(1)) AS count(*) AS count (node 3)
       key (), retracting, O(1), no state
    -> aggregate count(Int64(1)) (node 2)
         key (), retracting, O(1), state: one entry (constant)
      -> project (node 1)
           no key, retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state

SELECT DISTINCT g FROM t
----
Materialize (stored by key (g))
  -> aggregate by t.g (node 2)
       key (g), retracting, O(1), state: an entry a group (bounded by its input)
    -> project t.g (node 1)
         no key, retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state

SELECT t.id, u.w FROM t JOIN u ON t.id = u.k AND u.w > t.v
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, O(1), no state
    -> join t.id = u.k AND normalize_key(u.w) > normalize_key(CAST(t.v AS Float64)); ranges: u.w > CAST(t.v AS Float64) (node 3)
         no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> Import u (node 2)
           no key, retracting, O(1), no state

SELECT id FROM t UNION ALL SELECT k FROM u
----
Materialize (stored as counted rows)
  -> union all of 2 inputs (node 5)
       no key, retracting, O(1), no state
    -> project t.id (node 1)
         key (id), retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state
    -> project u.k AS id (node 4)
         no key, retracting, O(1), no state
      -> project u.k (node 3)
           no key, retracting, O(1), no state
        -> Import u (node 2)
             no key, retracting, O(1), no state

SELECT doubled, count(*) FROM plain GROUP BY doubled
----
Materialize (stored by key (doubled))
  -> project plain.doubled, count(Int64(1)) AS count(*) AS count (node 5)
       key (doubled), retracting, O(1), no state
    -> aggregate count(Int64(1)) by plain.doubled (node 4)
         key (doubled), retracting, O(1), state: an entry a group (bounded by its input)
      -> project t.v * Int64(2) AS doubled (node 3)
           no key, retracting, O(1), no state
        -> filter t.g IS NOT NULL (node 2)
             no key, retracting, O(1), no state
          -> project t.g, t.v (node 1)
               no key, retracting, O(1), no state
            -> Import t (node 0)
                 key (id), retracting, O(1), no state

SELECT t.id, u.w FROM t LEFT JOIN u ON t.id = u.k
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, O(1), no state
    -> join left outer: t.id = u.k (node 3)
         no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.id (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> Import u (node 2)
           no key, retracting, O(1), no state

SELECT t.id, u.w FROM t FULL JOIN u ON t.id = u.k AND u.w > t.v
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, O(1), no state
    -> join full outer: t.id = u.k AND normalize_key(u.w) > normalize_key(CAST(t.v AS Float64)); ranges: u.w > CAST(t.v AS Float64) (node 3)
         no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> Import u (node 2)
           no key, retracting, O(1), no state

SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.v)
----
Materialize (stored by key (id))
  -> project t.id (node 6)
       key (id), retracting, O(1), no state
    -> join left anti: t.v = CAST(__correlated_sq_1.k AS Int64) (node 5)
         key (id), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> project k, CAST(__correlated_sq_1.k AS Int64) (node 4)
           no key, retracting, O(1), no state
        -> project u.k (node 3)
             no key, retracting, O(1), no state
          -> Import u (node 2)
               no key, retracting, O(1), no state

SELECT id FROM t WHERE v NOT IN (SELECT k FROM u)
----
Materialize (stored by key (id))
  -> project t.id (node 11)
       key (id), retracting, O(1), no state
    -> join left anti: every pair (node 10)
         key (id), retracting, O(input), state: rows of the left input and keys of the right one (bounded by its input)
      -> join left anti: t.v = __correlated_sq_1.?value (node 8)
           key (id), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
        -> join left anti: CASE WHEN t.v IS NULL THEN Boolean(true) END = Boolean(true) (node 7)
             key (id), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
          -> project id, v, CASE WHEN t.v IS NULL THEN Boolean(true) END (node 2)
               key (id), retracting, O(1), no state
            -> project t.id, t.v (node 1)
                 key (id), retracting, O(1), no state
              -> Import t (node 0)
                   key (id), retracting, O(1), no state
          -> project ?value, Boolean(true) (node 6)
               no key, retracting, O(1), no state
            -> project CAST(u.k AS Int64) AS ?value (node 5)
                 no key, retracting, O(1), no state
              -> project u.k (node 4)
                   no key, retracting, O(1), no state
                -> Import u (node 3)
                     no key, retracting, O(1), no state
        -> project CAST(u.k AS Int64) AS ?value (node 5, shared)
      -> filter __correlated_sq_1.?value IS NULL (node 9)
           no key, retracting, O(1), no state
        -> project CAST(u.k AS Int64) AS ?value (node 5, shared)

SELECT id FROM t WHERE v NOT IN (SELECT k FROM u WHERE u.w > t.id)
----
Materialize (stored by key (id))
  -> project t.id (node 5)
       key (id), retracting, O(1), no state
    -> join left anti: normalize_key(__correlated_sq_1.w) > normalize_key(CAST(t.id AS Float64)) AND t.v = __correlated_sq_1.?value IS NOT FALSE; ranges: CAST(t.id AS Float64) < __correlated_sq_1.w; __correlated_sq_1.w > CAST(t.id AS Float64) (node 4)
         key (id), retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> project CAST(u.k AS Int64) AS ?value, u.w (node 3)
           no key, retracting, O(1), no state
        -> Import u (node 2)
             no key, retracting, O(1), no state

SELECT id FROM t WHERE v = 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.id)
----
Materialize (stored by key (id))
  -> project t.id (node 6)
       key (id), retracting, O(1), no state
    -> filter t.v = Int64(1) OR __correlated_sq_1.mark (node 5)
         key (id), retracting, O(1), no state
      -> join left mark: t.id = __correlated_sq_1.k (node 4)
           key (id), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
        -> project t.id, t.v (node 1)
             key (id), retracting, O(1), no state
          -> Import t (node 0)
               key (id), retracting, O(1), no state
        -> project u.k (node 3)
             no key, retracting, O(1), no state
          -> Import u (node 2)
               no key, retracting, O(1), no state

SELECT a.id, b.id AS other FROM t a LEFT JOIN t b ON a.v < b.v
----
Materialize (stored by key (id, other))
  -> project a.id, b.id AS other (node 3)
       key (id, other), retracting, O(1), no state
    -> join left outer: a.v < b.v; ranges: a.v < b.v; b.v > a.v (node 2)
         key (id, id), retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
      -> project t.id, t.v (node 1, shared)

SELECT g FROM t INTERSECT SELECT g FROM t WHERE v > 3
----
Materialize (stored by key (g))
  -> join left semi: left.g = right.g (node 6)
       key (g), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
    -> aggregate by left.g (node 2)
         key (g), retracting, O(1), state: an entry a group (bounded by its input)
      -> project t.g (node 1)
           no key, retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state
    -> project t.g (node 5)
         no key, retracting, O(1), no state
      -> filter t.v > Int64(3) (node 4)
           no key, retracting, O(1), no state
        -> project t.g, t.v (node 3)
             no key, retracting, O(1), no state
          -> Import t (node 0, shared)

SELECT id, v FROM t ORDER BY v DESC LIMIT 3
----
Materialize (stored by key (id))
  -> top_n 3 by t.v DESC, t.id (node 2)
       key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
    -> project t.id, t.v (node 1)
         key (id), retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state

SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t
----
Materialize (stored by key (id))
  -> project t.id, CAST(row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS Int64) AS n (node 2)
       key (id), retracting, O(1), no state
    -> window row_number() per t.g by t.v, t.id, t.g; a change reaches the rows behind it (node 1)
         key (id), retracting, O(partition), state: all rows of its input (bounded by its input)
      -> Import t (node 0)
           key (id), retracting, O(1), no state

SELECT id FROM t WHERE id IN (SELECT k FROM u)
----
Materialize (stored by key (id))
  -> join left semi: t.id = __correlated_sq_1.k (node 4)
       key (id), retracting, O(matches), state: rows of the left input and keys of the right one (bounded by its input)
    -> project t.id (node 1)
         key (id), retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state
    -> project u.k (node 3)
         no key, retracting, O(1), no state
      -> Import u (node 2)
           no key, retracting, O(1), no state

WITH c AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, b.g AS other FROM c a JOIN c b ON a.s = b.s
----
Materialize (stored by key (g, other))
  -> project a.g, b.g AS other (node 5)
       key (g, other), retracting, O(1), no state
    -> join a.s = b.s (node 4)
         key (g, g), retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project t.g, sum(t.v) AS s (node 3)
           key (g), retracting, O(1), no state
        -> aggregate sum(t.v) by t.g (node 2)
             key (g), retracting, O(1), state: an entry a group (bounded by its input)
          -> project t.g, t.v (node 1)
               no key, retracting, O(1), no state
            -> Import t (node 0)
                 key (id), retracting, O(1), no state
      -> project t.g, sum(t.v) AS s (node 3, shared)

SELECT id, now() FROM t
----
ERROR 0A000: now() in a materialized view is not supported yet
HINT: Filter by the current time where the view is read.

SELECT id, random() FROM t
----
ERROR 0A000: function random() is volatile and cannot be used in a materialized view
HINT: Compute it when the row is inserted, for example as the column's DEFAULT.
