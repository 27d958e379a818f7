-- Owner: support-team
SELECT
    ticket_id,
    agent_id,
    customer_no,
    priority,
    DATEDIFF(minute, opened_at, closed_at) AS duration,
    topic,
    minutes
INTO support_stg.tickets
FROM support_raw.tickets;
