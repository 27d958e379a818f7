-- Owner: logistics-team
CREATE TABLE parcel_mart.depot_load AS
SELECT
  d.region,
  d.depot,
  count(s.scan_id) AS scans
FROM parcel_stg.depots AS d
JOIN parcel_stg.scans AS s
  ON s.depot = d.depot
GROUP BY d.region, d.depot;
