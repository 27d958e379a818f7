-- Owner: logistics-team
CREATE TABLE parcel_mart.deliveries AS
SELECT
  p.parcel_id,
  p.order_no,
  c.name AS carrier,
  p.promised_on,
  to_date(s.scanned_at) AS delivered_on,
  datediff(to_date(s.scanned_at), p.promised_on) AS days_late,
  p.value
FROM parcel_stg.parcels AS p
JOIN parcel_stg.carriers AS c
  ON c.carrier_id = p.carrier_id
LEFT JOIN parcel_mart.last_scan AS s
  ON s.parcel_id = p.parcel_id;
