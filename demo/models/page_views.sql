-- How often each page was seen, and by how many users.
-- Owner: web-team
create table marts.page_views as
select properties.page_url, count(*) as views, count(distinct cast(user_id as string)) as users
from user_clicks
group by properties.page_url
