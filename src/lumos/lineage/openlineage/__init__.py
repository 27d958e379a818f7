"""Table and column lineage from OpenLineage events, 1-0-5 to 2-0-2."""

from lumos.lineage.openlineage.events import OpenLineageEvent, is_event, read_events
from lumos.lineage.openlineage.report import report_events

__all__ = ["OpenLineageEvent", "is_event", "read_events", "report_events"]
