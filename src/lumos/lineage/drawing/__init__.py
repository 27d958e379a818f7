"""Pictures of lineage: a page to pan, zoom and click, DOT, Mermaid, OpenLineage events."""

from lumos.lineage.drawing.formats import dot, events, mermaid, page
from lumos.lineage.drawing.picture import Arrow, Box, BoxImpact, BoxReason, Picture

__all__ = [
    "Arrow",
    "Box",
    "BoxImpact",
    "BoxReason",
    "Picture",
    "dot",
    "events",
    "mermaid",
    "page",
]
