"""Moving what one catalog holds into another, and keeping catalogs in step with sources."""
