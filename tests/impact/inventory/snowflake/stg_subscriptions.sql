-- Owner: billing-team
CREATE OR REPLACE VIEW billing_stg.subscriptions AS
SELECT
    subscription_id,
    account_id,
    UPPER(plan_code) AS plan_code,
    price,
    price * seats AS monthly_value,
    started_on,
    COALESCE(ended_on, DATE '9999-12-31') AS ended_on
FROM billing_raw.subscriptions;
