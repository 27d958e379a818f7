"""Who breaks when a dataset changes: asked, answered and shown."""
