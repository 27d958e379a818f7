-- Owner: support-team
CREATE VIEW support_rep.urgent AS
SELECT ticket_id, topic, duration
FROM support_stg.tickets
WHERE priority = 1;
