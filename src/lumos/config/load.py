"""Loads settings from a file, environment variables and options, in ascending precedence."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lumos import plugins
from lumos.config import yaml_tree
from lumos.config.platforms import PLATFORMS, platform_kind
from lumos.config.reader import KeyTarget, SectionReader, UnknownKey, Variants, keys_of, resolve_key
from lumos.config.secret import mask_secret_text
from lumos.config.section import Section
from lumos.config.settings import (
    MOVED,
    QUALITY_INTEGRATIONS,
    FormerKey,
    Origin,
    QualityIntegration,
    Settings,
    StorageSettings,
    canonical_path,
)
from lumos.config.sources import SOURCES, PluginSourceSettings, SourceSettings
from lumos.config.subscribers import SUBSCRIBERS, Subscriber
from lumos.config.yaml_tree import (
    ConfigNode,
    ConfigPosition,
    ConfigProblem,
    ConfigurationError,
    ListNode,
    MappingNode,
    ScalarNode,
    build_tree,
    is_empty,
    lift_nested,
    put_value,
)
from lumos.errors import UnknownName

FILE_NAME: Final = "lumos.yaml"


def find_file(directory: Path, environment: Mapping[str, str]) -> Path | None:
    """The file to load: the value of `LUMOS_CONFIG`, or `lumos.yaml` in the directory."""
    if file_name := environment.get(FILE_VARIABLE):
        return directory / file_name
    file = directory / FILE_NAME
    return file if file.exists() else None


def load(
    file: Path | None,
    *,
    environment: Mapping[str, str],
    overrides: Mapping[str, object] = {},
    text: str | None = None,
) -> Settings:
    """Load settings; precedence: defaults < file < environment < overrides.

    Overrides are values by dotted key; None means not given. Relative paths in the file are
    relative to its folder, those in variables and overrides to the current folder. `text` replaces
    the content of the file.
    """
    current_folder = str(Path.cwd())
    root = MappingNode(
        position=ConfigPosition(origin="settings", folder=current_folder, kind="option"),
        path="",
        entries={},
    )
    problems: list[ConfigProblem] = []
    if file is not None:
        root, problems = yaml_tree.read_yaml(file, environment=environment, text=text)
    root, former_keys = _normalize(root, problems)
    lines = _lines(root)
    for target, value in variables(environment, current_folder):
        root = put_value(root, target.steps, value)
    root = _apply_overrides(root, overrides, current_folder, problems)
    _check_platforms(root, problems)
    reader = SectionReader(_variants(), problems)
    settings = reader.section(root, Settings, outer_keys=(*MOVED, str(Settings.nested)))
    if problems or not isinstance(settings, Settings):
        raise ConfigurationError(problems)
    origin = Origin(
        file=None if file is None else str(file),
        folder=root.position.folder,
        lines=lines,
        former_keys=(*former_keys, *reader.former_keys),
    )
    storage = _absolute_storage_path(settings.storage, origin.folder)
    return msgspec.structs.replace(settings, storage=storage, origin=origin)


def _variants() -> Variants:
    installed: dict[str, type[Section]] = dict.fromkeys(
        plugins.names(plugins.SOURCES), PluginSourceSettings
    )
    return {
        SourceSettings: {**installed, **SOURCES},
        QualityIntegration: QUALITY_INTEGRATIONS,
        Subscriber: SUBSCRIBERS,
    }


def _normalize(
    root: MappingNode, problems: list[ConfigProblem]
) -> tuple[MappingNode, list[FormerKey]]:
    """Move keys at former positions to the sections that now contain them."""
    root, duplicates = lift_nested(root, str(Settings.nested))
    problems += duplicates
    former_keys = []
    for name, path in MOVED.items():
        if name not in root.entries:
            continue
        entry = root.entries[name]
        rest = root.with_entries({key: each for key, each in root.entries.items() if key != name})
        steps = resolve_key(Settings, path).steps
        if _has_value(rest, steps):
            text = f"'{name}' and '{'.'.join(path)}' mean the same. Keep one of them."
            problems.append(ConfigProblem(position=entry.position, key=entry.node.path, text=text))
        elif not is_empty(entry.node):
            former_keys.append(
                FormerKey(key=entry.node.path, current_key=".".join(path), line=entry.position.line)
            )
            rest = put_value(rest, steps, entry.node)
        root = rest
    return root, former_keys


def _has_value(root: MappingNode, steps: Iterable[tuple[str, frozenset[str]]]) -> bool:
    node: ConfigNode = root
    for _, spellings in steps:
        entries = node.entries if isinstance(node, MappingNode) else {}
        entry = next((entries[each] for each in spellings if each in entries), None)
        if entry is None:
            return False
        node = entry.node
    return not is_empty(node)


def _lines(root: MappingNode) -> dict[str, int]:
    """The line number of each section, source and hint, by key."""
    keys = keys_of(Settings)
    positions = {
        keys[name].field: entry.position for name, entry in root.entries.items() if name in keys
    }
    sections = {name: entry.node for name, entry in root.entries.items()}
    watched = sections.get("change_detection")
    for block, prefix in ((root, ""), (watched, "change_detection.")):
        sources = block.entries.get("sources") if isinstance(block, MappingNode) else None
        if sources is not None and isinstance(sources.node, ListNode):
            items = {f"{prefix}sources[{at}]": each for at, each in enumerate(sources.node.items)}
            positions |= {key: each.position for key, each in items.items()}
            sections |= items
    for key, section in sections.items():
        hints = section.entries.get("datasets") if isinstance(section, MappingNode) else None
        if hints is not None and isinstance(hints.node, ListNode):
            positions |= {
                f"{key}.datasets[{at}]": each.position for at, each in enumerate(hints.node.items)
            }
    return {key: position.line for key, position in positions.items() if position.line is not None}


def _apply_overrides(
    root: MappingNode, overrides: Mapping[str, object], folder: str, problems: list[ConfigProblem]
) -> MappingNode:
    for key, value in overrides.items():
        if value is None:
            continue
        position = ConfigPosition(origin=f"option {key}", folder=folder, kind="option")
        try:
            target = resolve_key(Settings, canonical_path(key.split(".")))
        except UnknownKey as error:
            problems.append(ConfigProblem(position=position, key=key, text=str(error)))
        else:
            root = put_value(root, target.steps, build_tree(value, position=position, path=key))
    return root


def _check_platforms(root: MappingNode, problems: list[ConfigProblem]) -> None:
    """Add problems for platforms that are not installed."""
    known = {*PLATFORMS, *plugins.names(plugins.PLATFORMS)}
    platforms: list[tuple[str, ConfigNode]] = [
        (mask_secret_text(node.written or node.text), node)
        for spelling in ("platform", "default_platform")
        if spelling in root.entries
        and isinstance(node := root.entries[spelling].node, ScalarNode)
        and not (node.problem or node.empty or platform_kind(node.text) in known)
    ]
    configured = root.entries.get("platform_config")
    if configured is not None and isinstance(configured.node, MappingNode):
        platforms += [(name, entry.node) for name, entry in configured.node.entries.items()]
    problems += [
        ConfigProblem(
            position=node.position, key=node.path, text=str(UnknownName("platform", name, known))
        )
        for name, node in platforms
        if name not in known
    ]


def _absolute_storage_path(storage: StorageSettings, folder: str) -> StorageSettings:
    """Make the path absolute: the default path is relative to the folder of the file as well."""
    if storage.path is None:
        return storage
    return msgspec.structs.replace(storage, path=str(Path(folder, storage.path)))


FILE_VARIABLE: Final = "LUMOS_CONFIG"

_PREFIX: Final = "LUMOS_"
# Variables that are read elsewhere and are not settings.
_OTHER_LUMOS_VARIABLES: Final = frozenset(
    {FILE_VARIABLE, "LUMOS_CLASS_ARCHIVE", "LUMOS_DATAHUB_FILES", "LUMOS_DEBUG", "LUMOS_QUIET",
     "LUMOS_SERVER", "LUMOS_TOKEN", "LUMOS_VERBOSE"}
)  # fmt: skip
# Variables of other tools, and the settings that they set.
_OTHER_VARIABLES: Final = {"DATAHUB_GMS_URL": ["platform_config", "datahub", "gms_server"]}


def variables(
    environment: Mapping[str, str], folder: str
) -> Iterator[tuple[KeyTarget, ScalarNode]]:
    """The settings among the environment variables; relative paths are relative to `folder`."""
    # Variables of Lumos override those of other tools.
    ordered = sorted(environment, key=lambda name: (name.startswith(_PREFIX), name))
    for name in ordered:
        text = environment[name]
        target = _target_of(name)
        # Empty variables are ignored, since containers often pass them on.
        if target is not None and text:
            position = ConfigPosition(origin=name, folder=folder, kind="variable")
            path = ".".join(step for step, _ in target.steps)
            yield target, ScalarNode(position=position, path=path, text=text, written=text)


def unused_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables that start with LUMOS_ but do not set anything."""
    lumos_variables = (
        name
        for name in environment
        if name.startswith(_PREFIX) and name not in _OTHER_LUMOS_VARIABLES
    )
    return tuple(sorted(name for name in lumos_variables if _target_of(name) is None))


def _target_of(variable: str) -> KeyTarget | None:
    if variable in _OTHER_VARIABLES:
        return resolve_key(Settings, _OTHER_VARIABLES[variable])
    if not variable.startswith(_PREFIX) or variable == FILE_VARIABLE:
        return None
    parts = variable.removeprefix(_PREFIX).split("__")
    # Free-form keys such as Spark's may contain capitals; only all-capital names are lowered.
    path = [part.lower() if part.isupper() else part for part in parts]
    try:
        target = resolve_key(Settings, canonical_path(path))
    except UnknownKey:
        return None
    return target if target.kind.accepts_text and all(path) else None
