-- Owner: support-team
MERGE INTO support_mart.topics AS t
USING (
    SELECT topic, COUNT(*) AS tickets
    FROM support_stg.tickets
    GROUP BY topic
) AS s ON s.topic = t.topic
WHEN MATCHED THEN UPDATE SET tickets = s.tickets
WHEN NOT MATCHED THEN INSERT (topic, tickets) VALUES (s.topic, s.tickets);
