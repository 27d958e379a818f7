-- Owner: shop-team
CREATE VIEW shop_stg.customers AS
SELECT
    customer_id,
    lower(email) AS email,
    coalesce(country, 'XX') AS country,
    born_on,
    referrer_id
FROM shop_raw.customers;
