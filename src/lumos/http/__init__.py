"""The HTTP client with its retry policy, and transports for storages and for catalogs."""
