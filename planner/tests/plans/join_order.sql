CREATE TABLE region (r_regionkey int PRIMARY KEY, r_name text)

CREATE TABLE nation (n_nationkey int PRIMARY KEY, n_name text, n_regionkey int)

CREATE TABLE supplier (s_suppkey int PRIMARY KEY, s_name text, s_nationkey int)

CREATE TABLE customer (c_custkey int PRIMARY KEY, c_name text, c_nationkey int)

CREATE TABLE part (p_partkey int PRIMARY KEY, p_name text, p_type text)

CREATE TABLE partsupp (ps_partkey int, ps_suppkey int, ps_supplycost numeric(15,2), PRIMARY KEY (ps_partkey, ps_suppkey))

CREATE TABLE orders (o_orderkey bigint PRIMARY KEY, o_custkey int, o_orderdate date)

CREATE TABLE lineitem (l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2), l_extendedprice numeric(15,2), l_discount numeric(15,2), l_shipdate date, PRIMARY KEY (l_orderkey, l_linenumber))

SELECT n_name, sum(l_extendedprice) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= date '1994-01-01'
GROUP BY n_name
----
Materialize (stored by key (n_name))
  -> project nation.n_name, sum(lineitem.l_extendedprice) AS revenue (node 24)
       key (n_name), retracting, O(1), no state
    -> aggregate sum(lineitem.l_extendedprice) by nation.n_name (node 23)
         key (n_name), retracting, O(1), state: an entry a group (bounded by its input)
      -> project lineitem.l_extendedprice, nation.n_name (node 22)
           no key, retracting, O(1), no state
        -> join lineitem.l_suppkey = supplier.s_suppkey AND customer.c_nationkey = supplier.s_nationkey (node 21)
             no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> project customer.c_nationkey, nation.n_name, lineitem.l_suppkey, lineitem.l_extendedprice (node 18)
               no key, retracting, O(1), no state
            -> join orders.o_orderkey = lineitem.l_orderkey (node 17)
                 no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project customer.c_nationkey, nation.n_name, orders.o_orderkey (node 14)
                   key (o_orderkey), retracting, O(1), no state
                -> join customer.c_custkey = orders.o_custkey (node 13)
                     key (o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                  -> project customer.c_custkey, customer.c_nationkey, nation.n_name (node 9)
                       key (c_custkey), retracting, O(1), no state
                    -> join customer.c_nationkey = nation.n_nationkey (node 8)
                         key (c_custkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                      -> project customer.c_custkey, customer.c_nationkey (node 1)
                           key (c_custkey), retracting, O(1), no state
                        -> Import customer (node 0)
                             key (c_custkey), retracting, O(1), no state
                      -> project nation.n_nationkey, nation.n_name (node 7)
                           key (n_nationkey), retracting, O(1), no state
                        -> join nation.n_regionkey = region.r_regionkey (node 6)
                             key (n_nationkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                          -> Import nation (node 2)
                               key (n_nationkey), retracting, O(1), no state
                          -> project region.r_regionkey (node 5)
                               key (r_regionkey), retracting, O(1), no state
                            -> filter region.r_name = Utf8("ASIA") (node 4)
                                 key (r_regionkey), retracting, O(1), no state
                              -> Import region (node 3)
                                   key (r_regionkey), retracting, O(1), no state
                  -> project orders.o_orderkey, orders.o_custkey (node 12)
                       key (o_orderkey), retracting, O(1), no state
                    -> filter orders.o_orderdate >= Date32("1994-01-01") (node 11)
                         key (o_orderkey), retracting, O(1), no state
                      -> Import orders (node 10)
                           key (o_orderkey), retracting, O(1), no state
              -> project lineitem.l_orderkey, lineitem.l_suppkey, lineitem.l_extendedprice (node 16)
                   no key, retracting, O(1), no state
                -> Import lineitem (node 15)
                     key (l_orderkey, l_linenumber), retracting, O(1), no state
          -> project supplier.s_suppkey, supplier.s_nationkey (node 20)
               key (s_suppkey), retracting, O(1), no state
            -> Import supplier (node 19)
                 key (s_suppkey), retracting, O(1), no state

ROWS region 5, nation 25, supplier 10000, customer 150000, part 200000, partsupp 800000, orders 1500000, lineitem 6000000

SELECT n_name, sum(l_extendedprice) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= date '1994-01-01'
GROUP BY n_name
----
Materialize (stored by key (n_name))
  -> project nation.n_name, sum(lineitem.l_extendedprice) AS revenue (node 24)
       key (n_name), retracting, O(1), no state
    -> aggregate sum(lineitem.l_extendedprice) by nation.n_name (node 23)
         key (n_name), retracting, O(1), state: an entry a group (bounded by its input)
      -> project lineitem.l_extendedprice, nation.n_name (node 22)
           no key, retracting, O(1), no state
        -> join lineitem.l_suppkey = supplier.s_suppkey AND customer.c_nationkey = supplier.s_nationkey (node 21)
             no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> project customer.c_nationkey, nation.n_name, lineitem.l_suppkey, lineitem.l_extendedprice (node 18)
               no key, retracting, O(1), no state
            -> join orders.o_orderkey = lineitem.l_orderkey (node 17)
                 no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project customer.c_nationkey, nation.n_name, orders.o_orderkey (node 14)
                   key (o_orderkey), retracting, O(1), no state
                -> join customer.c_custkey = orders.o_custkey (node 13)
                     key (o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                  -> project customer.c_custkey, customer.c_nationkey, nation.n_name (node 9)
                       key (c_custkey), retracting, O(1), no state
                    -> join customer.c_nationkey = nation.n_nationkey (node 8)
                         key (c_custkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                      -> project customer.c_custkey, customer.c_nationkey (node 1)
                           key (c_custkey), retracting, O(1), no state
                        -> Import customer (node 0)
                             key (c_custkey), retracting, O(1), no state
                      -> project nation.n_nationkey, nation.n_name (node 7)
                           key (n_nationkey), retracting, O(1), no state
                        -> join nation.n_regionkey = region.r_regionkey (node 6)
                             key (n_nationkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                          -> Import nation (node 2)
                               key (n_nationkey), retracting, O(1), no state
                          -> project region.r_regionkey (node 5)
                               key (r_regionkey), retracting, O(1), no state
                            -> filter region.r_name = Utf8("ASIA") (node 4)
                                 key (r_regionkey), retracting, O(1), no state
                              -> Import region (node 3)
                                   key (r_regionkey), retracting, O(1), no state
                  -> project orders.o_orderkey, orders.o_custkey (node 12)
                       key (o_orderkey), retracting, O(1), no state
                    -> filter orders.o_orderdate >= Date32("1994-01-01") (node 11)
                         key (o_orderkey), retracting, O(1), no state
                      -> Import orders (node 10)
                           key (o_orderkey), retracting, O(1), no state
              -> project lineitem.l_orderkey, lineitem.l_suppkey, lineitem.l_extendedprice (node 16)
                   no key, retracting, O(1), no state
                -> Import lineitem (node 15)
                     key (l_orderkey, l_linenumber), retracting, O(1), no state
          -> project supplier.s_suppkey, supplier.s_nationkey (node 20)
               key (s_suppkey), retracting, O(1), no state
            -> Import supplier (node 19)
                 key (s_suppkey), retracting, O(1), no state

SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, sum(l_extendedprice) AS volume
FROM supplier, lineitem, orders, customer, nation n1, nation n2
WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
  AND c_nationkey = n2.n_nationkey
  AND ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
GROUP BY n1.n_name, n2.n_name
----
Materialize (stored by key (supp_nation, cust_nation))
  -> project n1.n_name AS supp_nation, n2.n_name AS cust_nation, sum(lineitem.l_extendedprice) AS volume (node 24)
       key (supp_nation, cust_nation), retracting, O(1), no state
    -> aggregate sum(lineitem.l_extendedprice) by n1.n_name, n2.n_name (node 23)
         key (n_name, n_name), retracting, O(1), state: an entry a group (bounded by its input)
      -> project lineitem.l_extendedprice, n1.n_name, n2.n_name (node 22)
           no key, retracting, O(1), no state
        -> join lineitem.l_orderkey = orders.o_orderkey AND n1.n_name = Utf8("FRANCE") AND n2.n_name = Utf8("GERMANY") OR n1.n_name = Utf8("GERMANY") AND n2.n_name = Utf8("FRANCE") (node 21)
             no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> project n1.n_name, lineitem.l_orderkey, lineitem.l_extendedprice (node 10)
               no key, retracting, O(1), no state
            -> join supplier.s_suppkey = lineitem.l_suppkey (node 9)
                 no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project supplier.s_suppkey, n1.n_name (node 6)
                   key (s_suppkey), retracting, O(1), no state
                -> join supplier.s_nationkey = n1.n_nationkey (node 5)
                     key (s_suppkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                  -> project supplier.s_suppkey, supplier.s_nationkey (node 1)
                       key (s_suppkey), retracting, O(1), no state
                    -> Import supplier (node 0)
                         key (s_suppkey), retracting, O(1), no state
                  -> filter nation.n_name = Utf8("FRANCE") OR nation.n_name = Utf8("GERMANY") (node 4)
                       key (n_nationkey), retracting, O(1), no state
                    -> project nation.n_nationkey, nation.n_name (node 3)
                         key (n_nationkey), retracting, O(1), no state
                      -> Import nation (node 2)
                           key (n_nationkey), retracting, O(1), no state
              -> project lineitem.l_orderkey, lineitem.l_suppkey, lineitem.l_extendedprice (node 8)
                   no key, retracting, O(1), no state
                -> Import lineitem (node 7)
                     key (l_orderkey, l_linenumber), retracting, O(1), no state
          -> project orders.o_orderkey, n2.n_name (node 20)
               key (o_orderkey), retracting, O(1), no state
            -> join orders.o_custkey = customer.c_custkey (node 19)
                 key (o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project orders.o_orderkey, orders.o_custkey (node 12)
                   key (o_orderkey), retracting, O(1), no state
                -> Import orders (node 11)
                     key (o_orderkey), retracting, O(1), no state
              -> project customer.c_custkey, n2.n_name (node 18)
                   key (c_custkey), retracting, O(1), no state
                -> join customer.c_nationkey = n2.n_nationkey (node 17)
                     key (c_custkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                  -> project customer.c_custkey, customer.c_nationkey (node 14)
                       key (c_custkey), retracting, O(1), no state
                    -> Import customer (node 13)
                         key (c_custkey), retracting, O(1), no state
                  -> filter nation.n_name = Utf8("GERMANY") OR nation.n_name = Utf8("FRANCE") (node 16)
                       key (n_nationkey), retracting, O(1), no state
                    -> project nation.n_nationkey, nation.n_name (node 15)
                         key (n_nationkey), retracting, O(1), no state
                      -> Import nation (node 2, shared)

SELECT n_name AS nation, sum(l_extendedprice - ps_supplycost * l_quantity) AS profit
FROM part, supplier, lineitem, partsupp, orders, nation
WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
  AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey AND p_name LIKE '%green%'
GROUP BY n_name
----
Materialize (stored by key (nation))
  -> project nation.n_name AS nation, sum(lineitem.l_extendedprice - partsupp.ps_supplycost * lineitem.l_quantity) AS profit (node 25)
       key (nation), retracting, O(1), no state
    -> aggregate sum(numeric_sub(lineitem.l_extendedprice, numeric_mul(partsupp.ps_supplycost, lineitem.l_quantity))) by nation.n_name (node 24)
         key (n_name), retracting, O(1), state: an entry a group (bounded by its input)
      -> project nation.n_name AS column0, numeric_sub(lineitem.l_extendedprice, numeric_mul(partsupp.ps_supplycost, lineitem.l_quantity)) AS column1 (node 23)
           no key, retracting, O(1), no state
        -> project lineitem.l_quantity, lineitem.l_extendedprice, partsupp.ps_supplycost, nation.n_name (node 22)
             no key, retracting, O(1), no state
          -> join lineitem.l_orderkey = orders.o_orderkey (node 21)
               no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
            -> project partsupp.ps_supplycost, lineitem.l_orderkey, lineitem.l_quantity, lineitem.l_extendedprice, nation.n_name (node 18)
                 no key, retracting, O(1), no state
              -> join lineitem.l_suppkey = supplier.s_suppkey (node 17)
                   no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
                -> project partsupp.ps_supplycost, lineitem.l_orderkey, lineitem.l_suppkey, lineitem.l_quantity, lineitem.l_extendedprice (node 10)
                     no key, retracting, O(1), no state
                  -> join part.p_partkey = lineitem.l_partkey AND partsupp.ps_suppkey = lineitem.l_suppkey (node 9)
                       no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
                    -> project part.p_partkey, partsupp.ps_suppkey, partsupp.ps_supplycost (node 6)
                         no key, retracting, O(1), no state
                      -> join part.p_partkey = partsupp.ps_partkey (node 5)
                           key (ps_partkey, ps_suppkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                        -> project part.p_partkey (node 3)
                             key (p_partkey), retracting, O(1), no state
                          -> filter part.p_name LIKE Utf8("%green%") (node 2)
                               key (p_partkey), retracting, O(1), no state
                            -> project part.p_partkey, part.p_name (node 1)
                                 key (p_partkey), retracting, O(1), no state
                              -> Import part (node 0)
                                   key (p_partkey), retracting, O(1), no state
                        -> Import partsupp (node 4)
                             key (ps_partkey, ps_suppkey), retracting, O(1), no state
                    -> project lineitem.l_orderkey, lineitem.l_partkey, lineitem.l_suppkey, lineitem.l_quantity, lineitem.l_extendedprice (node 8)
                         no key, retracting, O(1), no state
                      -> Import lineitem (node 7)
                           key (l_orderkey, l_linenumber), retracting, O(1), no state
                -> project supplier.s_suppkey, nation.n_name (node 16)
                     key (s_suppkey), retracting, O(1), no state
                  -> join supplier.s_nationkey = nation.n_nationkey (node 15)
                       key (s_suppkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                    -> project supplier.s_suppkey, supplier.s_nationkey (node 12)
                         key (s_suppkey), retracting, O(1), no state
                      -> Import supplier (node 11)
                           key (s_suppkey), retracting, O(1), no state
                    -> project nation.n_nationkey, nation.n_name (node 14)
                         key (n_nationkey), retracting, O(1), no state
                      -> Import nation (node 13)
                           key (n_nationkey), retracting, O(1), no state
            -> project orders.o_orderkey (node 20)
                 key (o_orderkey), retracting, O(1), no state
              -> Import orders (node 19)
                   key (o_orderkey), retracting, O(1), no state

SELECT customer.c_name, p.p_name, n.n_name
FROM customer CROSS JOIN part p JOIN nation n ON n.n_nationkey = customer.c_nationkey
JOIN lineitem l ON l.l_partkey = p.p_partkey JOIN orders o ON o.o_orderkey = l.l_orderkey AND o.o_custkey = customer.c_custkey
----
Materialize (stored as counted rows)
  -> project customer.c_name, p.p_name, n.n_name (node 16)
       no key, retracting, O(1), no state
    -> join l.l_partkey = p.p_partkey (node 15)
         no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project customer.c_name, n.n_name, l.l_partkey (node 12)
           no key, retracting, O(1), no state
        -> join o.o_orderkey = l.l_orderkey (node 11)
             no key, retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> project customer.c_name, n.n_name, o.o_orderkey (node 8)
               key (o_orderkey), retracting, O(1), no state
            -> join customer.c_custkey = o.o_custkey (node 7)
                 key (o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
              -> project customer.c_custkey, customer.c_name, n.n_name (node 4)
                   key (c_custkey), retracting, O(1), no state
                -> join customer.c_nationkey = n.n_nationkey (node 3)
                     key (c_custkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
                  -> Import customer (node 0)
                       key (c_custkey), retracting, O(1), no state
                  -> project nation.n_nationkey, nation.n_name (node 2)
                       key (n_nationkey), retracting, O(1), no state
                    -> Import nation (node 1)
                         key (n_nationkey), retracting, O(1), no state
              -> project orders.o_orderkey, orders.o_custkey (node 6)
                   key (o_orderkey), retracting, O(1), no state
                -> Import orders (node 5)
                     key (o_orderkey), retracting, O(1), no state
          -> project lineitem.l_orderkey, lineitem.l_partkey (node 10)
               no key, retracting, O(1), no state
            -> Import lineitem (node 9)
                 key (l_orderkey, l_linenumber), retracting, O(1), no state
      -> project part.p_partkey, part.p_name (node 14)
           key (p_partkey), retracting, O(1), no state
        -> Import part (node 13)
             key (p_partkey), retracting, O(1), no state

SELECT s_name, c_name, o_orderkey
FROM supplier JOIN customer ON 10 / s_suppkey > c_custkey JOIN nation ON n_nationkey = s_nationkey AND n_nationkey = c_nationkey
JOIN orders ON o_custkey = c_custkey
----
Materialize (stored as counted rows)
  -> project supplier.s_name, customer.c_name, orders.o_orderkey (node 11)
       no key, retracting, O(1), no state
    -> join nation.n_nationkey = customer.c_nationkey AND Int32(10) / supplier.s_suppkey > customer.c_custkey; ranges: Int32(10) / supplier.s_suppkey > customer.c_custkey; customer.c_custkey < Int32(10) / supplier.s_suppkey (node 10)
         key (s_suppkey, o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
      -> project supplier.s_suppkey, supplier.s_name, nation.n_nationkey (node 4)
           key (s_suppkey), retracting, O(1), no state
        -> join supplier.s_nationkey = nation.n_nationkey (node 3)
             key (s_suppkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> Import supplier (node 0)
               key (s_suppkey), retracting, O(1), no state
          -> project nation.n_nationkey (node 2)
               key (n_nationkey), retracting, O(1), no state
            -> Import nation (node 1)
                 key (n_nationkey), retracting, O(1), no state
      -> project customer.c_custkey, customer.c_name, customer.c_nationkey, orders.o_orderkey (node 9)
           key (o_orderkey), retracting, O(1), no state
        -> join customer.c_custkey = orders.o_custkey (node 8)
             key (o_orderkey), retracting, O(matches), state: rows of both inputs (bounded by its input)
          -> Import customer (node 5)
               key (c_custkey), retracting, O(1), no state
          -> project orders.o_orderkey, orders.o_custkey (node 7)
               key (o_orderkey), retracting, O(1), no state
            -> Import orders (node 6)
                 key (o_orderkey), retracting, O(1), no state
