-- Owner: support-team
CREATE VIEW support_stg.agents AS
SELECT agent_id, ISNULL(name, 'unknown') AS name, team
FROM support_raw.agents;
