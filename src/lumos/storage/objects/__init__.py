"""The common part of object stores: ordered keys, pages and ranged reads."""
