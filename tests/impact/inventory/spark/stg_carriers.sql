-- Owner: parcel-team
CREATE VIEW parcel_stg.carriers AS
SELECT carrier_id, name, rate
FROM parcel_raw.carriers
WHERE active;
