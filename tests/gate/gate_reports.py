"""Reports of the gate as facts, for tests of what is made from them."""

from typing import Any

from lumos.gate.reports import (
    GateFinding,
    GateLocation,
    GateReport,
    GateStep,
    GateSummary,
    WaiverProblem,
)

# Everything that a forge, a terminal or a parser might interpret.
HOSTILE = (
    "@everyone @{557058:1} #1 !2 GH-3 <img src=x onerror=alert(1)> </details> **b** [x](http://e.x) "
    "www.evil.example `` ` | \\| \\` ```\n/close\n---\n# h\x1b[31m\u202e\x00 --> ]]> && %0A::error::"
)


def finding(number: int = 1, **changes: Any) -> GateFinding:
    """A breaking change that passes through a model."""
    facts: dict[str, Any] = {
        "fingerprint": f"{number:016x}",
        "level": "error",
        "rule": "removed",
        "dataset": "users",
        "path": "email",
        "before": "STRING",
        "after": None,
        "affected": f"report_{number}",
        "owners": ("growth",),
        "message": f"users.email was removed and breaks report_{number} (growth): needs mail "
        f"(models/report_{number}.sql:3)",
        "reason": "needs mail",
        "clause": "where mail <> ''",
        "declared": GateLocation(file="schemas/users.schema"),
        "used": GateLocation(file=f"models/report_{number}.sql", line=3),
        "trail": (
            GateStep(
                dataset="users", column="email", location=GateLocation(file="schemas/users.schema")
            ),
            GateStep(
                dataset="logins",
                column="mail",
                location=GateLocation(file="models/logins.sql", line=2),
            ),
        ),
        "recommendations": ("Notify growth before deploying",),
    }
    return GateFinding(**facts | changes)


def report(*findings: GateFinding, **changes: Any) -> GateReport:
    """The report with some findings."""
    count = {
        level: sum(each.level == level and each.is_open for each in findings)
        for level in ("error", "warning", "note")
    }
    facts: dict[str, Any] = {
        "headline": "This changes 3 schemas, affecting 12 downstream datasets; 1 breaking change",
        "verdict": "breaking" if count["error"] else "passed",
        "base": "main",
        "head": "HEAD",
        "base_commit": "a" * 40,
        "head_commit": "b" * 40,
        "summary": GateSummary(
            schemas=3, affected=12, breaking=count["error"], undetermined=count["warning"],
            notes=count["note"], waived=sum(not each.is_open for each in findings),
        ),
        "findings": findings,
        "waivers": (),
        "coverage": 1.0,
        "remarks": (),
    }  # fmt: skip
    return GateReport(**facts | changes)


def hostile_report() -> GateReport:
    """A report in which every text of the change is hostile."""
    place = GateLocation(file=f"models/{HOSTILE}.sql", line=7)
    bad = finding(
        dataset=HOSTILE,
        path=HOSTILE,
        before=HOSTILE,
        after=HOSTILE,
        affected=HOSTILE,
        owners=(HOSTILE, "@acme/shop"),
        message=HOSTILE,
        reason=HOSTILE,
        clause=HOSTILE,
        declared=place,
        used=place,
        trail=(GateStep(dataset=HOSTILE, column=HOSTILE, location=place),) * 2,
        recommendations=(HOSTILE,),
    )
    return report(
        bad,
        finding(2, waived_by=HOSTILE, message=HOSTILE),
        finding(3, level="warning", affected=None, used=None, declared=None, trail=()),
        finding(4, level="note", affected=None, used=None, message=HOSTILE),
        waivers=(WaiverProblem(fingerprint="0" * 16, reason=HOSTILE),),
        remarks=(HOSTILE,),
    )
