-- Owner: bi-team
CREATE TABLE parcel_rep.region_report AS
SELECT region, sum(scans) AS scans
FROM parcel_mart.depot_load
GROUP BY region;
