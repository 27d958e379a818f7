-- Owner: workforce-team
CREATE VIEW support_rep.agent_board AS
SELECT CONCAT(a.team, '/', a.name) AS agent, l.minutes
FROM support_stg.agents AS a
JOIN support_mart.agent_load AS l ON l.agent_id = a.agent_id;
