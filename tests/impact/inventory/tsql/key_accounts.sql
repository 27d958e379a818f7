-- Owner: sales-team
CREATE VIEW support_rep.key_accounts AS
SELECT ticket_id, customer_no
FROM support_stg.tickets
WHERE customer_no IN ('K-100', 'K-200');
