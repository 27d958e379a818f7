-- What models are trained on
-- Owner: ml-platform
INSERT INTO feature_store.user_features (user_id, events_7d, last_seen_at)
SELECT
  e.user_id,
  COUNT(*) AS events_7d,
  MAX(e.occurred_at) AS last_seen_at
FROM user_events AS e
WHERE e.occurred_at >= TIMESTAMP_SUB(CURRENT_TIMESTAMP(), INTERVAL 7 DAY)
GROUP BY e.user_id;
