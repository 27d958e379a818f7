-- Owner: claims-team
INSERT INTO parcel_mart.claim_costs
SELECT parcel_id, code, amount
FROM parcel_stg.claims;
