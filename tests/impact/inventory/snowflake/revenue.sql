-- Owner: finance-team
CREATE OR REPLACE TABLE billing_mart.revenue AS
SELECT
    s.account_id,
    DATE_TRUNC('month', i.issued_at) AS month,
    SUM(i.amount) AS amount
FROM billing_stg.invoices AS i
JOIN billing_stg.subscriptions AS s
    ON s.subscription_id = i.subscription_id
WHERE i.paid
GROUP BY s.account_id, DATE_TRUNC('month', i.issued_at);
