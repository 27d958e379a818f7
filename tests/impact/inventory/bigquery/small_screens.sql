-- Owner: design-team
CREATE TABLE web_rep.small_screens AS
SELECT os, COUNT(*) AS events
FROM web_stg.events
WHERE width < 400
GROUP BY os;
