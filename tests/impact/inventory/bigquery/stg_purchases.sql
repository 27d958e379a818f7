-- Owner: web-team
CREATE TABLE web_stg.purchases AS
SELECT
  e.event_id,
  e.visitor_id,
  i.sku,
  i.quantity * i.price AS amount
FROM web_raw.events AS e, UNNEST(e.items) AS i;
