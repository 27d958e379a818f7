-- Owner: treasury-team
CREATE TABLE fin_rep.rates AS
SELECT currency, day, rate
FROM fin_raw.rates
WHERE rate = 1.1;
