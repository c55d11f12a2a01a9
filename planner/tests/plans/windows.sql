CREATE TABLE bids (auction bigint, price int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)

SELECT window_start, window_end, count(*) FROM TUMBLE(bids, ts, INTERVAL '10 s') GROUP BY window_start, window_end

SELECT window_start, window_end, count(*) FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

SELECT window_start, window_end, count(*) FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end

SELECT window_start, window_end, count(*) FROM TABLE(TUMBLE(DATA => TABLE bids, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECONDS)) GROUP BY window_start, window_end

SELECT window_start, window_end, count(*) FROM TUMBLE((SELECT * FROM bids), ts, INTERVAL '10 s') GROUP BY window_start, window_end

SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), TUMBLE_END(ts, INTERVAL '10' SECOND), count(*) FROM bids GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)

SELECT window_start, window_end, sum(price) FROM HOP(bids, ts, INTERVAL '2 s', INTERVAL '10 s') GROUP BY window_start, window_end

SELECT HOP_START(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), HOP_END(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND), sum(price) FROM bids GROUP BY HOP(ts, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
