"""Pure rules on model values: comparison, compatibility, versions."""
