"""Human-readable text, self-contained HTML pages and SVG diagrams."""
