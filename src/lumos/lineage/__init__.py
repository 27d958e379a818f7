"""What files tell of lineage: SQL, dbt artefacts, OpenLineage events, declared edges, logs."""
