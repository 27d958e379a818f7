-- Owner: finance-team
CREATE TABLE shop_mart.movements AS
SELECT order_id, total AS amount FROM shop_stg.orders
UNION ALL
SELECT order_id, -amount FROM shop_stg.refunds;
