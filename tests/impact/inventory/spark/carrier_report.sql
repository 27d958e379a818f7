-- Owner: bi-team
CREATE TABLE parcel_rep.carrier_report AS
SELECT
  carrier,
  count(*) AS parcels,
  avg(days_late) AS average_delay,
  sum(value) AS total_value
FROM parcel_mart.deliveries
WHERE days_late > 0
GROUP BY carrier;
