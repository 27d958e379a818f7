-- Owner: finance-team
CREATE VIEW fin_stg.accounts AS
SELECT account, upper(kind) AS kind
FROM fin_raw.accounts;
