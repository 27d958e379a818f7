-- Owner: workforce-team
UPDATE l
SET l.minutes = x.minutes
FROM support_mart.agent_load AS l
JOIN (
    SELECT agent_id, SUM(minutes) AS minutes
    FROM support_stg.tickets
    GROUP BY agent_id
) AS x ON x.agent_id = l.agent_id;
