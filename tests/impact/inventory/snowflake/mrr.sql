-- Owner: finance-team
CREATE OR REPLACE TABLE billing_rep.mrr AS
SELECT plan_code, SUM(monthly_value)::NUMBER(18, 2) AS mrr
FROM billing_mart.accounts
GROUP BY plan_code;
