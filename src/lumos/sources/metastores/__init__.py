"""Metastores and table catalogs as sources: Hive, AWS Glue, Iceberg REST and Nessie."""
