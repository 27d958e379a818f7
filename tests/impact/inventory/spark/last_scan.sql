-- Owner: parcel-team
CREATE TABLE parcel_mart.last_scan AS
SELECT parcel_id, depot, scanned_at
FROM (
  SELECT
    parcel_id,
    depot,
    scanned_at,
    row_number() OVER (PARTITION BY parcel_id ORDER BY scanned_at DESC) AS place
  FROM parcel_stg.scans
) AS ranked
WHERE place = 1;
