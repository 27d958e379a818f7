-- Owner: finance-team
CREATE OR REPLACE TABLE billing_rep.revenue_in_euro AS
SELECT month, billing_udf.to_euro(amount) AS euro
FROM billing_mart.revenue;
