"""What to retire together so that most is saved."""

from typing import Final

from lumos.cost.ledger import Books
from lumos.cost.report_builder import answer, what_if
from lumos.cost.reports import Removed, RetireReport, RetireStep
from lumos.cost.savings_report import removed
from lumos.cost.solver.retirement import Retirement, RetirementGroup, retirement
from lumos.model.money import amount_of

_MONTHS: Final = 12


def retire_report(
    books: Books, top: int, *, before: Books | None, changes: tuple[str, ...]
) -> RetireReport:
    """At most `top` end uses that save most together, and what no end use needs today."""
    plan = retirement(books.graph, top, books.avoidable)
    saved = [int(books.saved_by(group.gone).sum()) for group in plan.groups]
    sums = [sum(saved[: place + 1]) for place in range(len(saved))]
    unneeded = _unneeded(books, plan)
    supposed = None
    if before is not None:
        earlier = retirement(before.graph, top, before.avoidable)
        was = sum(int(before.saved_by(group.gone).sum()) for group in earlier.groups)
        supposed = what_if(changes, was, sum(saved))
    return RetireReport(
        **answer(books, assumed=0),
        what_if=supposed,
        steps=tuple(
            _step(books, group, monthly, total)
            for group, monthly, total in zip(plan.groups, saved, sums, strict=True)
        ),
        monthly_savings=amount_of(sum(saved)),
        annual_savings=amount_of(sum(saved) * _MONTHS),
        exact=plan.exact,
        unneeded=unneeded,
        unneeded_savings=amount_of(int(books.saved_by(plan.unneeded).sum())),
        spent=amount_of(books.monthly(books.spent)),
    )


def _step(books: Books, group: RetirementGroup, monthly: int, total: int) -> RetireStep:
    ends = group.ends.tolist()
    teams = (team for node in ends for team in books.labels.of("team", books.urn(node)))
    return RetireStep(
        datasets=tuple(books.urn(node) for node in group.gone.tolist()),
        ends=tuple(books.urn(node) for node in ends),
        names=tuple(books.name(node) for node in ends),
        teams=tuple(dict.fromkeys(teams)),
        monthly_savings=amount_of(monthly),
        cumulative=amount_of(total),
        is_read=any(books.urn(node) in books.inputs.read for node in ends),
        is_verified=all(books.is_verified(node) for node in ends),
    )


def _unneeded(books: Books, plan: Retirement) -> tuple[Removed, ...]:
    amounts = books.saved_by(plan.unneeded).sum(axis=0)
    costly = amounts != 0
    return removed(books, plan.unneeded[costly], amounts[costly])
