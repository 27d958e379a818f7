"""What all stores of objects have in common: keys in order, pages of them, ranged reads."""
