-- Owner: finance-team
CREATE VIEW fin_stg.ledger AS
SELECT
    entry_id,
    account,
    booked_on,
    coalesce(debit, 0) - coalesce(credit, 0) AS amount,
    cost_centre
FROM fin_raw.ledger;
