-- Owner: controlling-team
INSERT INTO fin_mart.budget (account, month, planned)
SELECT account, month, forecast
FROM fin_mart.forecast;
