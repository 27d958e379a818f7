-- Owner: finance-team
CREATE TABLE fin_rep.balance_sheet AS
SELECT kind, sum(balance) AS balance
FROM fin_mart.balances
GROUP BY kind;
