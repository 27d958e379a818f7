-- Owner: bi-team
SELECT email, lifetime_value
FROM shop_mart.customer_values
WHERE lifetime_value > 1000
ORDER BY lifetime_value DESC
