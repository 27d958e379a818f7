-- Owner: crm-team
INSERT INTO shop_mart.customer_values (customer_id, email, orders, lifetime_value)
SELECT
    c.customer_id,
    c.email,
    count(*),
    sum(v.net)
FROM shop_stg.customers c
JOIN shop_mart.order_values v ON v.customer_id = c.customer_id
GROUP BY c.customer_id, c.email;
