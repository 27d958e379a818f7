-- Owner: web-team
MERGE INTO web_mart.revenue AS t
USING (
  SELECT visitor_id, SUM(amount) AS amount
  FROM web_stg.purchases
  GROUP BY visitor_id
) AS s
ON t.visitor_id = s.visitor_id
WHEN MATCHED THEN
  UPDATE SET amount = s.amount
WHEN NOT MATCHED THEN
  INSERT (visitor_id, amount) VALUES (s.visitor_id, s.amount);
