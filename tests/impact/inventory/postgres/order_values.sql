-- Owner: crm-team
CREATE TABLE shop_mart.order_values AS
SELECT
    o.order_id,
    o.customer_id,
    o.ordered_on,
    o.total - coalesce(sum(r.amount), 0) AS net
FROM shop_stg.orders o
LEFT JOIN shop_stg.refunds r ON r.order_id = o.order_id
GROUP BY o.order_id, o.customer_id, o.ordered_on, o.total;
