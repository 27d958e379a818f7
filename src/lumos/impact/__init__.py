"""Impact analysis: which downstream datasets break when a dataset changes."""
