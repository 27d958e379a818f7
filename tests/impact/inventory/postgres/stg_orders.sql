-- Owner: shop-team
CREATE VIEW shop_stg.orders AS
SELECT
    order_id,
    customer_id,
    status,
    ordered_at,
    ordered_at::date AS ordered_on,
    ordered_at::date + payment_days AS due_on,
    total,
    coupon
FROM shop_raw.orders;
