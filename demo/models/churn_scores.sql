-- Who is likely to leave: customers that are quiet and pay little.
-- Owner: ml-team
create table marts.churn_scores as
select c.customer_id, 1 / (1 + c.clicks) + 1 / (1 + r.gross) as score
from marts.customer_360 c
join marts.revenue r
  on r.customer_id = c.customer_id
