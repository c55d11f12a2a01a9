CREATE TABLE t (id int PRIMARY KEY, g text, v bigint, f double precision)

SELECT id, v FROM t ORDER BY v DESC, id LIMIT 3 OFFSET 1
----
Materialize (stored by key (id))
  -> top_n 3 offset 1 by t.v DESC, t.id (node 2)
       key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
    -> project t.id, t.v (node 1)
         key (id), retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state

SELECT id, v + 1 AS next FROM t ORDER BY v * 2 LIMIT 3
----
Materialize (stored by key (id))
  -> project t.id, next (node 5)
       key (id), retracting, O(1), no state
    -> top_n 3 by t.v * Int64(2) AS t.v * Int64(2), t.id, next, t.v (node 4)
         key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
      -> project id, next, v, t.v * Int64(2) AS t.v * Int64(2) (node 3)
           key (id), retracting, O(1), no state
        -> project t.id, t.v + Int64(1) AS next, t.v (node 2)
             key (id), retracting, O(1), no state
          -> project t.id, t.v (node 1)
               key (id), retracting, O(1), no state
            -> Import t (node 0)
                 key (id), retracting, O(1), no state

SELECT id FROM t ORDER BY v OFFSET 2
----
Materialize (stored by key (id))
  -> project t.id (node 3)
       key (id), retracting, O(1), no state
    -> top_n all offset 2 by t.v, t.id (node 2)
         key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
      -> project t.id, t.v (node 1)
           key (id), retracting, O(1), no state
        -> Import t (node 0)
             key (id), retracting, O(1), no state

SELECT g FROM t LIMIT 2
----
Materialize (stored as counted rows)
  -> top_n 2 by t.g (node 2)
       no key, retracting, O(log n), state: all rows of its input (bounded by its input)
    -> project t.g (node 1)
         no key, retracting, O(1), no state
      -> Import t (node 0)
           key (id), retracting, O(1), no state

SELECT id, v FROM t ORDER BY f OFFSET 1 FETCH FIRST 2 ROWS WITH TIES
----
Materialize (stored by key (id))
  -> project t.id, t.v (node 7)
       key (id), retracting, O(1), no state
    -> top_n all offset 1 by normalize_key(t.f), t.id, t.v, t.f (node 6)
         key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
      -> project id, v, f, normalize_key(t.f) (node 5)
           key (id), retracting, O(1), no state
        -> project t.id, t.v, t.f (node 4)
             key (id), retracting, O(1), no state
          -> top_n rank 1 to 3 by normalize_key(t.f) (node 3)
               key (id), retracting, O(matches), state: all rows of its input (bounded by its input)
            -> project id, v, f, normalize_key(t.f) (node 2)
                 key (id), retracting, O(1), no state
              -> project t.id, t.v, t.f (node 1)
                   key (id), retracting, O(1), no state
                -> Import t (node 0)
                     key (id), retracting, O(1), no state

SELECT DISTINCT ON (g) g, id, v FROM t ORDER BY g, v DESC
----
Materialize (stored by key (id))
  -> project t.g AS g, t.id AS id, t.v AS v (node 4)
       key (id) or (g), retracting, O(1), no state
    -> project t.id, t.g, t.v (node 3)
         key (id) or (g), retracting, O(1), no state
      -> project t.id, t.g, t.v, $number (node 2)
           key (id) or (g), retracting, O(1), no state
        -> top_n row_number 1 to 1 per t.g by t.g, t.v DESC, t.id, t.f (node 1)
             key (id) or (g), retracting, O(log n), state: all rows of its input (bounded by its input)
          -> Import t (node 0)
               key (id), retracting, O(1), no state

SELECT id, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t) q WHERE n <= 3 AND id > 7
----
Materialize (stored by key (id))
  -> project q.id, CAST(q.n AS Int64) AS n (node 5)
       key (id), retracting, O(1), no state
    -> project t.id, row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS n (node 4)
         key (id), retracting, O(1), no state
      -> filter t.id > Int32(7) (node 3)
           key (id), retracting, O(1), no state
        -> project t.id, row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW (node 2)
             key (id), retracting, O(1), no state
          -> top_n row_number 1 to 3 per t.g by t.v, t.id, t.g, t.f (node 1)
               key (id) or (g, row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), retracting, O(log n), state: all rows of its input (bounded by its input)
            -> Import t (node 0)
                 key (id), retracting, O(1), no state

SELECT id FROM t QUALIFY dense_rank() OVER (PARTITION BY g ORDER BY f DESC) BETWEEN 2 AND 4
----
Materialize (stored by key (id))
  -> project t.id (node 5)
       key (id), retracting, O(1), no state
    -> project t.id, dense_rank() PARTITION BY [t.g] ORDER BY [t.f DESC NULLS FIRST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW (node 4)
         key (id), retracting, O(1), no state
      -> top_n dense_rank 2 to 4 per t.g by normalize_key(t.f) DESC (node 3)
           key (id), retracting, O(matches), state: all rows of its input (bounded by its input)
        -> project id, g, f, normalize_key(t.f) (node 2)
             key (id), retracting, O(1), no state
          -> project t.id, t.g, t.f (node 1)
               key (id), retracting, O(1), no state
            -> Import t (node 0)
                 key (id), retracting, O(1), no state

SELECT id, lag(v) OVER (PARTITION BY g ORDER BY v), avg(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM t
----
Materialize (stored by key (id))
  -> project t.id, lag(t.v) PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS lag, avg(t.v) ORDER BY [t.id ASC NULLS LAST] ROWS BETWEEN 2 PRECEDING AND CURRENT ROW AS avg (node 3)
       key (id), retracting, O(1), no state
    -> window lag(t.v) per t.g by t.v, t.id, t.g, t.f, avg(t.v) ORDER BY [t.id ASC NULLS LAST] ROWS BETWEEN 2 PRECEDING AND CURRENT ROW; a change reaches 1 rows (node 2)
         key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
      -> window avg(t.v) by t.id, t.g, t.v, t.f; a change reaches 2 rows (node 1)
           key (id), retracting, O(log n), state: all rows of its input (bounded by its input)
        -> Import t (node 0)
             key (id), retracting, O(1), no state

SELECT id, sum(v) OVER w, row_number() OVER w FROM t WINDOW w AS (PARTITION BY g ORDER BY v)
----
Materialize (stored by key (id))
  -> project t.id, sum(t.v) PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS sum, CAST(row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW AS Int64) AS row_number (node 4)
       key (id), retracting, O(1), no state
    -> window sum(t.v) per t.g by t.v; a change reaches the rows behind it (node 3)
         key (id), retracting, O(partition), state: all rows of its input (bounded by its input)
      -> project t.id, t.g, t.v, row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW (node 2)
           key (id), retracting, O(1), no state
        -> window row_number() per t.g by t.v, t.id, t.g, t.f; a change reaches the rows behind it (node 1)
             key (id), retracting, O(partition), state: all rows of its input (bounded by its input)
          -> Import t (node 0)
               key (id), retracting, O(1), no state

CREATE VIEW numbered AS SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS n FROM t

SELECT id FROM numbered WHERE n IN (1, 3)
----
Materialize (stored by key (id))
  -> project t.id (node 4)
       key (id), retracting, O(1), no state
    -> filter __common_expr_3 = Int64(1) OR __common_expr_3 = Int64(3) (node 3)
         key (id), retracting, O(1), no state
      -> project assign(row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS __common_expr_3, t.id (node 2)
           key (id), retracting, O(1), no state
        -> top_n row_number 1 to 3 per t.g by t.v, t.id, t.g, t.f (node 1)
             key (id) or (g, row_number() PARTITION BY [t.g] ORDER BY [t.v ASC NULLS LAST] RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), retracting, O(log n), state: all rows of its input (bounded by its input)
          -> Import t (node 0)
               key (id), retracting, O(1), no state
