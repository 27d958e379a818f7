-- Owner: web-team
CREATE VIEW web_stg.visitors AS
SELECT * EXCEPT (consent)
FROM web_raw.visitors
WHERE consent;
