CREATE TABLE t (id int PRIMARY KEY, g text, v bigint)

CREATE TABLE u (k int, w double precision)

CREATE VIEW plain AS SELECT id, v * 2 AS doubled FROM t WHERE g IS NOT NULL

SELECT id, v + 1 AS next FROM t WHERE v > 10
----
Materialize (stored by key (id))
  -> project t.id, t.v + Int64(1) AS next (node 3)
       key (id), retracting, no state
    -> filter t.v > Int64(10) (node 2)
         key (id), retracting, no state
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state

SELECT g, count(*), sum(v), avg(v) FILTER (WHERE id > 3), count(DISTINCT v) FROM t GROUP BY g
----
Materialize (stored by key (g))
  -> project t.g, count(Int64(1)) AS count(*) AS count, sum(t.v) AS sum, avg(t.v) FILTER (WHERE t.id > Int64(3)) AS avg, count(DISTINCT t.v) AS count4 (node 3)
       key (g), retracting, no state
    -> aggregate count(Int64(1)), sum(t.v), avg(t.v) FILTER (WHERE t.id > Int32(3)) AS avg(t.v) FILTER (WHERE t.id > Int64(3)), count(DISTINCT t.v) by t.g (node 2)
         key (g), retracting, state grows with an entry a group and an entry a different value
      -> project t.g AS column0, t.v AS column1, t.id > Int32(3) AS column2 (node 1)
           no key, retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state

SELECT count(*) FROM t
----
Materialize (stored by key ())
  -> project count(Int64(1)) AS count(*) AS count (node 3)
       key (), retracting, no state
    -> aggregate count(Int64(1)) (node 2)
         key (), retracting, state bounded by one entry
      -> project (node 1)
           no key, retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state

SELECT DISTINCT g FROM t
----
Materialize (stored by key (g))
  -> aggregate by t.g (node 2)
       key (g), retracting, state grows with an entry a group
    -> project t.g (node 1)
         no key, retracting, no state
      -> Import t (node 0)
           key (id), retracting, no state

SELECT t.id, u.w FROM t JOIN u ON t.id = u.k AND u.w > t.v
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, no state
    -> join t.id = u.k AND normalize_key(u.w) > normalize_key(CAST(t.v AS Float64)); ranges: u.w > CAST(t.v AS Float64) (node 3)
         no key, retracting, state grows with rows of both inputs
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> Import u (node 2)
           no key, retracting, no state

SELECT id FROM t UNION ALL SELECT k FROM u
----
Materialize (stored as counted rows)
  -> union all of 2 inputs (node 5)
       no key, retracting, no state
    -> project t.id (node 1)
         key (id), retracting, no state
      -> Import t (node 0)
           key (id), retracting, no state
    -> project u.k AS id (node 4)
         no key, retracting, no state
      -> project u.k (node 3)
           no key, retracting, no state
        -> Import u (node 2)
             no key, retracting, no state

SELECT doubled, count(*) FROM plain GROUP BY doubled
----
Materialize (stored by key (doubled))
  -> project plain.doubled, count(Int64(1)) AS count(*) AS count (node 5)
       key (doubled), retracting, no state
    -> aggregate count(Int64(1)) by plain.doubled (node 4)
         key (doubled), retracting, state grows with an entry a group
      -> project t.v * Int64(2) AS doubled (node 3)
           no key, retracting, no state
        -> filter t.g IS NOT NULL (node 2)
             no key, retracting, no state
          -> project t.g, t.v (node 1)
               no key, retracting, no state
            -> Import t (node 0)
                 key (id), retracting, no state

SELECT t.id, u.w FROM t LEFT JOIN u ON t.id = u.k
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, no state
    -> join left outer: t.id = u.k (node 3)
         no key, retracting, state grows with rows of both inputs
      -> project t.id (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> Import u (node 2)
           no key, retracting, no state

SELECT t.id, u.w FROM t FULL JOIN u ON t.id = u.k AND u.w > t.v
----
Materialize (stored as counted rows)
  -> project t.id, u.w (node 4)
       no key, retracting, no state
    -> join full outer: t.id = u.k AND normalize_key(u.w) > normalize_key(CAST(t.v AS Float64)); ranges: u.w > CAST(t.v AS Float64) (node 3)
         no key, retracting, state grows with rows of both inputs
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> Import u (node 2)
           no key, retracting, no state

SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.v)
----
Materialize (stored by key (id))
  -> project t.id (node 6)
       key (id), retracting, no state
    -> join left anti: t.v = CAST(__correlated_sq_1.k AS Int64) (node 5)
         key (id), retracting, state grows with rows of the left input and keys of the right one
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> project k, CAST(__correlated_sq_1.k AS Int64) (node 4)
           no key, retracting, no state
        -> project u.k (node 3)
             no key, retracting, no state
          -> Import u (node 2)
               no key, retracting, no state

SELECT id FROM t WHERE v NOT IN (SELECT k FROM u)
----
Materialize (stored by key (id))
  -> project t.id (node 11)
       key (id), retracting, no state
    -> join left anti: every pair (node 10)
         key (id), retracting, state grows with rows of the left input and keys of the right one
      -> join left anti: t.v = __correlated_sq_1.?value (node 8)
           key (id), retracting, state grows with rows of the left input and keys of the right one
        -> join left anti: CASE WHEN t.v IS NULL THEN Boolean(true) END = Boolean(true) (node 7)
             key (id), retracting, state grows with rows of the left input and keys of the right one
          -> project id, v, CASE WHEN t.v IS NULL THEN Boolean(true) END (node 2)
               key (id), retracting, no state
            -> project t.id, t.v (node 1)
                 key (id), retracting, no state
              -> Import t (node 0)
                   key (id), retracting, no state
          -> project ?value, Boolean(true) (node 6)
               no key, retracting, no state
            -> project CAST(u.k AS Int64) AS ?value (node 5)
                 no key, retracting, no state
              -> project u.k (node 4)
                   no key, retracting, no state
                -> Import u (node 3)
                     no key, retracting, no state
        -> project CAST(u.k AS Int64) AS ?value (node 5, shared)
      -> filter __correlated_sq_1.?value IS NULL (node 9)
           no key, retracting, no state
        -> project CAST(u.k AS Int64) AS ?value (node 5, shared)

SELECT id FROM t WHERE v NOT IN (SELECT k FROM u WHERE u.w > t.id)
----
Materialize (stored by key (id))
  -> project t.id (node 5)
       key (id), retracting, no state
    -> join left anti: normalize_key(__correlated_sq_1.w) > normalize_key(CAST(t.id AS Float64)) AND t.v = __correlated_sq_1.?value IS NOT FALSE; ranges: CAST(t.id AS Float64) < __correlated_sq_1.w; __correlated_sq_1.w > CAST(t.id AS Float64) (node 4)
         key (id), retracting, state grows with rows of both inputs
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> project CAST(u.k AS Int64) AS ?value, u.w (node 3)
           no key, retracting, no state
        -> Import u (node 2)
             no key, retracting, no state

SELECT id FROM t WHERE v = 1 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.id)
----
Materialize (stored by key (id))
  -> project t.id (node 6)
       key (id), retracting, no state
    -> filter t.v = Int64(1) OR __correlated_sq_1.mark (node 5)
         key (id), retracting, no state
      -> join left mark: t.id = __correlated_sq_1.k (node 4)
           key (id), retracting, state grows with rows of the left input and keys of the right one
        -> project t.id, t.v (node 1)
             key (id), retracting, no state
          -> Import t (node 0)
               key (id), retracting, no state
        -> project u.k (node 3)
             no key, retracting, no state
          -> Import u (node 2)
               no key, retracting, no state

SELECT a.id, b.id AS other FROM t a LEFT JOIN t b ON a.v < b.v
----
Materialize (stored by key (id, other))
  -> project a.id, b.id AS other (node 3)
       key (id, other), retracting, no state
    -> join left outer: a.v < b.v; ranges: a.v < b.v; b.v > a.v (node 2)
         key (id, id), retracting, state grows with rows of both inputs
      -> project t.id, t.v (node 1)
           key (id), retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
      -> project t.id, t.v (node 1, shared)

SELECT g FROM t INTERSECT SELECT g FROM t WHERE v > 3
----
Materialize (stored by key (g))
  -> join left semi: left.g = right.g (node 6)
       key (g), retracting, state grows with rows of the left input and keys of the right one
    -> aggregate by left.g (node 2)
         key (g), retracting, state grows with an entry a group
      -> project t.g (node 1)
           no key, retracting, no state
        -> Import t (node 0)
             key (id), retracting, no state
    -> project t.g (node 5)
         no key, retracting, no state
      -> filter t.v > Int64(3) (node 4)
           no key, retracting, no state
        -> project t.g, t.v (node 3)
             no key, retracting, no state
          -> Import t (node 0, shared)

SELECT id, v FROM t ORDER BY v DESC LIMIT 3
----
Materialize (stored by key (id))
  -> top_n 3 by t.v DESC, t.id (node 2)
       key (id), retracting, state grows with all rows of its input
    -> project t.id, t.v (node 1)
         key (id), retracting, no state
      -> Import t (node 0)
           key (id), retracting, no state

SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t
----
Materialize (stored by key (id))
  -> project t.id, CAST(row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS Int64) AS n (node 2)
       key (id), retracting, no state
    -> window row_number() per t.g by t.v, t.id, t.g; a change reaches the rows behind it (node 1)
         key (id), retracting, state grows with all rows of its input
      -> Import t (node 0)
           key (id), retracting, no state

SELECT id FROM t WHERE id IN (SELECT k FROM u)
----
Materialize (stored by key (id))
  -> join left semi: t.id = __correlated_sq_1.k (node 4)
       key (id), retracting, state grows with rows of the left input and keys of the right one
    -> project t.id (node 1)
         key (id), retracting, no state
      -> Import t (node 0)
           key (id), retracting, no state
    -> project u.k (node 3)
         no key, retracting, no state
      -> Import u (node 2)
           no key, retracting, no state

WITH c AS (SELECT g, sum(v) AS s FROM t GROUP BY g) SELECT a.g, b.g AS other FROM c a JOIN c b ON a.s = b.s
----
Materialize (stored by key (g, other))
  -> project a.g, b.g AS other (node 5)
       key (g, other), retracting, no state
    -> join a.s = b.s (node 4)
         key (g, g), retracting, state grows with rows of both inputs
      -> project t.g, sum(t.v) AS s (node 3)
           key (g), retracting, no state
        -> aggregate sum(t.v) by t.g (node 2)
             key (g), retracting, state grows with an entry a group
          -> project t.g, t.v (node 1)
               no key, retracting, no state
            -> Import t (node 0)
                 key (id), retracting, no state
      -> project t.g, sum(t.v) AS s (node 3, shared)

SELECT id, now() FROM t
----
ERROR 0A000: now() in a materialized view is not supported yet
HINT: Filter by the current time where the view is read.

SELECT id, random() FROM t
----
ERROR 0A000: function random() is volatile and cannot be used in a materialized view
HINT: Compute it when the row is inserted, for example as the column's DEFAULT.

CREATE TABLE calls (id int PRIMARY KEY, phone int, start timestamp, stop timestamp)

CREATE TABLE events (phone bigint, at timestamp, size double precision)

SELECT c.id, e.at FROM calls c JOIN events e ON e.at BETWEEN c.start AND c.stop
----
Materialize (stored as counted rows)
  -> project c.id, e.at (node 5)
       no key, retracting, no state
    -> join e.at >= c.start AND e.at <= c.stop; ranges: c.stop >= e.at; e.at >= c.start AND e.at <= c.stop (node 4)
         no key, retracting, state grows with rows of both inputs
      -> project calls.id, calls.start, calls.stop (node 1)
           key (id), retracting, no state
        -> Import calls (node 0)
             key (id), retracting, no state
      -> project events.at (node 3)
           no key, retracting, no state
        -> Import events (node 2)
             no key, retracting, no state

SELECT c.id, e.at FROM calls c LEFT JOIN events e ON c.phone = e.phone AND e.at >= c.start AND e.at < c.start + INTERVAL '5 minutes'
----
Materialize (stored as counted rows)
  -> project c.id, e.at (node 6)
       no key, retracting, no state
    -> join left outer: CAST(c.phone AS Int64) = e.phone AND e.at >= c.start AND e.at < c.start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 300000000000 }"); ranges: c.start <= e.at AND c.start > e.at - IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 300000000000 }"); e.at >= c.start AND e.at < c.start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 300000000000 }") (node 5)
         no key, retracting, state grows with rows of both inputs
      -> project id, phone, start, CAST(c.phone AS Int64) (node 2)
           key (id), retracting, no state
        -> project calls.id, calls.phone, calls.start (node 1)
             key (id), retracting, no state
          -> Import calls (node 0)
               key (id), retracting, no state
      -> project events.phone, events.at (node 4)
           no key, retracting, no state
        -> Import events (node 3)
             no key, retracting, no state

SELECT c.id FROM calls c WHERE NOT EXISTS (SELECT 1 FROM events e WHERE e.phone BETWEEN c.phone - 2 AND c.phone + 2)
----
Materialize (stored by key (id))
  -> project c.id (node 5)
       key (id), retracting, no state
    -> join left anti: __correlated_sq_1.phone >= CAST(c.phone - Int32(2) AS Int64) AND __correlated_sq_1.phone <= CAST(c.phone + Int32(2) AS Int64); ranges: CAST(c.phone + Int32(2) AS Int64) >= __correlated_sq_1.phone; __correlated_sq_1.phone >= CAST(c.phone - Int32(2) AS Int64) AND __correlated_sq_1.phone <= CAST(c.phone + Int32(2) AS Int64) (node 4)
         key (id), retracting, state grows with rows of both inputs
      -> project calls.id, calls.phone (node 1)
           key (id), retracting, no state
        -> Import calls (node 0)
             key (id), retracting, no state
      -> project events.phone (node 3)
           no key, retracting, no state
        -> Import events (node 2)
             no key, retracting, no state

SELECT a.at AS first, b.at AS second FROM events a FULL JOIN events b ON a.phone = b.phone AND a.size <= b.size * 2
----
Materialize (stored as counted rows)
  -> project a.at AS first, b.at AS second (node 2)
       no key, retracting, no state
    -> join full outer: a.phone = b.phone AND normalize_key(a.size) <= normalize_key(b.size * Float64(2)); ranges: a.size <= b.size * Float64(2); b.size * Float64(2) >= a.size (node 1)
         no key, retracting, state grows with rows of both inputs
      -> Import events (node 0)
           no key, retracting, no state
      -> Import events (node 0, shared)

SELECT c.id, d.id AS other FROM calls c JOIN calls d ON c.id = d.id AND c.start <= d.stop
----
Materialize (stored by key (id))
  -> project c.id, d.id AS other (node 4)
       key (id) or (other), retracting, no state
    -> join c.id = d.id AND c.start <= d.stop (node 3)
         key (id) or (id), retracting, state grows with rows of both inputs
      -> project calls.id, calls.start (node 1)
           key (id), retracting, no state
        -> Import calls (node 0)
             key (id), retracting, no state
      -> project calls.id, calls.stop (node 2)
           key (id), retracting, no state
        -> Import calls (node 0, shared)
