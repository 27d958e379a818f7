-- Owner: controlling-team
CREATE TABLE fin_mart.forecast AS
SELECT
    b.account,
    b.month,
    CAST(b.balance AS DOUBLE) * 1.1 + coalesce(p.planned, 0) AS forecast
FROM fin_mart.balances b
LEFT JOIN fin_mart.budget p ON p.account = b.account;
