"""Which channels hear of which change."""

import pytest

from lumos.config.settings import ChangeRule
from lumos.model.change import EventType, Verdict
from lumos.model.urn import Urn
from lumos.notifications.messages import RoutedChange, route_change

URN = "lumos://s3/data-lake/raw/events/user_clicks"


def change(urn: str = URN, *verdicts: Verdict, **facts: object) -> RoutedChange:
    parsed = Urn.parse(urn)
    defaults: dict[str, object] = {
        "urn": urn,
        "name": parsed.name.partition(".")[0],
        "type": EventType.SCHEMA_CHANGED,
        "verdicts": frozenset(verdicts or (Verdict.COMPATIBLE,)),
    }
    return RoutedChange(**{**defaults, **facts})  # type: ignore[arg-type]


def is_routed(changed: RoutedChange, **rule: object) -> bool:
    return "chat" in route_change(changed, [ChangeRule(channels=("chat",), **rule)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "urn", "expected"),
    [
        ("user_*", URN, True),
        ("clicks", URN, False),
        ("/raw/events/*", URN, True),
        ("aw/events/*", URN, False),
        ("raw/**", URN, True),
        ("raw/events", URN, False),
        ("*", URN, True),
        ("lumos://s3/*", URN, True),
        ("lumos://file/*", URN, False),
        ("users", "lumos://file/lake/ref/users.csv", True),
    ],
)
def test_a_pattern_means_a_name_the_end_of_a_path_or_a_urn(
    pattern: str, urn: str, expected: bool
) -> None:
    assert is_routed(change(urn), datasets=(pattern,)) is expected


@pytest.mark.parametrize(
    ("wanted", "found", "expected"),
    [
        ((), (Verdict.INFORMATIONAL,), True),
        ((Verdict.BREAKING,), (Verdict.BREAKING, Verdict.COMPATIBLE), True),
        ((Verdict.BREAKING,), (Verdict.COMPATIBLE, Verdict.UNDETERMINED), False),
        ((Verdict.BREAKING, Verdict.UNDETERMINED), (Verdict.UNDETERMINED,), True),
    ],
)
def test_a_change_is_sent_if_any_part_of_it_has_a_selected_verdict(
    wanted: tuple[Verdict, ...], found: tuple[Verdict, ...], expected: bool
) -> None:
    assert is_routed(change(URN, *found), verdicts=wanted) is expected


@pytest.mark.parametrize(
    ("wanted", "owners", "expected"),
    [
        ((), (), True),
        (("analytics",), (), False),
        (("analytics",), ("ml", "analytics"), True),
        (("team-*",), ("team-a",), True),
        (("analytics",), ("Analytics",), False),
    ],
)
def test_owner_filters_select_whose_datasets_are_sent(
    wanted: tuple[str, ...], owners: tuple[str, ...], expected: bool
) -> None:
    assert is_routed(change(owners=owners), owners=wanted) is expected


NO_VERDICT: frozenset[Verdict] = frozenset()


@pytest.mark.parametrize(
    ("rule", "type", "verdicts", "expected"),
    [
        ({}, EventType.MODIFIED, NO_VERDICT, False),
        ({}, EventType.DELETED, NO_VERDICT, False),
        ({}, EventType.RESTORED, {Verdict.BREAKING}, True),
        ({"events": (EventType.DELETED,)}, EventType.DELETED, NO_VERDICT, True),
        ({"events": (EventType.DELETED,)}, EventType.SCHEMA_CHANGED, {Verdict.BREAKING}, False),
        (
            {
                "events": (EventType.DELETED, EventType.SCHEMA_CHANGED),
                "verdicts": (Verdict.BREAKING,),
            },
            EventType.DELETED,
            NO_VERDICT,
            True,
        ),
        (
            {
                "events": (EventType.DELETED, EventType.SCHEMA_CHANGED),
                "verdicts": (Verdict.BREAKING,),
            },
            EventType.SCHEMA_CHANGED,
            {Verdict.COMPATIBLE},
            False,
        ),
    ],
)
def test_events_without_schema_changes_are_sent_if_a_rule_names_them(
    rule: dict[str, object], type: EventType, verdicts: set[Verdict], expected: bool
) -> None:
    assert is_routed(change(type=type, verdicts=frozenset(verdicts)), **rule) is expected


def test_several_rules_notify_a_channel_once_with_the_text_of_the_first() -> None:
    first = ChangeRule(channels=("chat", "mail"), title="first")
    second = ChangeRule(channels=("chat", "pager"), title="second", verdicts=(Verdict.BREAKING,))
    found = route_change(change(URN, Verdict.BREAKING), [first, second])
    assert {name: rule.title for name, rule in found.items()} == {
        "chat": "first",
        "mail": "first",
        "pager": "second",
    }


def test_a_split_passes_every_rule_about_its_dataset() -> None:
    split = change(type=EventType.SPLIT, verdicts=frozenset(), owners=("analytics-team",))
    assert is_routed(split)
    assert is_routed(split, events=(EventType.DELETED,), verdicts=(Verdict.BREAKING,))
    assert not is_routed(split, datasets=("orders",))
    assert not is_routed(split, owners=("ml-platform",))
