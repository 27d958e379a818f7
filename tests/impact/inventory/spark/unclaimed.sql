-- Owner: claims-team
CREATE TABLE parcel_mart.unclaimed AS
SELECT parcel_id, value
FROM parcel_stg.parcels
WHERE parcel_id NOT IN (SELECT parcel_id FROM parcel_raw.claims);
