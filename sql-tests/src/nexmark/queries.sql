-- Nexmark's queries q0 to q22 but for q11 to q13, which need event time. "in PostgreSQL" is the same query without our windows; "decides" names the columns that ties leave decided.
-- q0
SELECT auction, bidder, price, date_time, extra FROM bid
-- q1
SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid
-- q2
SELECT auction, price FROM bid WHERE auction % 123 = 0
-- q3
SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
-- q4
SELECT category, avg(final) FROM (
  SELECT max(b.price) AS final, a.category FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) q
GROUP BY category
-- q5
WITH counts AS (
  SELECT auction, count(*) AS num, window_start, window_end
  FROM HOP(bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds') GROUP BY auction, window_start, window_end)
SELECT c.auction, c.num FROM counts c
JOIN (SELECT max(num) AS maxn, window_start, window_end FROM counts GROUP BY window_start, window_end) m
  ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num >= m.maxn
-- q5 in PostgreSQL
SELECT auction, num FROM (
  SELECT auction, num, max(num) OVER (PARTITION BY start) AS maxn FROM (
    SELECT auction, count(*) AS num, start FROM bid,
      generate_series(date_bin('2 seconds', date_time, '1970-01-01') - INTERVAL '8 seconds',
        date_bin('2 seconds', date_time, '1970-01-01'), INTERVAL '2 seconds') AS start
    GROUP BY auction, start) counts) q
WHERE num = maxn
-- q6
SELECT seller, avg(final) OVER (PARTITION BY seller ORDER BY date_time ROWS BETWEEN 9 PRECEDING AND CURRENT ROW) FROM (
  SELECT a.seller, b.price AS final, b.date_time, row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS rn
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) q
WHERE rn = 1
-- q7
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
JOIN (SELECT max(price) AS maxprice, window_end FROM TUMBLE(bid, date_time, INTERVAL '10 seconds') GROUP BY window_start, window_end) m
  ON b.price = m.maxprice AND b.date_time BETWEEN m.window_end - INTERVAL '10 seconds' AND m.window_end
-- q7 in PostgreSQL
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
JOIN (SELECT max(price) AS maxprice, date_bin('10 seconds', date_time, '1970-01-01') AS start FROM bid GROUP BY start) m
  ON b.price = m.maxprice AND b.date_time BETWEEN m.start AND m.start + INTERVAL '10 seconds'
-- q8
SELECT p.id, p.name, p.window_start FROM
  (SELECT id, name, window_start, window_end FROM TUMBLE(person, date_time, INTERVAL '10 seconds') GROUP BY id, name, window_start, window_end) p
JOIN (SELECT seller, window_start, window_end FROM TUMBLE(auction, date_time, INTERVAL '10 seconds') GROUP BY seller, window_start, window_end) a
  ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
-- q8 in PostgreSQL
SELECT DISTINCT p.id, p.name, date_bin('10 seconds', p.date_time, '1970-01-01') FROM person p JOIN auction a
  ON p.id = a.seller AND date_bin('10 seconds', p.date_time, '1970-01-01') = date_bin('10 seconds', a.date_time, '1970-01-01')
-- q9
SELECT * FROM (
  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
         row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS rn
  FROM auction a JOIN bid b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires) q
WHERE rn <= 1
-- q9 decides id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra, auction, price, bid_date_time, rn
-- q10
SELECT auction, bidder, price, date_time, extra, to_char(date_time, 'YYYY-MM-DD') AS dt, to_char(date_time, 'HH24:MI') AS hm FROM bid
-- q14
SELECT auction, bidder, 0.908 * price AS price,
  CASE WHEN extract(hour FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
    WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime' ELSE 'otherTime' END AS bid_time_type,
  date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
-- q15
SELECT to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders, count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions, count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY to_char(date_time, 'YYYY-MM-DD')
-- q16
SELECT channel, to_char(date_time, 'YYYY-MM-DD') AS day, max(to_char(date_time, 'HH24:MI')) AS minute, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  count(DISTINCT bidder) AS total_bidders, count(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
  count(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
  count(DISTINCT auction) AS total_auctions, count(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
  count(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
FROM bid GROUP BY channel, to_char(date_time, 'YYYY-MM-DD')
-- q17
SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day, count(*) AS total_bids,
  count(*) FILTER (WHERE price < 10000) AS rank1_bids, count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
  count(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
FROM bid GROUP BY auction, to_char(date_time, 'YYYY-MM-DD')
-- q18
SELECT auction, bidder, price, channel, url, date_time, extra FROM (
  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS rn FROM bid) q WHERE rn <= 1
-- q18 decides auction, bidder, date_time
-- q19
SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bid) q WHERE rn <= 10
-- q19 decides auction, price, rn
-- q20
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time AS bid_date_time, b.extra AS bid_extra,
  a.item_name, a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller, a.category, a.extra AS auction_extra
FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
-- q21
SELECT auction, bidder, price, channel,
  CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
    ELSE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] END AS channel_id
FROM bid WHERE (regexp_match(url, '(&|^)channel_id=([^&]*)'))[2] IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
-- q22
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM bid
