"""Pictures of lineage: a page to pan, zoom and click, DOT, Mermaid, OpenLineage events."""

from lumos.lineage.drawing.dot import dot
from lumos.lineage.drawing.events import events
from lumos.lineage.drawing.mermaid import mermaid
from lumos.lineage.drawing.page import page
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
