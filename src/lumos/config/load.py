"""Settings from a file, the environment and options, the later ones winning."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from lumos import plugins
from lumos.config import yaml_tree
from lumos.config.keys import NoSuchKey, keys_of, target
from lumos.config.platforms import PLATFORMS, kind_of
from lumos.config.reading import Reader, Variants
from lumos.config.secret import scrubbed
from lumos.config.section import Section
from lumos.config.settings import (
    MOVED,
    QUALITY_INTEGRATIONS,
    OlderSpelling,
    Origin,
    QualityIntegration,
    Settings,
    Storage,
    moved,
)
from lumos.config.sources import SOURCES, PluginSource, Source
from lumos.config.tree import (
    Block,
    ConfigurationError,
    Listing,
    Node,
    Place,
    Problem,
    Scalar,
    empty,
    lifted,
    placed,
    tree,
)
from lumos.config.variables import FILE_VARIABLE, variables
from lumos.errors import UnknownName

FILE_NAME: Final = "lumos.yaml"


def find_file(directory: Path, environment: Mapping[str, str]) -> Path | None:
    """The file to load: what `LUMOS_CONFIG` names, or else `lumos.yaml` in the directory."""
    if named := environment.get(FILE_VARIABLE):
        return directory / named
    file = directory / FILE_NAME
    return file if file.exists() else None


def load(
    file: Path | None,
    *,
    environment: Mapping[str, str],
    overrides: Mapping[str, object] = {},
    text: str | None = None,
) -> Settings:
    """Defaults < file < environment < overrides, which are dotted keys; one of `None` is not given.

    Relative paths hang on the file's folder; those in variables and overrides on the current one.
    `text` is read in place of what the file holds.
    """
    here = str(Path.cwd())
    root = Block(place=Place(origin="settings", folder=here, kind="option"), path="", entries={})
    problems: list[Problem] = []
    if file is not None:
        root, problems = yaml_tree.read(file, environment=environment, text=text)
    root, older = _normalised(root, problems)
    lines = _lines(root)
    for found, value in variables(environment, here):
        root = placed(root, found.steps, value)
    root = _overridden(root, overrides, here, problems)
    _check_platforms(root, problems)
    reader = Reader(_variants(), problems)
    settings = reader.section(root, Settings, beside=(*MOVED, str(Settings.nested)))
    if problems or not isinstance(settings, Settings):
        raise ConfigurationError(problems)
    origin = Origin(
        file=None if file is None else str(file),
        folder=root.place.folder,
        lines=lines,
        older=(*older, *reader.older),
    )
    storage = _anchored(settings.storage, origin.folder)
    return msgspec.structs.replace(settings, storage=storage, origin=origin)


def _variants() -> Variants:
    installed: dict[str, type[Section]] = dict.fromkeys(
        plugins.names(plugins.SOURCES), PluginSource
    )
    return {Source: {**installed, **SOURCES}, QualityIntegration: QUALITY_INTEGRATIONS}


def _normalised(root: Block, problems: list[Problem]) -> tuple[Block, list[OlderSpelling]]:
    """The tree with every key in the one place where its section reads it."""
    root, twice = lifted(root, str(Settings.nested))
    problems += twice
    older = []
    for name, path in MOVED.items():
        if name not in root.entries:
            continue
        entry = root.entries[name]
        rest = root.having({key: each for key, each in root.entries.items() if key != name})
        steps = target(Settings, path).steps
        if _given(rest, steps):
            text = f"'{name}' and '{'.'.join(path)}' mean the same. Keep one of them."
            problems.append(Problem(place=entry.place, key=entry.node.path, text=text))
        elif not empty(entry.node):
            older.append(
                OlderSpelling(key=entry.node.path, instead=".".join(path), line=entry.place.line)
            )
            rest = placed(rest, steps, entry.node)
        root = rest
    return root, older


def _given(root: Block, steps: Iterable[tuple[str, frozenset[str]]]) -> bool:
    node: Node = root
    for _, spellings in steps:
        entries = node.entries if isinstance(node, Block) else {}
        entry = next((entries[each] for each in spellings if each in entries), None)
        if entry is None:
            return False
        node = entry.node
    return not empty(node)


def _lines(root: Block) -> dict[str, int]:
    """Where each section starts, and each source and hint."""
    keys = keys_of(Settings)
    places = {keys[name].field: entry.place for name, entry in root.entries.items() if name in keys}
    sections = {name: entry.node for name, entry in root.entries.items()}
    watched = sections.get("change_detection")
    for block, prefix in ((root, ""), (watched, "change_detection.")):
        sources = block.entries.get("sources") if isinstance(block, Block) else None
        if sources is not None and isinstance(sources.node, Listing):
            items = {f"{prefix}sources[{at}]": each for at, each in enumerate(sources.node.items)}
            places |= {key: each.place for key, each in items.items()}
            sections |= items
    for key, section in sections.items():
        hints = section.entries.get("datasets") if isinstance(section, Block) else None
        if hints is not None and isinstance(hints.node, Listing):
            places |= {
                f"{key}.datasets[{at}]": each.place for at, each in enumerate(hints.node.items)
            }
    return {key: place.line for key, place in places.items() if place.line is not None}


def _overridden(
    root: Block, overrides: Mapping[str, object], folder: str, problems: list[Problem]
) -> Block:
    for key, value in overrides.items():
        if value is None:
            continue
        place = Place(origin=f"option {key}", folder=folder, kind="option")
        try:
            found = target(Settings, moved(key.split(".")))
        except NoSuchKey as error:
            problems.append(Problem(place=place, key=key, text=str(error)))
        else:
            root = placed(root, found.steps, tree(value, place=place, path=key))
    return root


def _check_platforms(root: Block, problems: list[Problem]) -> None:
    """Platforms of other packages exist only where they are installed."""
    known = {*PLATFORMS, *plugins.names(plugins.PLATFORMS)}
    named: list[tuple[str, Node]] = [
        (scrubbed(node.written or node.text), node)
        for spelling in ("platform", "default_platform")
        if spelling in root.entries
        and isinstance(node := root.entries[spelling].node, Scalar)
        and not (node.problem or node.empty or kind_of(node.text) in known)
    ]
    configured = root.entries.get("platform_config")
    if configured is not None and isinstance(configured.node, Block):
        named += [(name, entry.node) for name, entry in configured.node.entries.items()]
    problems += [
        Problem(place=node.place, key=node.path, text=str(UnknownName("platform", name, known)))
        for name, node in named
        if name not in known
    ]


def _anchored(storage: Storage, folder: str) -> Storage:
    """A path that nobody wrote hangs on the folder of the configuration, too."""
    if storage.path is None:
        return storage
    return msgspec.structs.replace(storage, path=str(Path(folder, storage.path)))
