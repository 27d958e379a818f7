-- Owner: controlling-team
CREATE TABLE fin_mart.balances AS
SELECT
    a.kind,
    l.account,
    date_trunc('month', l.booked_on) AS month,
    sum(l.amount) AS balance
FROM fin_stg.ledger l
JOIN fin_stg.accounts a ON a.account = l.account
GROUP BY a.kind, l.account, date_trunc('month', l.booked_on);
