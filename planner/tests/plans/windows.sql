CREATE TABLE bids (auction bigint, price int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)

SELECT window_start, window_end, count(*) FROM TUMBLE(bids, ts, INTERVAL '10 s') GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, count(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, count(*) FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, count(*) FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECONDS)) GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, count(*) FROM TUMBLE((SELECT * FROM bids), ts, INTERVAL '10 s') GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project window_start, window_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), no state
    -> aggregate count(Int64(1)) by window_start, window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), TUMBLE_END(ts, INTERVAL '10' SECOND), count(*) FROM bids GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)
----
Materialize (stored by key (tumble_start, tumble_end))
  -> project bids.window_start AS tumble_start, bids.window_end AS tumble_end, count(Int64(1)) AS count(*) AS count (node 5)
       key (tumble_start, tumble_end), retracting, watermark (tumble_start, tumble_end), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 4)
         key (window_start, window_end), retracting, watermark (window_start, window_end), O(1), state: an entry a group (bounded by its input)
      -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, tumble_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
           no key, retracting, watermark (window_start, window_end), O(1), no state
        -> filter bids.ts IS NOT NULL (node 2)
             no key, retracting, watermark (ts), O(1), no state
          -> project bids.ts (node 1)
               no key, retracting, watermark (ts), O(1), no state
            -> Import bids (node 0)
                 no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, sum(price) FROM HOP(bids, ts, INTERVAL '2 s', INTERVAL '10 s') GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, sum(bids.price) AS sum (node 7)
       key (window_start, window_end), retracting, O(1), no state
    -> aggregate sum(bids.price) by bids.window_start, bids.window_end (node 6)
         key (window_start, window_end), retracting, O(1), state: an entry a group (bounded by its input)
      -> project bids.price, window_start, window_start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }") AS window_end (node 5)
           no key, retracting, O(1), no state
        -> unnest window_start (node 4)
             no key, retracting, O(matches), no state
          -> project bids.price, hop_starts(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 2000000000 }"), IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start (node 3)
               no key, retracting, O(1), no state
            -> filter bids.ts IS NOT NULL (node 2)
                 no key, retracting, watermark (ts), O(1), no state
              -> project bids.price, bids.ts (node 1)
                   no key, retracting, watermark (ts), O(1), no state
                -> Import bids (node 0)
                     no key, retracting, watermark (ts), O(1), no state

SELECT HOP_START(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), HOP_END(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), sum(price) FROM bids GROUP BY HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
----
Materialize (stored by key (hop_start, hop_end))
  -> project bids.window_start AS hop_start, bids.window_end AS hop_end, sum(bids.price) AS sum (node 7)
       key (hop_start, hop_end), retracting, O(1), no state
    -> aggregate sum(bids.price) by bids.window_start, bids.window_end (node 6)
         key (window_start, window_end), retracting, O(1), state: an entry a group (bounded by its input)
      -> project bids.price, window_start, window_start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }") AS window_end (node 5)
           no key, retracting, O(1), no state
        -> unnest window_start (node 4)
             no key, retracting, O(matches), no state
          -> project bids.price, hop_starts(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 2000000000 }"), IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start (node 3)
               no key, retracting, O(1), no state
            -> filter bids.ts IS NOT NULL (node 2)
                 no key, retracting, watermark (ts), O(1), no state
              -> project bids.price, bids.ts (node 1)
                   no key, retracting, watermark (ts), O(1), no state
                -> Import bids (node 0)
                     no key, retracting, watermark (ts), O(1), no state

SELECT auction, SESSION_START(ts, INTERVAL '10' SECOND), SESSION_END(ts, INTERVAL '10' SECOND), count(*) FROM bids GROUP BY auction, SESSION(ts, INTERVAL '10' SECOND)
----
Materialize (stored by key (auction, session_start, session_end))
  -> project bids.auction, bids.window_start AS session_start, bids.window_end AS session_end, count(Int64(1)) AS count(*) AS count (node 6)
       key (auction, session_start, session_end), retracting, O(1), no state
    -> aggregate count(Int64(1)) by bids.auction, bids.window_start, bids.window_end (node 5)
         key (auction, window_start, window_end), retracting, O(1), state: an entry a group (bounded by its input)
      -> project bids.auction, session_start(bids.ts,IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) PARTITION BY [bids.auction] ORDER BY [bids.ts ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS window_start, session_end(bids.ts,IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) PARTITION BY [bids.auction] ORDER BY [bids.ts ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS window_end (node 4)
           no key, retracting, O(1), no state
        -> window session_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")), session_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) per bids.auction by bids.ts; a change reaches the sessions around it (node 3)
             no key, retracting, O(matches), state: all rows of its input (bounded by its input)
          -> filter bids.ts IS NOT NULL (node 2)
               no key, retracting, watermark (ts), O(1), no state
            -> project bids.auction, bids.ts (node 1)
                 no key, retracting, watermark (ts), O(1), no state
              -> Import bids (node 0)
                   no key, retracting, watermark (ts), O(1), no state

SELECT auction, window_start, window_end, count(*) FROM TABLE(SESSION(DATA => TABLE bids PARTITION BY (auction), TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '10' SECONDS)) GROUP BY auction, window_start, window_end
----
Materialize (stored by key (auction, window_start, window_end))
  -> project bids.auction, bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 6)
       key (auction, window_start, window_end), retracting, O(1), no state
    -> aggregate count(Int64(1)) by bids.auction, bids.window_start, bids.window_end (node 5)
         key (auction, window_start, window_end), retracting, O(1), state: an entry a group (bounded by its input)
      -> project bids.auction, session_start(bids.ts,IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) PARTITION BY [bids.auction] ORDER BY [bids.ts ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS window_start, session_end(bids.ts,IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) PARTITION BY [bids.auction] ORDER BY [bids.ts ASC NULLS LAST] ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING AS window_end (node 4)
           no key, retracting, O(1), no state
        -> window session_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")), session_end(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) per bids.auction by bids.ts; a change reaches the sessions around it (node 3)
             no key, retracting, O(matches), state: all rows of its input (bounded by its input)
          -> filter bids.ts IS NOT NULL (node 2)
               no key, retracting, watermark (ts), O(1), no state
            -> project bids.auction, bids.ts (node 1)
                 no key, retracting, watermark (ts), O(1), no state
              -> Import bids (node 0)
                   no key, retracting, watermark (ts), O(1), no state

SELECT window_start, window_end, count(*) FROM TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '2' SECONDS, INTERVAL '10' SECOND)) GROUP BY window_start, window_end
----
Materialize (stored by key (window_start, window_end))
  -> project bids.window_start, bids.window_end, count(Int64(1)) AS count(*) AS count (node 6)
       key (window_start, window_end), retracting, watermark (window_start), O(1), no state
    -> aggregate count(Int64(1)) by bids.window_start, bids.window_end (node 5)
         key (window_start, window_end), retracting, watermark (window_start), O(1), state: an entry a group (bounded by its input)
      -> unnest window_end (node 4)
           no key, retracting, watermark (window_start), O(matches), no state
        -> project tumble_start(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start, cumulate_ends(bids.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 2000000000 }"), IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_end (node 3)
             no key, retracting, watermark (window_start), O(1), no state
          -> filter bids.ts IS NOT NULL (node 2)
               no key, retracting, watermark (ts), O(1), no state
            -> project bids.ts (node 1)
                 no key, retracting, watermark (ts), O(1), no state
              -> Import bids (node 0)
                   no key, retracting, watermark (ts), O(1), no state

SELECT a.auction, HOP_START(b.ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), count(*) FROM bids a JOIN bids b USING (auction) GROUP BY a.auction, HOP(b.ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
----
Materialize (stored as counted rows)
  -> project a.auction, window_start AS hop_start, count(Int64(1)) AS count(*) AS count (node 9)
       no key, retracting, O(1), no state
    -> aggregate count(Int64(1)) by a.auction, window_start, window_end (node 8)
         key (auction, window_start, window_end), retracting, O(1), state: an entry a group (bounded by its input)
      -> project a.auction, window_start, window_start + IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }") AS window_end (node 7)
           no key, retracting, O(1), no state
        -> unnest window_start (node 6)
             no key, retracting, O(matches), no state
          -> project a.auction, hop_starts(b.ts, IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 2000000000 }"), IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 10000000000 }")) AS window_start (node 5)
               no key, retracting, O(1), no state
            -> join a.auction = b.auction (node 4)
                 no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project bids.auction (node 1)
                   no key, retracting, O(1), no state
                -> Import bids (node 0)
                     no key, retracting, watermark (ts), O(1), no state
              -> filter bids.ts IS NOT NULL (node 3)
                   no key, retracting, watermark (ts), O(1), no state
                -> project bids.auction, bids.ts (node 2)
                     no key, retracting, watermark (ts), O(1), no state
                  -> Import bids (node 0, shared)
