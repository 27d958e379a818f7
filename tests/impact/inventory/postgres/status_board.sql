-- Owner: shop-team
CREATE VIEW shop_rep.status_board AS
SELECT
    CASE status WHEN 'new' THEN 1 WHEN 'paid' THEN 2 WHEN 'shipped' THEN 3 WHEN 'cancelled' THEN 4 END AS stage,
    count(*) AS orders
FROM shop_stg.orders
GROUP BY status;
