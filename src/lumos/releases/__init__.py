"""Release-time refresh: when data after a release is available, and what it changed."""
