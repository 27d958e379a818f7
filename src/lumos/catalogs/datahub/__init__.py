"""`datahub`: a DataHub server as a catalog."""
