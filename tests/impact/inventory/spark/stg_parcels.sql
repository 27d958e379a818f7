-- Owner: parcel-team
CREATE TABLE parcel_stg.parcels AS
SELECT
  parcel_id,
  order_no,
  carrier_id,
  upper(depot) AS depot,
  weight_g,
  shipped_on,
  date_add(shipped_on, promised_days) AS promised_on,
  value,
  address.zip AS zip,
  address.country AS country
FROM parcel_raw.parcels;
