"""What people and reporters say of datasets: owners, descriptions, tags, terms, properties."""
