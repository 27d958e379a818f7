"""An impact as Markdown, as text and as a picture."""

from collections.abc import Sequence

import msgspec
import pytest

from lumos import Lumos
from lumos.cli.impact_text import plain_text
from lumos.cli.text import Names
from lumos.impact.markdown import escape, markdown
from lumos.impact.picture import add_impact, merge_pictures
from lumos.impact.reports import (
    ChangeReport,
    ColumnReport,
    DownstreamReport,
    ImpactReport,
    ImpactSummary,
    ReasonReport,
    SparkCheckReport,
    VerdictName,
    describe_changes,
    downstream_report,
    impacts_report,
)
from lumos.impact.rules.results import DatasetImpact, Reason
from lumos.lineage.drawing.picture import Arrow, Box, BoxImpact, BoxReason, Picture
from lumos.model.change import Verdict
from lumos.model.lineage import ColumnMapping
from lumos.model.urn import DisplayNames, display_names
from lumos.schemas.findings import ChangeValue

NAMES = DisplayNames(lambda urns: display_names(urns, {}))

START, FIRST, SECOND = (f"lumos://postgres/shop/sales/{name}" for name in ("a", "b", "c"))


def reason(
    text: str,
    verdict: VerdictName = "BREAKING",
    path: Sequence[str] = (),
    clause: str = "x = 'a|b'",
) -> ReasonReport:
    return ReasonReport(
        text=text, usage="JOIN", clause=clause, file="models/b.sql", line=4, verdict=verdict,
        path=tuple(path),
    )  # fmt: skip


def row(
    urn: str, verdict: VerdictName, *reasons: ReasonReport, owners: tuple[str, ...] = (),
    distance: int = 1, columns: Sequence[ColumnReport] = (), affected: bool = True,
    spark_check: tuple[SparkCheckReport, ...] = (),
) -> DownstreamReport:  # fmt: skip
    return DownstreamReport(
        urn=urn, verdict=verdict, distance=distance, owner=next(iter(owners), None), owners=owners,
        affected=affected, gone=False, columns=tuple(each.name for each in columns),
        changed=tuple(columns), reasons=reasons, spark_check=spark_check,
    )  # fmt: skip


def report(*rows: DownstreamReport, urn: str = START) -> ImpactReport:
    change = ChangeReport(urn=urn, path="id", kind="type_changed", before="INT64", after="STRING")
    return ImpactReport(
        headline=f"Changing id of {urn} from INT64 to STRING",
        change=change,
        changes=(change,),
        summary=ImpactSummary.of(rows),
        downstream=rows,
        recommendations=("Notify team before deploying",),
        order=(),
        coverage=0.5,
        remarks=(),
    )


CHANGED = ColumnReport(
    name="id", before="INT64", after="STRING", path=(f"{START}#id", f"{FIRST}#id")
)
BROKEN = row(
    FIRST, "BREAKING", reason("expects INT64 id in JOIN", path=[f"{START}#id"]), owners=("team",),
    columns=[CHANGED],
)  # fmt: skip
INDIRECT = row(
    SECOND, "COMPATIBLE", reason("casts id to STRING anyway", "COMPATIBLE", CHANGED.path),
    distance=2,
)  # fmt: skip


def test_markdown_begins_with_the_headline_and_folds_the_details() -> None:
    text = markdown(report(BROKEN, INDIRECT), NAMES)
    lines = text.splitlines()
    assert lines[0] == "### Changing id of a from INT64 to STRING"
    assert "| b | ❌ BREAKING | team | expects INT64 id in JOIN, `models/b.sql:4` |" in lines
    assert text.index("| Dataset |") < text.index("<details>") < text.index("**Recommendations**")
    assert "1. Notify team before deploying" in lines
    assert text.count("<details>") == text.count("</details>") == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a|b", "a\\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("see @everyone", "see @\u200beveryone"),
        ("**bold** [x](y)", "\\*\\*bold\\*\\* \\[x\\]\\(y\\)"),
        ("one\ntwo\x1b[0m", "one two \\[0m"),
        ("user_id of lumos://s3/a-b/c.d", "user_id of lumos://s3/a-b/c.d"),
        ("`code`", "\\`code\\`"),
    ],
)
def test_what_users_wrote_is_shown_and_not_obeyed(text: str, shown: str) -> None:
    assert escape(text) == shown


def text_of(found: ImpactReport) -> str:
    return plain_text(found, Names(Lumos()))


def test_what_uses_nothing_that_changes_is_listed_where_spark_says_otherwise() -> None:
    fails = SparkCheckReport(
        file="b.sql", line=1, dialect="spark", state="fails", error="ARITY", agrees=False
    )
    works = SparkCheckReport(file="c.sql", line=1, dialect="spark", state="ok")
    found = report(
        row(FIRST, "COMPATIBLE", affected=False, spark_check=(fails,)),
        row(SECOND, "COMPATIBLE", affected=False, spark_check=(works,)),
    )
    text = text_of(found)
    assert "Spark: fails (contradicts the verdict): ARITY (b.sql:1)" in text
    assert "1 dataset uses nothing that changes: c." in text
    output = markdown(found, NAMES)
    assert "- Spark: fails (contradicts the verdict): `ARITY`" in output
    assert "1 dataset downstream uses nothing that changes" in output


@pytest.mark.parametrize(
    ("file", "line", "output"),
    [
        ("models/b.sql", 4, "needs id, models/b.sql:4"),
        ("models/b.sql", None, "needs id, models/b.sql"),
        (None, 4, "needs id, line 4 of its SQL"),
        (None, None, "needs id"),
    ],
)
def test_a_position_is_reported_as_far_as_it_is_known(
    file: str | None, line: int | None, output: str
) -> None:
    why = msgspec.structs.replace(reason("needs id"), file=file, line=line)
    spark = SparkCheckReport(file=file, line=line, dialect=None, state="ok")
    found = report(row(FIRST, "BREAKING", why, spark_check=(spark,)))
    lines = [each.strip() for each in text_of(found).splitlines()]
    assert output in lines
    where = output.removeprefix("needs id").removeprefix(", ")
    assert (f"Spark: works ({where})" if where else "Spark: works") in lines
    assert f"- {output}: " in markdown(found, NAMES).replace("`", "")


@pytest.mark.parametrize(
    ("kind", "path", "sides", "output"),
    [
        ("reordered", "", (("a", "b"), ("b", "a")), f"Reordering the columns of {START}"),
        ("reordered", "x", (("a", "b"), ("b", "a")), f"Reordering the fields in x of {START}"),
        ("key", "id", (False, True), f"Making id of {START} a key"),
        ("key", "id", (True, False), f"Making id of {START} no key"),
        ("partitioning", "day", (False, True), f"Partitioning {START} by day"),
        ("partitioning", "day", (True, False), f"Partitioning {START} by day no longer"),
        ("default", "id", (None, "1"), f"Changing the default of id of {START}"),
        ("tags", "", ((), ("x",)), f"Changing the tags of {START}"),
    ],
)
def test_a_change_of_any_kind_is_described_in_words(
    kind: str, path: str, sides: tuple[ChangeValue, ChangeValue], output: str
) -> None:
    change = ChangeReport(urn=START, path=path, kind=kind, before=sides[0], after=sides[1])
    assert describe_changes([change], START) == output


def test_a_reason_about_a_very_long_expression_is_cut() -> None:
    why = Reason(
        text=f"what {'k || ' * 2500}k becomes cannot be told", verdict=Verdict.UNDETERMINED
    )
    found = DatasetImpact(urn=FIRST, verdict=Verdict.UNDETERMINED, distance=1, reasons=(why,))
    (output,) = downstream_report(found, is_deleted=False).reasons
    assert len(output.text) == 400
    assert output.text.endswith("...")


def test_clauses_stand_in_code_whatever_they_hold() -> None:
    odd = row(FIRST, "BREAKING", reason("needs it", clause="`a|b` <script> ``"))
    text = markdown(report(odd), NAMES)
    assert "``` `a\\|b` <script> `` ```" in text


def test_text_shows_the_path_to_indirect_impact() -> None:
    lines = [line.strip() for line in text_of(report(BROKEN, INDIRECT)).splitlines()]
    assert lines.index("team") < lines.index("no owner")
    assert "compatible    c  (2 steps away)" in lines
    assert "via a.id -> b.id" in lines
    assert "column id: INT64 -> STRING" in lines


def test_what_uses_nothing_that_changes_is_only_counted() -> None:
    rows = [row(f"{FIRST}{n}", "COMPATIBLE", reason("no"), affected=False) for n in range(10)]
    text = text_of(report(*rows))
    assert "10 datasets use nothing that changes: b0, " in text
    assert "and 2 more." in text
    assert "10 datasets downstream use nothing that changes." in markdown(report(*rows), NAMES)


def test_where_spark_and_the_verdict_disagree_both_are_shown() -> None:
    output = SparkCheckReport(
        file="models/b.sql", line=4, dialect="spark", state="fails", error="CAST_INVALID\nat 4",
        agrees=False,
    )  # fmt: skip
    found = report(row(FIRST, "COMPATIBLE", reason("fine", "COMPATIBLE"), spark_check=(output,)))
    words = "Spark: fails (contradicts the verdict): CAST_INVALID at 4 (models/b.sql:4)"
    assert words in text_of(found)
    assert "compatible" in text_of(found)


def picture() -> Picture:
    links = ((START, FIRST), (FIRST, SECOND))
    columns = tuple(ColumnMapping(upstream=name, downstream=name) for name in ("id", "plan"))
    return Picture(
        urn=START,
        boxes=tuple(Box(urn=urn, name=urn[-1], platform="x") for urn in (START, FIRST, SECOND)),
        arrows=tuple(Arrow(upstream=a, downstream=b, columns=columns) for a, b in links),
    )


def test_the_break_is_painted_along_the_columns_that_carry_it() -> None:
    drawn = add_impact(picture(), [report(BROKEN, INDIRECT)], NAMES)
    assert [box.mark for box in drawn.boxes] == [None, "breaking", "compatible"]
    assert [(arrow.mark, arrow.marked) for arrow in drawn.arrows] == [
        ("breaking", ("id",)),
        ("compatible", ("id",)),
    ]


def test_a_reason_without_a_column_paints_all_that_may_bring_it() -> None:
    doubtful = row(FIRST, "UNDETERMINED", reason("not known", "UNDETERMINED"))
    drawn = add_impact(picture(), [report(doubtful)], NAMES)
    assert [(arrow.mark, arrow.marked) for arrow in drawn.arrows] == [
        ("undetermined", ()),
        (None, ()),
    ]


def test_several_changes_are_one_picture_and_one_sum() -> None:
    other = report(row(SECOND, "BREAKING", reason("breaks")), urn=FIRST)
    both = merge_pictures([picture(), picture()])
    assert (len(both.boxes), len(both.arrows)) == (3, 2)
    drawn = add_impact(both, [report(BROKEN, INDIRECT), other], NAMES)
    assert drawn.boxes[2].mark == "breaking"
    output = impacts_report([report(BROKEN, INDIRECT), other], [])
    assert output.headline == "This changes 2 schemas, affecting 2 downstream datasets"
    assert (output.summary.datasets, output.summary.breaking) == (2, 2)
    assert output.recommendations == ("Notify team before deploying",)


def test_each_box_says_its_verdict_why_where_and_what_to_do() -> None:
    output = msgspec.structs.replace(BROKEN, recommendations=("Notify team before deploying",))
    calm = row(SECOND, "COMPATIBLE", reason("uses nothing of it", "COMPATIBLE"), affected=False)
    changed, broken, untouched = add_impact(picture(), [report(output, calm)], NAMES).boxes
    assert changed.impact == BoxImpact(
        changes=("id type changed: INT64 → STRING",),
        recommendations=("Notify team before deploying",),
    )
    assert broken.impact == BoxImpact(
        verdict="breaking",
        reasons=(
            BoxReason(
                text="expects INT64 id in JOIN", verdict="breaking", clause="x = 'a|b'",
                where="models/b.sql:4", path=("a.id",),
            ),
        ),
        columns=("id: INT64 → STRING",),
        recommendations=("Notify team before deploying",),
    )  # fmt: skip
    assert broken.owners == ("team",)
    assert untouched.impact is not None
    assert (untouched.mark, untouched.impact.affected) == (None, False)


def test_a_box_that_two_changes_reach_has_the_worse_verdict_and_all_reasons() -> None:
    other = report(row(SECOND, "BREAKING", reason("breaks")), urn=FIRST)
    both = add_impact(picture(), [report(BROKEN, INDIRECT), other], NAMES).boxes
    middle, last = (box.impact for box in both[1:])
    assert middle is not None
    assert last is not None
    assert (middle.verdict, len(middle.changes)) == ("breaking", 1)
    assert [each.text for each in last.reasons] == ["casts id to STRING anyway", "breaks"]
    assert last.verdict == "breaking"
