"""Notes on settings that are valid but may not do what the user expects."""

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from lumos import plugins
from lumos.config.load import unused_variables
from lumos.config.platforms import LOCAL, ServerPlatform
from lumos.config.prices import features_of, method_of, prices_of
from lumos.config.settings import Settings, WatchedSource
from lumos.config.sources import STORE_OF_SCHEME, SUPPORTED_SCHEMES
from lumos.config.switches import SWITCHES
from lumos.errors import MisuseError, did_you_mean

_NOT_USED_YET: Final = {
    "quality_integrations": "Results of quality tools are not imported yet.",
}
# The library that a catalog needs, and the extra that installs it.
_LIBRARIES: Final = {
    "amundsen": ("neo4j", "amundsen"),
    "atlas": ("httpx", "atlas"),
    "datahub": ("datahub", "datahub"),
    "openmetadata": ("httpx", "openmetadata"),
}
# By source type, the library that receives events and the extra that installs it.
_EVENT_LIBRARIES: Final = {
    "file": ("watchfiles", "watch"),
    "s3": ("botocore", "s3"),
    "postgres": ("psycopg", "postgres"),
}
_SOURCES_WITHOUT_EVENT_LIBRARY: Final = ("azure", "gcs", "hdfs")
# The settings for where the events of a source arrive, and the source types that they apply to.
_EVENT_KEYS: Final = {
    "sqs_queue": "s3",
    "event_webhook": "s3",
    "storage_queue": "azure",
    "pubsub_subscription": "gcs",
}
_SOURCES_WITH_QUEUE: Final = ("azure", "gcs")
# By subscriber type, the library that sends events and the extra that installs it.
_SUBSCRIBER_LIBRARIES: Final = {
    "kafka": ("confluent_kafka", "kafka"),
    "redis": ("redis", "redis"),
}
_CATALOGS_THAT_NEED_AN_ADDRESS: Final = ("atlas", "openmetadata")


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """A note on one key."""

    level: Literal["info", "warning"]
    key: str
    text: str
    line: int | None = None


class ConfigReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `lumos config check`: the effective settings with masked secrets, and notes."""

    format_version: str = "1.0"
    file: str | None
    settings: dict[str, Any]
    notes: tuple[Note, ...]


def report(settings: Settings, environment: Mapping[str, str]) -> ConfigReport:
    """The settings and all notes on them."""
    return ConfigReport(
        file=settings.origin.file,
        settings=settings.to_masked_dict(),
        notes=check(settings, environment),
    )


def check(settings: Settings, environment: Mapping[str, str]) -> tuple[Note, ...]:
    """All notes, in the order of the file."""
    notes = (
        *_sections(settings),
        *_costs(settings),
        *_platform(settings, environment),
        *_sources(settings),
        *_watch_notes(settings),
        *_notifications(settings),
        *_features(settings),
        *_former_keys(settings),
        *_state(settings),
        *_variables(environment),
    )
    return tuple(sorted(notes, key=lambda note: (note.line is None, note.line or 0)))


def _sections(settings: Settings) -> Iterator[Note]:
    default = Settings()
    for section, text in _NOT_USED_YET.items():
        if getattr(settings, section) != getattr(default, section):
            yield _note(settings, "info", section, text)
    if settings.cost_model != default.cost_model and (
        settings.cost_calculation != default.cost_calculation
    ):
        text = "Prices are set in both 'cost_model' and 'cost_calculation'. Keep one of them."
        yield _note(settings, "warning", "cost_calculation", text)


def _costs(settings: Settings) -> Iterator[Note]:
    for read_setting in (prices_of, method_of, features_of):
        try:
            read_setting(settings)
        except MisuseError as problem:
            key = "cost_model" if "cost_model" in str(problem) else "cost_calculation"
            yield _note(settings, "warning", key, f"Costs cannot be computed: {problem}")


def _platform(settings: Settings, environment: Mapping[str, str]) -> Iterator[Note]:
    installed = {LOCAL, *plugins.names(plugins.PLATFORMS)}
    if unused := sorted(set(settings.platform_config.named()) - installed):
        text = f"Not used, because this version does not support the catalog: {', '.join(unused)}."
        yield _note(settings, "info", "platform_config", text)
    kind, _, address = settings.platform.partition(":")
    if kind not in installed:
        text = f"This version cannot write to '{kind}'; metadata is only kept in the local store."
        yield _note(settings, "warning", "platform", text)
        return
    library, extra = _LIBRARIES.get(kind, (None, None))
    if library is not None and find_spec(library) is None:
        text = f"'{kind}' needs a library: pip install 'lumos[{extra}]'"
        yield _note(settings, "warning", "platform", text)
    configured = settings.platform_config.of(kind)
    if kind in _CATALOGS_THAT_NEED_AN_ADDRESS and configured is None and not address:
        text = f"The address is missing. Set platform_config.{kind}.server."
        yield _note(settings, "warning", "platform", text)
    if isinstance(configured, ServerPlatform):
        yield from _server(settings, kind, configured.at(address) if address else configured,
                           environment)  # fmt: skip


def _server(
    settings: Settings, kind: str, server: ServerPlatform, environment: Mapping[str, str]
) -> Iterator[Note]:
    if _is_local(server.address):
        return
    if not server.has_login(environment):
        text = (
            f"No token is given for {server.address}, as platform_config.{kind}.{server.token_key} "
            f"or {server.variable}; a server that requires authentication will reject requests."
        )
        yield _note(settings, "info", "platform_config", text)
    elif server.address.startswith("http://"):
        text = f"The token for {server.address} is sent unencrypted. Use https:// if possible."
        yield _note(settings, "warning", "platform_config", text)


def _is_local(address: str) -> bool:
    return urlsplit(address).hostname in ("localhost", "127.0.0.1", "::1")


def _sources(settings: Settings) -> Iterator[Note]:
    installed = plugins.names(plugins.SOURCES)
    for index, source in enumerate(settings.sources):
        key = f"sources[{index}]"
        if source.type not in installed:
            text = f"This version cannot scan '{source.type}'; the source is skipped."
            yield _note(settings, "warning", key, text)


def _watch_notes(settings: Settings) -> Iterator[Note]:
    installed = plugins.names(plugins.SOURCES)
    for index, watched in enumerate(settings.change_detection.sources):
        key = f"change_detection.sources[{index}]"
        if watched.source.type not in installed:
            text = f"This version cannot scan '{watched.source.type}'; it is not watched."
            yield _note(settings, "warning", key, text)
        elif watched.watch_mode != "polling":
            yield from _events(settings, key, watched)
        elif unused := [name for name in _EVENT_KEYS if getattr(watched, name)]:
            text = (
                f"'{unused[0]}' is not used: 'watch_mode' is polling. Set it to events or hybrid."
            )
            yield _note(settings, "warning", key, text)
        if watched.watch_tables is not True and not hasattr(watched.source, "tables"):
            text = f"'watch_tables' is for databases; a source '{watched.source.type}' has none."
            yield _note(settings, "warning", key, text)


def _events(settings: Settings, key: str, watched: WatchedSource) -> Iterator[Note]:
    source = watched.source
    library, extra = _EVENT_LIBRARIES.get(source.type, (None, ""))
    needs_none = source.type in _SOURCES_WITHOUT_EVENT_LIBRARY or watched.event_webhook is not None
    if library is None and not needs_none:
        text = (
            f"'{source.type}' sources have no events; the source is polled every "
            f"{watched.polling_interval} s."
        )
        yield _note(settings, "warning", key, text)
    elif library is not None and not needs_none and find_spec(library) is None:
        text = (
            f"Events need {library}: pip install 'lumos[{extra}]'. "
            "Until it is installed, the source is polled."
        )
        yield _note(settings, "warning", key, text)
    for name, type in _EVENT_KEYS.items():
        if getattr(watched, name) and source.type != type:
            text = f"'{name}' is for sources of the type {type}."
            yield _note(settings, "warning", key, text)
        if source.type == type and type in _SOURCES_WITH_QUEUE and not getattr(watched, name):
            text = f"Events need '{name}'; without it the source is polled."
            yield _note(settings, "warning", key, text)


def _notifications(settings: Settings) -> Iterator[Note]:
    configured = settings.notifications
    if configured.reminders and not configured.channels:
        text = "Reminders are not sent, because there is no channel. Add one to 'channels'."
        yield _note(settings, "warning", "notifications", text)
    for name, subscriber in configured.subscribers.items():
        library, extra = _SUBSCRIBER_LIBRARIES.get(subscriber.type, (None, ""))
        if library is not None and find_spec(library) is None:
            text = (
                f"Events are stored but not sent: sending them needs {library}: "
                f"pip install 'lumos[{extra}]'"
            )
            yield _note(settings, "warning", f"notifications.subscribers.{name}", text)
    if (configured.changes or configured.reminders) and find_spec("apprise") is None:
        text = (
            "Messages are stored but not sent: sending them needs apprise: "
            "pip install 'lumos[notify]'"
        )
        yield _note(settings, "warning", "notifications", text)


def _features(settings: Settings) -> Iterator[Note]:
    for name, value in settings.features.items():
        if isinstance(value, bool) and name not in SWITCHES:
            hint = did_you_mean(name, SWITCHES) or f" Known: {', '.join(SWITCHES)}."
            yield _note(settings, "warning", f"features.{name}", f"Unknown switch '{name}'.{hint}")
    for name in settings.switches.disabled:
        text = f"{SWITCHES[name].noun} is disabled and hidden."
        yield _note(settings, "info", f"features.{name}", text)


def _state(settings: Settings) -> Iterator[Note]:
    scheme, is_address, _ = (settings.state_uri or "").partition("://")
    if is_address and scheme not in STORE_OF_SCHEME:
        text = (
            f"The state cannot be stored at {scheme}://, only in local folders and at "
            f"{SUPPORTED_SCHEMES}; lumos ingest will fail."
        )
        yield _note(settings, "warning", "state_uri", text)


def _former_keys(settings: Settings) -> Iterator[Note]:
    for former in settings.origin.former_keys:
        text = f"'{former.key}' is the old name of the key '{former.current_key}'."
        yield Note(level="info", key=former.key, line=former.line, text=text)


def _variables(environment: Mapping[str, str]) -> Iterator[Note]:
    for name in unused_variables(environment):
        text = f"The environment variable {name} does not match any setting and is ignored."
        yield Note(level="warning", key=name, text=text)


def _note(settings: Settings, level: Literal["info", "warning"], key: str, text: str) -> Note:
    lines = settings.origin.lines
    line = lines.get(key, lines.get(key.partition(".")[0]))
    return Note(level=level, key=key, line=line, text=text)
