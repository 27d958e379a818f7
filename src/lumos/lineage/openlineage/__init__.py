"""OpenLineage events, from 1-0-5 to 2-0-2: what jobs read and wrote, column by column."""

from lumos.lineage.openlineage.events import Event, is_event, read_events
from lumos.lineage.openlineage.reading import reports

__all__ = ["Event", "is_event", "read_events", "reports"]
