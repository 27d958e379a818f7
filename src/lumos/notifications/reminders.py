"""Reminders: messages on a schedule about missing documentation, and digests of changes.

Each due time is handled once, in one transaction that writes all messages into the outbox. Datasets
that stay without documentation are flagged: the reporter `reminder:<name>` annotates them with a
tag and the day since when documentation is missing, and retracts both once it is complete.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from lumos.annotations.items import ItemStore
from lumos.annotations.lists import annotated_entries
from lumos.annotations.locations import is_match
from lumos.annotations.requirements import has_documentation, missing_fields
from lumos.annotations.writer import RETRACT, AnnotationChanges, AnnotationWriter
from lumos.config import Settings
from lumos.config.settings import DATASET_OWNER, DocumentationRules, Reminder, ReminderKind
from lumos.errors import MisuseError, UnknownName
from lumos.model.annotation import REMINDER, AnnotationKey, AnnotationMap
from lumos.model.catalog import Group, User
from lumos.model.change import ChangeEvent
from lumos.model.cron import last_due, parse_cron
from lumos.model.dataset import Dataset
from lumos.model.dataset_pattern import DatasetPattern
from lumos.model.notification import Notification, ReminderRun
from lumos.model.quiet_hours import parse_quiet_hours
from lumos.model.report import FORMAT_VERSION, Report
from lumos.notifications.channels import needs_email
from lumos.notifications.delivery import DeliveryResult, NotificationSender
from lumos.notifications.digest import TEMPLATE as DIGEST_TEMPLATE
from lumos.notifications.digest import TITLE as DIGEST_TITLE
from lumos.notifications.digest import Digest, group_changes, is_mentioned
from lumos.notifications.messages import fill_template, printable_text
from lumos.notifications.reminder_text import (
    TEMPLATE,
    TITLE,
    DatasetText,
    bullet_list,
    fill_reminder,
)
from lumos.rendering.text import format_time, plural
from lumos.store import Store
from lumos.store.history import EventFilter

# The required fields if documentation.required_fields is not configured.
_DEFAULT_FIELDS: Final = ("description", "business_context")
_PAGE_SIZE: Final = 1_000
_SINCE: Final = AnnotationKey("", "property", "undocumented-since")


class ReminderMessage(Report, frozen=True, kw_only=True):
    """A message for one recipient; without `recipient`, about datasets that have no owner.

    `count` is the number of datasets, or of changes in a digest. Only a dry run shows the `body`.
    """

    recipient: str | None
    count: int
    channels: tuple[str, ...]
    title: str
    body: str | None


class ReminderReport(Report, frozen=True, kw_only=True):
    """The messages and flags of a reminder for its last due time.

    `repeated` is true if the due time was handled before; then nothing is sent. `send_at` is the
    end of the quiet hours, if these delay the messages. `unreached` are owners without an address
    on any channel. The deprecation tag was added to `flagged` and removed from `unflagged`
    datasets.
    """

    name: str
    kind: ReminderKind
    due_at: datetime | None
    repeated: bool
    send_at: datetime | None
    messages: tuple[ReminderMessage, ...]
    opted_out: tuple[str, ...]
    unreached: tuple[str, ...]
    flagged: tuple[str, ...]
    unflagged: tuple[str, ...]


class RemindReport(Report, frozen=True, kw_only=True):
    """The report of `lumos notify remind`: reminders, counts of messages, problems by channel."""

    format_version: str = FORMAT_VERSION
    dry_run: bool
    reminders: tuple[ReminderReport, ...]
    sent: int
    failed: int
    problems: dict[str, str]


class UndocumentedDataset(NamedTuple):
    """A dataset without required documentation, and the day since when it is missing."""

    dataset: Dataset
    missing: tuple[str, ...]
    since: date

    @property
    def owners(self) -> tuple[str, ...]:
        ownership = self.dataset.ownership
        return tuple(dict.fromkeys(owner.name for owner in ownership.owners)) if ownership else ()


class _Flags(NamedTuple):
    """The annotation changes of a reminder by URN, and the datasets whose tag they change."""

    changes: dict[str, AnnotationChanges]
    flagged: tuple[str, ...]
    unflagged: tuple[str, ...]


class Reminders:
    """Writes the messages of reminders, and flags datasets that stay undocumented."""

    def __init__(
        self,
        settings: Settings,
        store: Callable[[], Store],
        *,
        writer: Callable[[], AnnotationWriter],
        sender: Callable[[], NotificationSender],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._settings = settings
        self._notifications = settings.notifications
        self._store = store
        self._writer = writer
        self._sender = sender
        self._clock = clock

    def run(self, name: str | None = None, *, dry_run: bool = False) -> RemindReport:
        """Handle the last due time of one reminder or of all, and send the messages."""
        configured = self._notifications.reminders
        if name is not None and name not in configured:
            raise UnknownName(
                "reminder",
                name,
                configured,
                next="Add it to notifications in lumos.yaml, then run: lumos config check",
            )
        if configured and not self._notifications.channels and not dry_run:
            raise MisuseError(
                "There is no channel for reminders. Add one to notifications.channels in "
                "lumos.yaml, then try it with: lumos notify test CHANNEL"
            )
        if not dry_run:
            self._retract_unconfigured()
        names = configured if name is None else (name,)
        reports = tuple(self._run(each, dry_run=dry_run) for each in names)
        has_posted = any(each.messages and not each.repeated for each in reports)
        result = self._sender().deliver() if has_posted and not dry_run else DeliveryResult()
        return RemindReport(
            dry_run=dry_run,
            reminders=reports,
            sent=result.sent,
            failed=result.failed,
            problems=result.problems,
        )

    def email_of(self, owner: str) -> str | None:
        """The mail address of an owner."""
        return email_of(owner, self._people().get(owner))

    def unflag(self, urns: Sequence[str]) -> None:
        """Retract the flags of datasets whose documentation is complete now."""
        if not any(map(self._flags_datasets, self._notifications.reminders)):
            return
        store = self._store()
        annotations = store.annotations.of(urns)
        flagged = [urn for urn in urns if any(map(_is_reminder, annotations.get(urn, {})))]
        for urn, stored in store.entries.get_many(flagged).items():
            for reporter, own in annotations[urn].items():
                if _is_reminder(reporter) and not self._missing(stored.dataset, own):
                    self._retract(reporter, [urn])

    def _run(self, name: str, *, dry_run: bool) -> ReminderReport:
        reminder, now = self._notifications.reminders[name], self._clock()
        due_at = last_due(parse_cron(reminder.schedule), reminder.timezone, now)
        store = self._store()
        last = store.notification_outbox.last_run(name)
        position = store.change_log.position()
        undocumented, flags = self._check_datasets(name, reminder, now)
        if self._flags_datasets(name):
            drafts = self._missing_docs_messages(reminder, undocumented, now)
        else:
            drafts = self._digest_messages(
                reminder, last, until=position, due_at=due_at or now, now=now
            )
        if not dry_run:
            self._write_flags(name, flags)
        send_at = now
        if reminder.quiet_hours is not None:
            quiet_hours = parse_quiet_hours(reminder.quiet_hours)
            send_at = quiet_hours.next_end(now, reminder.timezone)
        messages, opted_out, unreached = self._add_channels(reminder, drafts)
        # Before its first due time, a reminder can only be run manually: that run is due now.
        run = ReminderRun(reminder=name, due_at=due_at or now, ran_at=now, position=position)
        repeated = last is not None and last.due_at >= run.due_at
        if not dry_run and not repeated and messages:
            repeated = not self._post(run, messages, send_at)
        if repeated and not dry_run:
            messages = []
        return ReminderReport(
            name=name,
            kind=self._notifications.reminder_kind(name),
            due_at=due_at,
            repeated=repeated,
            send_at=send_at if send_at > now else None,
            messages=tuple(
                each if dry_run else msgspec.structs.replace(each, body=None) for each in messages
            ),
            opted_out=opted_out,
            unreached=unreached,
            flagged=flags.flagged,
            unflagged=flags.unflagged,
        )

    def _post(
        self, run: ReminderRun, messages: Iterable[ReminderMessage], send_at: datetime
    ) -> bool:
        """Put messages into the outbox, all or none; False if another process was faster."""
        with self._store().transaction() as transaction:
            if not transaction.record_reminder_run(run):
                return False
            count = 0
            for each in messages:
                for channel in each.channels:
                    message = Notification(
                        event_id=_event_id(run, each.recipient),
                        channel=channel,
                        urn="",
                        title=each.title,
                        body=each.body or "",
                        recipient=each.recipient,
                    )
                    transaction.post(message, at=run.ran_at, due_at=send_at)
                    count += 1
            details = plural(count, "message")
            transaction.audit("remind", run.reminder, at=run.ran_at, details=details)
        return True

    # Who gets which message

    def _add_channels(
        self, reminder: Reminder, drafts: Iterable[ReminderMessage]
    ) -> tuple[list[ReminderMessage], tuple[str, ...], tuple[str, ...]]:
        """The messages with their channels, and the owners who opted out or have no address."""
        opted_out_names = {name.casefold() for name in reminder.opt_out}
        channels = reminder.channels or tuple(self._notifications.channels)
        shared = tuple(each for each in channels if not self._notifications.is_per_owner(each))
        people = self._people()
        messages: list[ReminderMessage] = []
        opted_out: list[str] = []
        unreached: list[str] = []
        for each in drafts:
            name = each.recipient
            if name is not None and name.casefold() in opted_out_names:
                opted_out.append(name)
                continue
            open_channels = (
                shared
                if name is None
                else tuple(
                    channel
                    for channel in channels
                    if channel in shared or self._can_reach(channel, name, people)
                )
            )
            if channels and not open_channels:
                unreached.append(name or "datasets without an owner")
                continue
            messages.append(msgspec.structs.replace(each, channels=open_channels))
        return messages, tuple(opted_out), tuple(unreached)

    def _can_reach(self, channel: str, name: str, people: Mapping[str, User | Group]) -> bool:
        address = self._notifications.channels[channel]
        return not needs_email(address) or email_of(name, people.get(name)) is not None

    def _people(self) -> dict[str, User | Group]:
        items = ItemStore(self._writer())
        return {**items.all(User), **items.all(Group)}

    def _display_name(self, name: str, people: Mapping[str, User | Group]) -> str:
        known = people.get(name)
        return (known.display_name if known else None) or name

    # Missing documentation

    def _check_datasets(
        self, name: str, reminder: Reminder, now: datetime
    ) -> tuple[list[UndocumentedDataset], _Flags]:
        """The undocumented datasets, and the changes of the reminder's annotations."""
        if not self._flags_datasets(name):
            return [], _Flags({}, (), ())
        reporter = f"{REMINDER}{name}"
        tag = AnnotationKey("", "tag", reminder.deprecation_tag)
        days = reminder.deprecate_after_days
        undocumented: list[UndocumentedDataset] = []
        changes: dict[str, AnnotationChanges] = {}
        flagged: list[str] = []
        unflagged: list[str] = []
        exemptions = [DatasetPattern(each.pattern) for each in self._rules.exceptions]
        for stored, annotations in annotated_entries(self._store(), None):
            dataset, own = stored.dataset, annotations.get(reporter, {})
            is_exempt = any(is_match(each, stored.known, dataset) for each in exemptions)
            missing = () if is_exempt else self._missing(dataset, own)
            wanted: dict[AnnotationKey, str] = {}
            if missing:
                since = _undocumented_since(own) or now.date()
                undocumented.append(UndocumentedDataset(dataset, missing, since))
                wanted[_SINCE] = since.isoformat()
                if days and now.date() - since >= timedelta(days=days):
                    wanted[tag] = ""
            if wanted == {key: each.value for key, each in own.items()}:
                continue
            changes[dataset.urn] = {**dict.fromkeys(own.keys() - wanted.keys(), RETRACT), **wanted}
            had_tag = any(key.slot == "tag" for key in own)
            if tag in wanted and not had_tag:
                flagged.append(dataset.name)
            elif had_tag and tag not in wanted:
                unflagged.append(dataset.name)
        return undocumented, _Flags(changes, tuple(flagged), tuple(unflagged))

    @property
    def _rules(self) -> DocumentationRules:
        rules = self._settings.documentation
        if rules.required_fields:
            return rules
        return msgspec.structs.replace(rules, required_fields=_DEFAULT_FIELDS)

    def _missing(self, dataset: Dataset, own: AnnotationMap) -> tuple[str, ...]:
        """The required fields that a dataset lacks; tags from the reminder itself do not count."""
        tags = {key.name for key in own if key.slot == "tag"}
        governance = dataset.governance
        if tags and governance is not None:
            others = tuple(each for each in governance.tags if each not in tags)
            governance = msgspec.structs.replace(governance, tags=others)
            dataset = msgspec.structs.replace(dataset, governance=governance)
        return missing_fields(dataset, self._rules)

    def _flags_datasets(self, name: str) -> bool:
        return self._notifications.reminder_kind(name) == "missing_docs"

    def _write_flags(self, name: str, flags: _Flags) -> None:
        def edit(dataset: Dataset, _own: AnnotationMap) -> AnnotationChanges:
            return flags.changes[dataset.urn]

        if flags.changes:
            reporter = f"{REMINDER}{name}"
            self._writer().write(
                flags.changes, edit, action="remind", target=name, reporter=reporter
            )

    def _retract_unconfigured(self) -> None:
        """Retract the flags of reminders that are not configured any more."""
        current = {
            f"{REMINDER}{name}"
            for name in self._notifications.reminders
            if self._flags_datasets(name)
        }
        annotations = self._store().annotations
        for reporter in annotations.reporters(REMINDER):
            if reporter not in current:
                self._retract(reporter, annotations.urns(reporter))

    def _retract(self, reporter: str, urns: Iterable[str]) -> None:
        self._writer().write(
            urns,
            lambda _dataset, own: dict.fromkeys(own, RETRACT),
            action="remind",
            target=reporter.removeprefix(REMINDER),
            reporter=reporter,
        )

    def _missing_docs_messages(
        self, reminder: Reminder, undocumented: Sequence[UndocumentedDataset], now: datetime
    ) -> Iterator[ReminderMessage]:
        """A message for each recipient, and one about all datasets without an owner."""
        people = self._people()
        by_owner: dict[str, list[UndocumentedDataset]] = {}
        for each in undocumented:
            for owner in each.owners:
                by_owner.setdefault(owner, []).append(each)
        remind_owners = DATASET_OWNER in reminder.recipients
        named = [name for name in reminder.recipients if name != DATASET_OWNER]
        recipients: dict[str, Sequence[UndocumentedDataset]] = {
            **(by_owner if remind_owners else {}),
            **dict.fromkeys(named, undocumented),
        }
        deprecate_after_days = reminder.deprecate_after_days
        for owner, datasets in sorted(recipients.items()):
            if not datasets:
                continue
            values = {
                "owner_name": printable_text(self._display_name(owner, people)),
                "catalog_url": catalog_url(self._settings),
                "dataset_count": plural(len(datasets), "dataset"),
                "deprecation_tag": reminder.deprecation_tag if deprecate_after_days else "",
                "deprecate_after_days": str(deprecate_after_days) if deprecate_after_days else "",
                "time": f"{format_time(now)} UTC",
            }
            texts = [_dataset_text(each, deprecate_after_days) for each in datasets]
            yield ReminderMessage(
                recipient=owner,
                count=len(datasets),
                channels=(),
                title=fill_template(reminder.title or TITLE, {**values, **texts[0].values}),
                body=fill_reminder(reminder.template or TEMPLATE, values, texts),
            )
        unowned = [each for each in undocumented if not each.owners]
        if unowned and remind_owners:
            datasets_without = plural(len(unowned), "dataset")
            lines = [
                printable_text(f"{each.dataset.name}: {_labels(each.missing)}") for each in unowned
            ]
            yield ReminderMessage(
                recipient=None,
                count=len(unowned),
                channels=(),
                title=f"Missing documentation in {datasets_without} without an owner",
                body=f"{bullet_list(lines)}\n\n"
                "Assign an owner with: lumos owner assign DATASET OWNER\n"
                f"Add documentation: {catalog_url(self._settings)}",
            )

    # Digests of changes

    def _digest_messages(
        self,
        reminder: Reminder,
        last: ReminderRun | None,
        *,
        until: int,
        due_at: datetime,
        now: datetime,
    ) -> Iterator[ReminderMessage]:
        """A message about the changes since the last digest for each recipient."""
        cron = parse_cron(reminder.schedule)
        earlier = last_due(cron, reminder.timezone, due_at - timedelta(seconds=1))
        since = last.ran_at if last is not None else earlier or due_at
        events = [each for each in self._events(last, since, until) if is_mentioned(each)]
        urns = {each.urn for each in events}
        urns |= {urn for each in events for urn in each.affected_downstream}
        ownership = self._store().aspects_of("ownership", urns)
        owners = {urn: [owner.name for owner in each.owners] for urn, each in ownership.items()}
        digests, unowned = group_changes(
            events,
            owners,
            named=[name for name in reminder.recipients if name != DATASET_OWNER],
            to_owners=DATASET_OWNER in reminder.recipients,
        )
        people = self._people()
        recipients: list[tuple[str | None, Digest]] = [*sorted(digests.items())]
        if unowned.count:
            recipients.append((None, unowned))
        for owner, digest in recipients:
            name = "" if owner is None else printable_text(self._display_name(owner, people))
            values = {
                **digest.values(),
                "owner_name": name,
                "catalog_url": catalog_url(self._settings),
                "since": f"{format_time(since)} UTC",
                "time": f"{format_time(now)} UTC",
            }
            suffix = "" if owner is not None else ", in datasets without an owner"
            yield ReminderMessage(
                recipient=owner,
                count=digest.count,
                channels=(),
                title=fill_template(reminder.title or DIGEST_TITLE, values) + suffix,
                body=fill_reminder(reminder.template or DIGEST_TEMPLATE, values, ()),
            )

    def _events(
        self, last: ReminderRun | None, since: datetime, until: int
    ) -> Iterator[ChangeEvent]:
        """The events after the last digest, or after `since` if there was none; oldest first.

        Events after the position `until` of the change log belong to the next digest.
        """
        log = self._store().change_log
        if last is None:
            yield from reversed(list(log.events(EventFilter(since=since))))
            return
        position = last.position
        while page := log.newer(position, limit=_PAGE_SIZE):
            yield from (event for number, event in page.items() if number <= until)
            position = max(page)


def catalog_url(settings: Settings) -> str:
    """Where people edit documentation: the configured address, the catalog, or the server."""
    if settings.notifications.catalog_url is not None:
        return settings.notifications.catalog_url
    if (address := settings.platform_config.address_of(settings.platform)) is not None:
        return address
    server = settings.server
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"http://{host}:{server.port}"


def email_of(name: str, known: User | Group | None) -> str | None:
    """The mail address of an owner: the registered one, or the name if that is an address."""
    return (known.email if known else None) or (name if "@" in name else None)


def _dataset_text(each: UndocumentedDataset, days: int) -> DatasetText:
    dataset = each.dataset
    deprecation = each.since + timedelta(days=days) if days else None
    return DatasetText(
        values={
            "dataset_name": printable_text(dataset.name),
            "urn": printable_text(dataset.urn),
            "location": printable_text(dataset.location.uri if dataset.location else ""),
            "missing": bullet_list([name.replace("_", " ") for name in each.missing]),
            "undocumented_since": each.since.isoformat(),
            "deprecation_date": deprecation.isoformat() if deprecation else "",
        },
        has_field=lambda name: has_documentation(dataset, name),
    )


def _labels(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


def _undocumented_since(own: AnnotationMap) -> date | None:
    value = own[_SINCE].value if _SINCE in own else None
    return date.fromisoformat(value) if value else None


def _is_reminder(reporter: str) -> bool:
    return reporter.startswith(REMINDER)


def _event_id(run: ReminderRun, recipient: str | None) -> str:
    text = "\0".join((run.reminder, run.due_at.isoformat(), recipient or ""))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
