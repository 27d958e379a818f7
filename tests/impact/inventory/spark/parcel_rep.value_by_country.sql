-- Owner: bi-team
SELECT country, sum(value) AS total_value, count(*) AS parcels
FROM parcel_stg.parcels
WHERE zip <> '00000'
GROUP BY country
