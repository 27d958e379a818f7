"""One retry policy and one HTTP client, with a transport for storages and one for catalogs."""
