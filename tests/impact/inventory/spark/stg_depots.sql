-- Owner: parcel-team
CREATE VIEW parcel_stg.depots AS
SELECT depot, coalesce(region, 'none') AS region
FROM parcel_raw.depots
WHERE NOT closed;
