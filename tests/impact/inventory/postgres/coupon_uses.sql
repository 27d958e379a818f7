-- Owner: crm-team
INSERT INTO shop_mart.coupon_uses
SELECT order_id, coupon, ordered_on
FROM shop_stg.orders
WHERE coupon IS NOT NULL;
