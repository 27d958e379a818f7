"""`openmetadata`: an OpenMetadata server as a catalog."""
