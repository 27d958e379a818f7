-- Owner: service-team
CREATE TABLE parcel_rep.order_lookup AS
SELECT order_no, substring(order_no, 1, 3) AS shop, parcel_id
FROM parcel_mart.deliveries
WHERE order_no LIKE 'DE-%';
