-- Owner: bi-team
CREATE TABLE shop_rep.order_hours AS
SELECT extract(hour FROM ordered_at) AS hour_of_day, count(*) AS orders
FROM shop_stg.orders
GROUP BY extract(hour FROM ordered_at);
