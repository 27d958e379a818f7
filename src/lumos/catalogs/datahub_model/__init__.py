"""DataHub's model: entries and items as statements about its entities, and back."""
