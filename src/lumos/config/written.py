"""Writes a configuration for sources that were looked at."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from lumos.config.secret import ConnectionString, Secret
from lumos.config.sources import DatasetHint, FileSource, FileStore, Source
from lumos.errors import MisuseError


def write_sources(
    file: Path, sections: Sequence[Source], *, found: Iterable[str], force: bool = False
) -> None:
    """Writes sections as a configuration, with a line of comment for everything found there.

    Secrets are not written down: the usual places tell them, or a variable put in by hand. The
    address of a database may hold one, so it is taken from a variable.
    """
    check_free(file, force=force)
    with file.open("w" if force else "x", encoding="utf-8") as target:
        target.write(_text(sections, found))


def check_free(file: Path, *, force: bool) -> None:
    """Refuses to write over a file, unless that is wanted."""
    if file.exists() and not force:
        raise MisuseError(f"{file} exists already. Replace it with --force, or name another file.")
    if not file.absolute().parent.is_dir():
        raise MisuseError(f"There is no folder {file.absolute().parent} to write {file.name} to.")


def _text(sections: Sequence[Source], found: Iterable[str]) -> str:
    plain = [_plain(section) for section in sections]
    body = yaml.safe_dump({"sources": plain}, sort_keys=False, allow_unicode=True, width=100)
    lines = [
        "# Where Lumos looks for datasets. Use it with: lumos ingest --config FILE",
        "# New datasets in these places are found by themselves.",
        *_hints(sections),
        body.rstrip(),
        "",
        "# Found when this was written:",
        *(f"#   {_one_line(each)}" for each in found),
    ]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def _hints(sections: Iterable[Source]) -> list[str]:
    """How to come by the secrets that are not written down."""
    facts = [
        (name, getattr(section, name)) for section in sections for name in section.__struct_fields__
    ]
    keys = dict.fromkeys(
        name for name, value in facts if isinstance(value, Secret) and not _is_address(value)
    )
    return [
        *(f"# Take it from a variable: {name}: ${{NAME}}" for name in keys),
        *(f"# Set {_ADDRESS} to {value}" for _, value in facts if _is_address(value)),
    ]


def _is_address(value: object) -> bool:
    return isinstance(value, ConnectionString)


def _plain(section: Source) -> dict[str, Any]:
    """The keys that were set, without secrets; a list of one bucket or path is that one."""
    plain: dict[str, Any] = {"type": section.type}
    defaults = zip(section.__struct_fields__[-len(section.__struct_defaults__) :],
                   section.__struct_defaults__, strict=True)  # fmt: skip
    default = dict(defaults)
    for name in section.__struct_fields__:
        value = getattr(section, name)
        if _is_address(value):
            plain[name] = f"${{{_ADDRESS}}}"
            continue
        if name == "type" or value == default.get(name, ...) or isinstance(value, Secret):
            continue
        if name == "paths" and isinstance(section, FileSource):
            # The file may lie elsewhere than where the paths were named.
            value = tuple(map(os.path.abspath, value))
        if name == "datasets" and isinstance(section, FileStore):
            value = tuple(map(_plain_hint, value))
        if isinstance(value, tuple):
            one = _ONE.get(name)
            plain.update({one: value[0]} if one and len(value) == 1 else {name: list(value)})
        else:
            plain[name] = value
    return plain


def _plain_hint(hint: DatasetHint) -> dict[str, Any]:
    path = hint.path if isinstance(hint.path, str) else list(hint.path)
    plain = {"path": path, "name": hint.name, "split": hint.split}
    return {key: value for key, value in plain.items() if value}


_ADDRESS = "DATABASE_URL"
_ONE = {"buckets": "bucket", "paths": "path", "urls": "url"}
