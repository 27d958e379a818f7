-- Who was there on which day
-- Owner: bi-team
CREATE TABLE reporting.daily_users AS
SELECT DISTINCT
  DATE(occurred_at) AS day,
  CAST(user_id AS STRING) AS user_key
FROM user_events;
