-- Continues behind the last entry that it has
-- Owner: finance-team
INSERT INTO fin_mart.journal
SELECT l.entry_id, l.account, l.amount
FROM fin_stg.ledger l
WHERE l.entry_id > (SELECT coalesce(max(j.entry_id), 0) FROM fin_mart.journal j);
