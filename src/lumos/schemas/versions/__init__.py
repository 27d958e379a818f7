"""`lumos version`: which versions datasets have, and moving them by hand or for many at once."""
