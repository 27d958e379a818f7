"""Topics of Kafka clusters, with the schemas of a schema registry."""
