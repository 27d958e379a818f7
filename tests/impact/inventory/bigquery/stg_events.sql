-- Owner: web-team
CREATE VIEW web_stg.events AS
SELECT
  event_id,
  visitor_id,
  device.os AS os,
  device.version AS os_version,
  device.screen.width AS width,
  event_ts,
  LOWER(utm_source) AS source
FROM web_raw.events;
