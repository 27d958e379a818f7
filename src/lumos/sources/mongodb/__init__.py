"""Collections of MongoDB, whose schemas are learnt from samples."""
