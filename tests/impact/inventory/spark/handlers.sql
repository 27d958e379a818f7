-- Owner: workforce-team
CREATE TABLE parcel_mart.handlers AS
SELECT
  handler,
  count(DISTINCT parcel_id) AS parcels,
  max(scanned_at) AS last_seen
FROM parcel_stg.scans
GROUP BY handler;
