"""File formats: footers and headers become schemas, without reading the data."""
