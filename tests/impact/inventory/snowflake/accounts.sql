-- Owner: finance-team
MERGE INTO billing_mart.accounts AS t
USING billing_stg.subscriptions AS s
    ON t.account_id = s.account_id
WHEN MATCHED THEN UPDATE SET
    plan_code = s.plan_code,
    monthly_value = s.monthly_value
WHEN NOT MATCHED THEN INSERT (account_id, plan_code, monthly_value, since)
    VALUES (s.account_id, s.plan_code, s.monthly_value, s.started_on);
