"""What modules of other owners still import of DataHub; see each module."""
