-- Owner: logistics-team
CREATE VIEW parcel_rep.heavy AS
SELECT parcel_id, weight_g / 1000 AS kilos
FROM parcel_stg.parcels
WHERE weight_g > 20000;
