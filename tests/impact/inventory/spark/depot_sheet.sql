-- Owner: logistics-team
CREATE TABLE parcel_rep.depot_sheet AS
SELECT d.*, l.scans
FROM parcel_raw.depots AS d
LEFT JOIN parcel_mart.depot_load AS l ON l.depot = d.depot;
