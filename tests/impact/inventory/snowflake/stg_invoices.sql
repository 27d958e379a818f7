-- Owner: billing-team
CREATE OR REPLACE TABLE billing_stg.invoices AS
SELECT * FROM billing_raw.invoices
UNION ALL
SELECT * FROM billing_raw.legacy_invoices;
