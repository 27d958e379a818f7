"""Collections of MongoDB, whose schemas are inferred from samples."""
