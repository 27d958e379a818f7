-- Owner: shop-team
CREATE TABLE shop_stg.open_orders AS
SELECT order_id, customer_id, due_on
FROM shop_stg.orders
WHERE status <> 'cancelled';
