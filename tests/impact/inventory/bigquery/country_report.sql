-- Owner: bi-team
CREATE TABLE web_rep.country_report AS
SELECT
  v.country,
  SUM(v.events) AS events,
  SUM(r.amount) AS revenue
FROM web_mart.visits AS v
LEFT JOIN web_mart.revenue AS r
  ON r.visitor_id = v.visitor_id
GROUP BY v.country;
