-- Owner: parcel-team
INSERT INTO parcel_mart.scan_archive
SELECT * FROM parcel_raw.scans;
