"""The Spark session, its JVM and the transport of tasks."""
