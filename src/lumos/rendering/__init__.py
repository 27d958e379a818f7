"""Self-contained HTML pages and SVG diagrams."""
