-- Owner: analytics-team
CREATE TABLE web_mart.visits AS
SELECT
  v.visitor_id,
  v.country,
  DATE(e.event_ts) AS day,
  COUNT(DISTINCT e.event_id) AS events,
  MAX(e.os_version) AS newest_os
FROM web_stg.events AS e
JOIN web_stg.visitors AS v
  ON v.visitor_id = e.visitor_id
GROUP BY v.visitor_id, v.country, DATE(e.event_ts);
