"""Pictures of lineage: a page to pan, zoom and click, DOT, Mermaid, OpenLineage events."""

from lumos.lineage.drawing.picture import dot, events, mermaid, page

__all__ = ["dot", "events", "mermaid", "page"]
