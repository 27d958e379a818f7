"""The HTML page of `lumos reconcile`."""

from typing import Final

from lumos.reconcile.reports import KIND_TITLES, ReconcileReport
from lumos.rendering import document as html
from lumos.rendering.document import TableRow, Tile
from lumos.rendering.text import format_time, plural

_MAX_ROWS: Final = 500


def render_page(report: ReconcileReport) -> str:
    """The report as a self-contained page."""
    return html.page(
        title=f"Reconciliation of {report.source}",
        subtitle=f"Metastore scanned on {format_time(report.scanned_at)} UTC; "
        f"{plural(len(report.storage_scans), 'scan')} of storage",
        footer="Compared by lumos reconcile from the last scans.",
        content=[
            html.tiles(
                [
                    Tile("tables", f"{report.tables:,}", f"{report.compared:,} compared"),
                    Tile("partitions", f"{report.partitions:,}", "registered"),
                    Tile("differences", f"{len(report.findings):,}", "see below"),
                    Tile(
                        "not scanned",
                        f"{sum(each.tables for each in report.not_scanned):,}",
                        "tables in other locations",
                    ),
                ]
            ),
            *(_section(report, kind) for kind in report.counts),
            *_plan(report),
        ],
    )


def _section(report: ReconcileReport, kind: str) -> str:
    findings = [each for each in report.findings if each.kind == kind]
    rows = []
    for each in findings[:_MAX_ROWS]:
        verdict = "" if each.verdict is None else each.verdict.value
        rows.append(TableRow((each.table or "", each.location, each.details, verdict)))
    more = len(findings) - len(rows)
    explanation = f"The first {_MAX_ROWS:,} of {len(findings):,}." if more else ""
    head = ("Table", "Location", "Details", "Verdict")
    return html.section(KIND_TITLES[kind], explanation, html.table(head, rows, numbers=()))


def _plan(report: ReconcileReport) -> list[str]:
    if not report.statements:
        return []
    explanation = "Nothing was executed. Review each statement before you run it."
    return [html.section("Fix plan", explanation, html.bullet_list(report.statements))]
