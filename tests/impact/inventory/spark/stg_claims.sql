-- Owner: claims-team
CREATE TABLE parcel_stg.claims AS
SELECT
  claim_id,
  parcel_id,
  CAST(amount AS DECIMAL(10, 2)) AS amount,
  code
FROM parcel_raw.claims;
