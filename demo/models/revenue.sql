-- What each customer paid, before and after discounts.
-- Owner: finance-team
create table marts.revenue as
select
  customer_id,
  sum(amount) as gross,
  sum(amount - discount) as net
from orders
group by customer_id
