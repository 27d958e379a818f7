"""Text for people, self-contained HTML pages and SVG diagrams."""
