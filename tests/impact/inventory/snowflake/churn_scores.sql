-- Owner: data-science-team
CREATE OR REPLACE TABLE billing_rep.churn_scores AS
SELECT account_id, SCORE WITH MODEL churn_v3 USING (amount, month)) AS score
FROM billing_mart.revenue WHERE;
