-- Owner: shop-team
CREATE VIEW shop_stg.refunds AS
SELECT refund_id, order_id, amount
FROM shop_raw.refunds
WHERE order_id IS NOT NULL;
