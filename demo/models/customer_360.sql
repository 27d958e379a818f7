-- What the shop knows about each customer, one row each.
-- Owner: analytics-team
create table marts.customer_360 as
select c.customer_id, c.city, count(*) as clicks, max(k.at) as last_seen
from customers c
join user_clicks k
  on k.user_id = cast(c.customer_id as string)
group by c.customer_id, c.city
