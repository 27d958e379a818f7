"""Rules that map table names in SQL to datasets."""

import fnmatch
import re
from typing import Final

from lumos.config.section import Section
from lumos.errors import MisuseError
from lumos.model.urn import SCHEME, InvalidUrn, Urn

PLACEHOLDERS: Final = ("table", "schema", "database", "name", "path")
_BRACES: Final = re.compile(r"\{([^{}]*)\}")
# Contains {table} once, and {schema} and {database} any number of times, but no other braces.
NAME_TEMPLATE: Final = (
    r"^(?:[^{}]|\{(?:schema|database)\})*\{table\}(?:[^{}]|\{(?:schema|database)\})*\Z"
)
NAME_TEMPLATE_HELP: Final = (
    "a path with {table} and, if the path has them, {schema} and {database}, such as "
    "{schema}/{table}/*.sql"
)
_WILDCARDS: Final = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
_TEMPLATE_TOKEN: Final = re.compile(r"\{(\w+)\}|\*\*/|\*\*|\*")


class SqlName(Section, frozen=True, kw_only=True):
    """A rule for tables whose names end with `match`: their URN, or defaults for missing parts.

    In `urn`, `{table}`, `{schema}` and `{database}` are parts of the name, and `{path}` is the
    whole name with slashes. Without `urn`, the other keys are the defaults for incomplete names.
    """

    match: str = "*"
    urn: str | None = None
    dialect: str | None = None
    platform: str | None = None
    instance: str | None = None
    database: str | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        defaults = (self.platform, self.instance, self.database, self.schema)
        if (self.urn is None) == (not any(defaults)):
            raise MisuseError(
                "A rule needs either 'urn', such as lumos://s3/data-lake/raw/{table}, or at least "
                "one of 'platform', 'instance', 'database' and 'schema'."
            )
        if not self.match.strip(". "):
            raise MisuseError("'match' is empty. Set it to a pattern such as raw.* or orders.")
        if self.urn is not None:
            _check(self.urn)

    def applies_to(self, parts: tuple[str, ...], dialect: str | None) -> bool:
        """Whether the rule is for a dialect and matches the end of a table name, ignoring case."""
        if self.dialect is not None and self.dialect.lower() != (dialect or "").lower():
            return False
        patterns = self.match.lower().split(".")
        if len(patterns) > len(parts):
            return False
        last_parts = parts[-len(patterns) :]
        return all(
            fnmatch.fnmatchcase(part.lower(), pattern)
            for part, pattern in zip(last_parts, patterns, strict=True)
        )

    def urn_of(self, parts: tuple[str, ...]) -> str | None:
        """The URN of a table, or None if its name lacks a part that the rule needs."""
        if self.urn is None:
            return None
        values = dict(zip(("table", "schema", "database"), reversed(parts), strict=False))
        values |= {"name": ".".join(parts), "path": "/".join(parts)}
        if any(name not in values for name in _BRACES.findall(self.urn)):
            return None
        return str(Urn.parse(_BRACES.sub(lambda match: values[match.group(1)], self.urn)))


class NameTemplate:
    """A template that derives table names from paths of SQL files, as in {schema}/{table}/*.sql."""

    def __init__(self, text: str) -> None:
        if re.match(NAME_TEMPLATE, text) is None:
            raise MisuseError(f"'{text}' does not name tables. Use {NAME_TEMPLATE_HELP}.")
        pattern, end = "", 0
        for token in _TEMPLATE_TOKEN.finditer(text):
            pattern += re.escape(text[end : token.start()])
            part = token.group(1)
            if part is None:
                pattern += _WILDCARDS[token.group()]
            else:
                # A repeated placeholder must have the same value everywhere.
                pattern += f"(?P={part})" if f"(?P<{part}>" in pattern else f"(?P<{part}>[^/]+?)"
            end = token.end()
        self._path = re.compile(rf"(?:.*/)?{pattern}{re.escape(text[end:])}")

    def name_of(self, file: str) -> tuple[str, ...] | None:
        """The parts of a file's table name, database first; None if the path does not match."""
        match = self._path.fullmatch(file)
        if match is None:
            return None
        parts = match.groupdict()
        return tuple(parts[each] for each in ("database", "schema", "table") if each in parts)


def _check(urn: str) -> None:
    for name in _BRACES.findall(urn):
        if name not in PLACEHOLDERS:
            allowed = ", ".join(f"{{{placeholder}}}" for placeholder in PLACEHOLDERS)
            raise MisuseError(f"'{{{name}}}' is not a part of a table name. Use one of {allowed}.")
    if not urn.startswith(SCHEME):
        raise InvalidUrn(urn, f"it does not start with {SCHEME}")
    Urn.parse(_BRACES.sub("x", urn))
