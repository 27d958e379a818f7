-- Owner: crm-team
CREATE TABLE shop_mart.contactable_customers AS
SELECT customer_id, email
FROM shop_stg.customers
WHERE email NOT IN (SELECT email FROM shop_raw.blocked_emails);
