-- Sessions of accounts
-- Owner: analytics-team
CREATE TABLE user_sessions AS
SELECT
  a.account_id,
  a.plan,
  e.session_no,
  MIN(e.occurred_at) AS started_at,
  MAX(e.occurred_at) AS ended_at,
  COUNT(*) AS events
FROM user_events AS e
JOIN user_accounts AS a
  ON a.user_id = e.user_id
GROUP BY a.account_id, a.plan, e.session_no;
