-- Owner: sales-team
CREATE OR REPLACE TABLE billing_rep.newest_plan AS
SELECT account_id, plan_code
FROM billing_stg.subscriptions
QUALIFY ROW_NUMBER() OVER (PARTITION BY account_id ORDER BY started_on DESC) = 1;
