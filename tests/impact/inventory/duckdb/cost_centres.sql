-- Owner: controlling-team
CREATE TABLE fin_mart.cost_centres AS
SELECT cost_centre, count(*) AS entries
FROM fin_stg.ledger
WHERE cost_centre IN (100, 200, 300)
GROUP BY cost_centre;
