-- Owner: claims-team
CREATE TABLE parcel_rep.claims_by_depot AS
SELECT region, count(claim_id) AS claims
FROM parcel_raw.claims AS c
JOIN parcel_mart.last_scan AS s ON s.parcel_id = c.parcel_id
JOIN parcel_stg.depots AS d ON d.depot = s.depot
GROUP BY region;
