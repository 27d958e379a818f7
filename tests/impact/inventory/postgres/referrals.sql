-- Owner: growth-team
CREATE TABLE shop_mart.referrals AS
SELECT
    c.customer_id,
    r.customer_id AS referrer,
    r.country AS referrer_country
FROM shop_stg.customers c
LEFT JOIN shop_stg.customers r ON r.customer_id = c.referrer_id;
