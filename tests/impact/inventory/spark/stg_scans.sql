-- Owner: parcel-team
CREATE TABLE parcel_stg.scans AS
SELECT * FROM parcel_raw.scans
UNION ALL
SELECT * FROM parcel_raw.old_scans;
