"""The sample estate: typed tables, models in six dialects, and the edges between them."""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

from lumos.lineage.header_comments import header_of
from lumos.lineage.sql import ScriptLineage, analyse
from lumos.lineage.sql_files import create_statement, parse_sql_file
from lumos.model.schema import Schema, parse_schema

FOLDER = Path(__file__).parent / "inventory"
DIALECTS = ("bigquery", "duckdb", "postgres", "snowflake", "spark", "tsql")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table whose schema somebody wrote down: raw data, or the target of an INSERT or MERGE."""

    name: str
    dialect: str
    owner: str
    schema: Schema


@dataclass(frozen=True, kw_only=True)
class Model:
    """A file of SQL, what it says, and the dataset that it makes; None if it does not parse."""

    file: str
    dialect: str
    owner: str
    text: str
    script: ScriptLineage
    dataset: str | None

    def line_of(self, clause: str) -> int:
        """The only line in which a piece of SQL stands."""
        lines = [
            number
            for number, line in enumerate(self.text.splitlines(), start=1)
            if clause in line and not line.startswith("--")
        ]
        if len(lines) != 1:
            raise ValueError(f"'{clause}' stands in {len(lines)} lines of {self.file}, not in one.")
        return lines[0]


@dataclass(frozen=True, kw_only=True)
class SampleInventory:
    """Everything that lies below the folder `estate`, with its lineage."""

    tables: Mapping[str, Table]
    models: tuple[Model, ...]
    declared: tuple[tuple[str, str], ...]

    @cached_property
    def model_by_file(self) -> dict[str, Model]:
        return {model.file: model for model in self.models}

    @cached_property
    def models_of(self) -> dict[str, tuple[Model, ...]]:
        """The models that write a dataset, for every dataset that has one."""
        found: dict[str, tuple[Model, ...]] = {}
        for model in self.models:
            if model.dataset is not None:
                found[model.dataset] = (*found.get(model.dataset, ()), model)
        return found

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The names of the columns of every dataset where they are known."""
        known = {
            name: tuple(field.name for field in table.schema.fields)
            for name, table in self.tables.items()
        }
        for name, models in self.models_of.items():
            if name not in known:
                known[name] = next(_columns(models[0].script))[1]
        return known

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """The datasets that are made from a dataset, by SQL or by somebody's word."""
        pairs = [*self.declared]
        for model in self.models:
            for statement in model.script.statements:
                for write in statement.writes:
                    pairs += [(_name(source), _name(write.table)) for source in write.sources]
        found: dict[str, dict[str, None]] = {}
        for source, target in pairs:
            if source != target:
                found.setdefault(source, {})[target] = None
        return {source: tuple(sorted(targets)) for source, targets in found.items()}

    def downstream(self, dataset: str) -> dict[str, int]:
        """Every dataset within reach of a change, with its distance in edges."""
        distances = {dataset: 0}
        waiting = deque([dataset])
        while waiting:
            current = waiting.popleft()
            for reader in self.readers.get(current, ()):
                if reader not in distances:
                    distances[reader] = distances[current] + 1
                    waiting.append(reader)
        del distances[dataset]
        return distances

    def owner(self, dataset: str) -> str | None:
        """Who answers for a dataset: its model's header, or what its schema says."""
        models = self.models_of.get(dataset, ())
        if models:
            return models[0].owner
        return self.tables[dataset].owner if dataset in self.tables else None


@cache
def load_sample_inventory() -> SampleInventory:
    """Reads the estate; SQL is analysed until no file tells new columns of a table."""
    tables = {table.name: table for table in _tables()}
    known = {
        name: tuple(field.name for field in table.schema.fields) for name, table in tables.items()
    }
    while True:
        models = tuple(_models(known))
        entries = {name: names for model in models for name, names in _columns(model.script)}
        if entries.keys() <= known.keys():
            break
        known = {**entries, **known}
    return SampleInventory(tables=tables, models=models, declared=tuple(_declared()))


def _tables() -> Iterator[Table]:
    for file in sorted((FOLDER / "schemas").glob("*.yaml")):
        content: dict[str, dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))
        for name, entries in content.items():
            lines = [f"{column} {shape}" for column, shape in entries["columns"].items()]
            yield Table(
                name=name,
                dialect=file.stem,
                owner=entries["owner"],
                schema=parse_schema("\n".join(lines)),
            )


def _models(known: Mapping[str, tuple[str, ...]]) -> Iterator[Model]:
    for dialect in DIALECTS:
        for file in sorted((FOLDER / dialect).glob("*.sql")):
            text = file.read_text(encoding="utf-8")
            name = f"{dialect}/{file.name}"
            sql = parse_sql_file(text, name=name)
            script = analyse(
                create_statement(sql, dialect) or text,
                dialect=dialect,
                columns=lambda parts: known.get(_name(parts)),
                file=name,
            )
            written = [_name(write.table) for write in script.writes]
            yield Model(
                file=name,
                dialect=dialect,
                owner=header_of(text).owners[0].name,
                text=text,
                script=script,
                dataset=written[0] if written else None,
            )


def _columns(script: ScriptLineage) -> Iterator[tuple[str, tuple[str, ...]]]:
    for write in script.writes:
        if write.columns:
            yield _name(write.table), write.columns


def _declared() -> Iterator[tuple[str, str]]:
    content = yaml.safe_load((FOLDER / "edges.yaml").read_text(encoding="utf-8"))
    for edge in content["lineage"]:
        yield edge["from"], edge["to"]


def _name(parts: tuple[str, ...]) -> str:
    return ".".join(parts).lower()


def words(text: str) -> frozenset[str]:
    """The names that stand in a piece of SQL."""
    return frozenset(re.findall(r"\w+", text.lower()))
