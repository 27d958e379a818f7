"""A dataset that comes apart is replaced by its parts, once, with all that people stated."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from discovery.scripted_lake import OLD, OLD_URN, Lake, dataset, parts, urns
from lumos import Lumos
from lumos.errors import MisuseError
from lumos.model.change import EventType
from lumos.model.dataset import Schedule
from lumos.model.discovery import FoundDataset
from lumos.model.notification import QueuedNotification
from lumos.store import Store
from recorded_lake import RecordedLake, urn_of


@pytest.fixture
def lake(seen: RecordedLake) -> Lake:
    return Lake(seen)


def test_a_dataset_that_comes_apart_is_replaced_by_its_parts(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    (event,) = lake.scan(parts(5)).splits
    assert lake.live() == urns(parts(5))
    assert (event.urn, event.type, event.breaking) == (OLD_URN, EventType.SPLIT, False)
    assert event.summary == "split into 5 datasets: part_000, part_001, part_002 and 2 more"
    assert event.metadata["part_count"] == 5
    assert str(event.metadata["parts"]).split() == sorted(urns(parts(5)))
    assert lake.store.state(OLD_URN) == "split"


def test_parts_with_the_same_name_are_distinguished_by_their_folder(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    same = [dataset(f"{OLD}/{each}/data", split_from=OLD) for each in ("eu", "us")]
    (event,) = lake.scan(same).splits
    assert event.summary == "split into 2 datasets: eu/data, us/data"


def test_scanning_again_records_nothing(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.scan(parts(3))
    before = lake.store.counts()["change_event"]
    unsplit = [msgspec.structs.replace(each, split_from=None) for each in parts(3)]
    for found in (parts(3), unsplit):
        again = lake.scan(found)
        assert (again.splits, again.missing, again.unconfirmed) == ((), (), ())
    assert lake.store.counts()["change_event"] == before


def test_a_part_that_keeps_the_path_keeps_urn_versions_and_history(lake: Lake) -> None:
    lake.scan([dataset(OLD, "id INT64\nemail STRING\ncart STRING")])
    found = [
        dataset(OLD, split_from=OLD, content="2"),
        dataset("/lake/carts", "id INT64\ncart STRING", split_from=OLD),
    ]
    (event,) = lake.scan(found).splits
    assert event.summary == "split into 2 datasets: carts, events"
    assert lake.live() == urns(found)
    history = lake.lumos.history(OLD_URN)
    assert [each.schema_version for each in history.versions] == ["2.0.0", "1.0.0"]
    assert [each.event for each in history.milestones] == [EventType.SPLIT]
    assert lake.scan(found).splits == ()
    assert len(lake.events(EventType.SPLIT)) == 1


def test_the_history_of_a_part_begins_with_where_it_came_from(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.scan([dataset(OLD, content="2")])
    lake.scan(parts(2))
    (version,) = lake.lumos.history("part_000").versions
    assert (version.schema_version, version.event) == ("1.0.0", EventType.CREATED)
    assert version.summary == f"first seen; split from {OLD_URN}"
    created = lake.store.events(str(urn_of(f"{OLD}/part_000")))[0]
    assert created.metadata["split_from"] == OLD_URN


def test_parts_inherit_what_people_stated_as_far_as_it_fits(lake: Lake) -> None:
    lake.scan([dataset(OLD, "id INT64\nemail STRING\ncart STRING")])
    people = lake.lumos.annotations
    people.owners.add("analytics-team", group=True)
    people.owners.assign("analytics-team", OLD_URN)
    people.docs.set(OLD_URN, "What visitors do")
    people.docs.set(OLD_URN, "Where to write", fields=["email"])
    people.docs.set(OLD_URN, "What they buy", fields=["cart"])
    people.tags.set(OLD_URN, "pii", fields=["email"])
    people.compliance.set(OLD_URN, "GDPR")
    people.properties.set(OLD_URN, {"tier": "gold"})
    with lake.store.transaction() as transaction:
        daily = Schedule(cron="0 3 * * *")
        transaction.save_aspect(OLD_URN, "schedule", daily, writer="user", at=_now(lake))
    found = [
        dataset(f"{OLD}/signups", split_from=OLD),
        dataset(f"{OLD}/carts", "id INT64\ncart STRING", split_from=OLD),
    ]
    lake.scan(found)
    signups, carts = (lake.store.get(str(urn_of(each.path))) for each in found)
    for part in (signups, carts):
        assert part.ownership is not None
        assert [owner.name for owner in part.ownership.owners] == ["analytics-team"]
        assert part.documentation is not None
        assert part.documentation.description == "What visitors do"
        assert part.governance is not None
        assert part.governance.compliance == ("GDPR",)
        assert (part.properties, part.schedule) == ({"tier": "gold"}, daily)
    assert signups.schema is not None
    assert carts.schema is not None
    assert [each.description for each in signups.schema.fields] == [None, "Where to write"]
    assert signups.schema.fields[1].tags == ("pii",)
    assert [each.description for each in carts.schema.fields] == [None, "What they buy"]
    stated = people.docs.list(carts.urn).annotations
    assert {(each.field, each.by) for each in stated} == {("", "user"), ("cart", "user")}
    # The inherited descriptions are part of the schema, and no change of the next scan.
    assert [each.event for each in lake.scan(found).datasets] == [None, None]


def _now(lake: Lake) -> Any:
    return lake.store.events(OLD_URN)[-1].at


def test_parts_that_a_scan_of_a_folder_inside_recorded_first_inherit_as_well(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    people = lake.lumos.annotations
    people.owners.add("analytics-team", group=True)
    people.owners.assign("analytics-team", OLD_URN)
    people.docs.set(OLD_URN, "What visitors do")
    unsplit = [msgspec.structs.replace(each, split_from=None) for each in parts(3)]
    lake.scan([dataset(OLD), *unsplit])
    people.docs.set(str(urn_of(parts(3)[0].path)), "What the first part is")
    (event,) = lake.scan(parts(3)).splits
    assert event.metadata["part_count"] == 3
    found = [lake.store.get(str(urn_of(each.path))) for each in parts(3)]
    assert all(each.ownership is not None for each in found)
    described = [each.documentation.description for each in found if each.documentation]
    assert described == ["What the first part is", "What visitors do", "What visitors do"]


def test_a_monthly_cost_is_divided_among_the_parts_by_their_size(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.lumos.cost_sources.set(OLD_URN, {"storage": 100, "compute": "0.000001"})
    found = [
        dataset(f"{OLD}/{name}", split_from=OLD, size=size)
        for name, size in {"a": 1, "b": 1, "c": 4}.items()
    ]
    lake.scan(found)
    overrides = lake.store.costs.overrides()
    stored = {each.urn[-1]: each.amount for each in overrides if each.type == "storage"}
    assert stored == {"a": 16_666_666, "b": 16_666_667, "c": 66_666_667}
    assert sum(each.amount for each in overrides if each.type == "compute") == 1
    assert {each.since for each in overrides} == {date(1970, 1, 1)}
    lake.scan(found)
    assert lake.store.costs.overrides() == overrides


class Killed(BaseException):
    pass


def kill_after(
    transactions: int, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Lake, list[FoundDataset]], None]:
    """Lets a scan die when it has committed some batches of datasets."""

    def scan(lake: Lake, found: list[FoundDataset]) -> None:
        transact, done = Store.transact, 0

        def dying(store: Store, action: Any) -> Any:
            nonlocal done
            if done == transactions:
                raise Killed
            done += 1
            return transact(store, action)

        with monkeypatch.context() as patched:
            patched.setattr(Store, "transact", dying)
            with pytest.raises(Killed):
                lake.scan(found)

    return scan


def test_a_scan_that_is_killed_between_batches_is_completed_by_the_next_one(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.scan([dataset(OLD)])
    lake.lumos.annotations.owners.add("analytics-team")
    lake.lumos.annotations.owners.assign("analytics-team", OLD_URN)
    found = parts(120)
    kill_after(1, monkeypatch)(lake, found)
    assert lake.store.state(OLD_URN) == "live"
    assert len(lake.live()) == 51
    assert len(lake.scan(found).splits) == 1
    assert lake.live() == urns(found)
    for event, count in ((EventType.SPLIT, 1), (EventType.CREATED, 121)):
        assert len(lake.events(event)) == count
    owned = lake.store.aspects("ownership", source="file:/lake")
    assert owned.keys() == {OLD_URN, *lake.live()}


def test_a_scan_that_is_killed_before_its_last_transaction_splits_once(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.scan([dataset(OLD)])
    found = [dataset(OLD, "id INT64", split_from=OLD, content="2"), *parts(3)]

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr("lumos.store.Transaction.save_scan", die)
        with pytest.raises(Killed):
            lake.scan(found)
    assert lake.events(EventType.SPLIT) == []
    assert len(lake.scan(found).splits) == 1
    assert lake.scan(found).splits == ()
    assert len(lake.events(EventType.SPLIT)) == 1


@pytest.mark.slow
def test_of_very_many_parts_an_event_names_the_first_thousand(lake: Lake) -> None:
    lake.scan([dataset(OLD), dataset("/lake/orders")])
    found = [dataset("/lake/orders"), *parts(1_001)]
    done = lake.scan(found)
    (event,) = done.splits
    assert (done.missing, done.unconfirmed) == ((), ())
    assert event.metadata["part_count"] == 1_001
    assert len(str(event.metadata["parts"]).split()) == 1_000
    assert len(lake.live()) == 1_002


def test_the_guard_against_mass_removal_does_not_count_split_datasets(lake: Lake) -> None:
    old = [f"/lake/glued_{number:03}" for number in range(200)]
    lake.scan(dataset(path) for path in old)
    done = lake.scan(part for path in old for part in parts(2, of=path))
    assert (done.missing, done.unconfirmed, len(done.splits)) == ((), (), 200)
    assert len(lake.live()) == 400


def test_a_dataset_that_vanishes_beside_a_split_is_still_gone(lake: Lake) -> None:
    lake.scan([dataset(OLD), *(dataset(f"/lake/{name}") for name in "abcd")])
    done = lake.scan([*parts(2), *(dataset(f"/lake/{name}") for name in "abc")])
    assert done.missing == (str(urn_of("/lake/d")),)
    assert lake.store.state(done.missing[0]) == "missing"


def test_a_part_that_was_a_dataset_before_goes_on_with_its_own_history(lake: Lake) -> None:
    lake.scan([dataset(OLD), dataset("/lake/carts")])
    lake.lumos.annotations.docs.set(OLD_URN, "What visitors do")
    lake.lumos.annotations.docs.set("carts", "What they buy")
    merged = msgspec.structs.replace(dataset(OLD, content="2"), merged_from=("/lake/carts",))
    lake.scan([merged])
    lake.scan([dataset("/lake/carts", split_from=OLD), dataset("/lake/clicks", split_from=OLD)])
    carts = lake.store.get(str(urn_of("/lake/carts")))
    assert carts.urn == str(urn_of("/lake/carts"))
    assert carts.documentation is not None
    assert carts.documentation.description == "What they buy"
    events = [each.type for each in lake.store.events(carts.urn)]
    assert (events[0], events[-1]) == (EventType.CREATED, EventType.RESTORED)


def test_an_old_dataset_whose_files_are_grouped_as_before_comes_back(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.scan(parts(2))
    whole = msgspec.structs.replace(
        dataset(OLD, content="2"), merged_from=tuple(each.path for each in parts(2))
    )
    lake.scan([whole])
    assert lake.live() == {OLD_URN}
    (event,) = lake.scan(parts(2)).splits
    assert event.urn == OLD_URN
    assert len(lake.events(EventType.SPLIT)) == 2


def test_parts_that_are_merged_again_can_be_split_again(lake: Lake) -> None:
    apart = [dataset(OLD, split_from=OLD, content="2"), dataset("/lake/carts", split_from=OLD)]
    lake.scan([dataset(OLD)])
    lake.scan(apart)
    whole = msgspec.structs.replace(dataset(OLD, content="3"), merged_from=("/lake/carts",))
    lake.scan([whole])
    assert lake.live() == {OLD_URN}
    assert len(lake.scan(apart).splits) == 1
    assert lake.scan(apart).splits == ()
    assert len(lake.events(EventType.SPLIT)) == 2


def test_the_old_urn_says_what_became_of_it(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.scan(parts(3))
    shown = lake.lumos.show(OLD_URN)
    assert shown.state == "split"
    assert shown.split is not None
    assert (shown.split.parts, shown.split.part_count) == (tuple(sorted(urns(parts(3)))), 3)
    (milestone,) = lake.lumos.history(OLD_URN).milestones
    assert milestone.summary == "split into 3 datasets: part_000, part_001, part_002"
    (event,) = lake.lumos.changes(types=["split"]).events
    assert (event.urn, event.change_type) == (OLD_URN, "METADATA_UPDATE")
    assert lake.lumos.version.show(OLD_URN).change_details.event is EventType.CREATED
    assert {each.urn for each in lake.lumos.search("events").results} == urns(parts(3))
    with pytest.raises(MisuseError, match=f"was split into other .* lumos show {OLD_URN}"):
        lake.lumos.annotations.docs.set(OLD_URN, "What visitors do")


def test_a_file_of_annotations_that_names_a_split_dataset_means_its_parts(
    lake: Lake, tmp_path: Path
) -> None:
    file = tmp_path / "enrich.yaml"
    file.write_text(f"datasets: [{{dataset: '{OLD_URN}', description: What visitors do}}]")
    lake.scan([dataset(OLD)])
    lake.lumos.annotations.enrich(file)
    lake.scan(parts(2))
    report = lake.lumos.annotations.enrich(file)
    assert (report.changed, len(report.remarks)) == (0, 1)
    assert report.remarks[0].endswith("was split; applied to its 2 parts.")
    part = lake.store.get(str(urn_of(f"{OLD}/part_000")))
    assert part.documentation is not None
    assert part.documentation.description == "What visitors do"


def test_lineage_of_the_old_dataset_stays_until_it_is_reported_again(lake: Lake) -> None:
    lake.scan([dataset(OLD), dataset("/lake/report")])
    lake.lumos.lineage.add(OLD_URN, "report")
    lake.scan([*parts(2), dataset("/lake/report")])
    lineage = lake.store.get(str(urn_of("/lake/report"))).lineage
    assert lineage is not None
    assert [each.urn for each in lineage.upstream] == [OLD_URN]


@pytest.fixture
def notified(stored: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake with two channels, one of which asks for each new dataset; nothing is sent."""
    monkeypatch.setattr("lumos.notifications.delivery.NotificationSender.wake", lambda _: None)
    settings = {
        "notifications.channels": {"chat": "json://localhost:1", "oncall": "json://localhost:1"},
        "notifications.changes": [
            {"channels": ["chat"], "events": ["CREATED", "SCHEMA_CHANGED"]},
            {"channels": ["oncall"], "verdicts": ["breaking"], "datasets": ["clicks"]},
        ],
    }
    return Lake(RecordedLake(Lumos(overrides={**stored, **settings})))


def messages(lake: Lake, channel: str) -> list[QueuedNotification]:
    posted = lake.store.notification_outbox.list(states=("pending",), limit=1_000)
    return [each for each in posted if each.notification.channel == channel]


def test_one_message_sums_up_all_that_was_split(notified: Lake) -> None:
    wide = "id INT64\nemail STRING\ncart STRING"
    notified.scan(dataset(f"/lake/{name}", wide) for name in ("carts", "clicks", "events"))
    before = len(messages(notified, "chat"))
    found = [
        *parts(270, of="/lake/carts"),
        *parts(270, of="/lake/clicks"),
        *parts(271),
        dataset(OLD, split_from=OLD, content="2"),
    ]
    notified.scan(found)
    newest, *earlier = messages(notified, "chat")
    assert (before, len(earlier)) == (3, 3)
    assert newest.notification.title == "Grouping changed: 3 datasets were split into 812"
    lines = newest.notification.body.splitlines()
    assert len(lines) == 3
    assert lines[0] == (
        f"- {urn_of('/lake/carts')}: split into 270 datasets: part_000, part_001, part_002 "
        "and 267 more"
    )
    (message,) = messages(notified, "oncall")
    assert message.notification.title == "Grouping changed: 1 dataset was split into 270"
    notified.scan(found)
    assert len(messages(notified, "chat")) == 4


def test_a_change_of_a_part_after_the_split_is_notified_again(notified: Lake) -> None:
    notified.scan([dataset(OLD)])
    notified.scan(parts(2))
    changed = [dataset(each.path, "id INT64", content="2") for each in parts(2)]
    notified.scan(changed)
    titles = [each.notification.title for each in messages(notified, "chat")]
    assert titles[:2] == ["part_001 2.0.0: breaking", "part_000 2.0.0: breaking"]
    assert len(titles) == 4


def test_a_name_that_a_part_shares_with_the_old_dataset_means_the_part(lake: Lake) -> None:
    lake.scan([dataset(OLD)])
    lake.scan([dataset(f"{OLD}/{name}", split_from=OLD) for name in ("events", "carts")])
    assert lake.store.find("events") == f"{OLD_URN}/events"
    assert lake.store.find(OLD_URN) == OLD_URN
