"""Reads questions and dashboards of Metabase: serialized YAML files, or JSON of its API.

Questions of the query builder have no SQL: Lumos builds it from their fields, joins and filters.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from lumos.annotations.owner_names import owner_texts, parse_owners
from lumos.config.yaml_tree import MAX_BYTES, ConfigurationError
from lumos.lineage.consumers import (
    Consumer,
    ConsumerExport,
    consumer_reference,
    consumer_table,
    make_entity,
)
from lumos.lineage.reported_lineage import LineageProblem, ReportedEdge, TableName
from lumos.lineage.sql.dialects import quote_name
from lumos.lineage.yaml_file import UnreadableDocument, YamlFile, mappings_in, text_at
from lumos.model.catalog import entity_urn
from lumos.model.lineage import ColumnUse, UseKind

_TOOL: Final = "metabase"
_MAX_JSON_BYTES: Final = 256 * 1024**2
_MAX_DEPTH: Final = 60
# Folders of an export below its root.
EXPORT_FOLDERS: Final = ("collections", "databases", "snippets", "actions")
_TAG: Final = re.compile(r"\{\{\s*(.*?)\s*\}\}", re.DOTALL)
_OPTIONAL: Final = re.compile(r"\[\[|\]\]")
_CARD_PREFIX: Final = "card__"
_ARITHMETIC: Final = ("+", "-", "*", "/")
# Aggregates that need numbers or keep the type; all others only count.
_AGGREGATES: Final = {
    **dict.fromkeys(
        ("avg", "cum-sum", "median", "percentile", "stddev", "sum-where", "var"), "AVG"
    ),
    **{"max": "MAX", "min": "MIN", "sum": "SUM"},
}
# Kinds of saved clauses, each of which is defined in its own file.
_SAVED_CLAUSE_KINDS: Final = ("measure", "metric", "segment")
_CLAUSE_KEYS: Final = ("aggregation", "filter", "filters")


class _Source(msgspec.Struct, frozen=True, kw_only=True):
    """A question or dashboard; `document` is its YAML file, if it has one."""

    value: dict[str, Any]
    file: str
    document: YamlFile | None = None


def export_root(name: str) -> str:
    """The folder of the export that a serialized file belongs to, by the name of the file."""
    parts = name.split("/")
    for number, part in enumerate(parts[:-1]):
        if part in EXPORT_FOLDERS:
            return "/".join(parts[:number]) or "."
    return "/".join(parts[:-1]) or "."


def report_files(files: Iterable[tuple[Path, str]], *, root: str) -> ConsumerExport:
    """The questions and dashboards of the serialized YAML files of one export."""
    problems: list[LineageProblem] = []
    sources: list[_Source] = []
    for path, name in files:
        try:
            with path.open("rb") as stream:
                document = YamlFile(stream.read(MAX_BYTES + 1), name=name)
        except ConfigurationError as error:
            for each in error.problems:
                line = each.position.line
                problems.append(LineageProblem(place=name, line=line, reason=each.text))
        except (OSError, UnreadableDocument) as problem:
            problems.append(LineageProblem(place=name, reason=str(problem)))
        else:
            sources.append(_Source(value=document.value, file=name, document=document))
    return _Export(sources, f"metabase:{root}", problems).read()


def report_json(file: Path, *, name: str) -> ConsumerExport:
    """The questions and dashboards in a response of Metabase's API."""
    reporter = f"metabase:{name}"
    try:
        with file.open("rb") as stream:
            content = stream.read(_MAX_JSON_BYTES + 1)
        if len(content) > _MAX_JSON_BYTES:
            raise ValueError(f"it is larger than {_MAX_JSON_BYTES // 1024**2} MB")
        decoded = _as_texts(msgspec.json.decode(content))
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as problem:
        reason = f"This is not a response of Metabase: {problem}."
        return ConsumerExport(
            reporter=reporter, problems=(LineageProblem(place=name, reason=reason),)
        )
    # Newer versions return pages: {"data": [...]}.
    if isinstance(decoded, dict) and isinstance(decoded.get("data"), list):
        decoded = decoded["data"]
    values = decoded if isinstance(decoded, list) else [decoded]
    sources = []
    for value in values:
        if isinstance(value, dict):
            sources.append(_Source(value=value, file=f"{name}#{_id(value) or ''}"))
            for card in _cards_of(value):
                if "dataset_query" in card:
                    sources.append(_Source(value=card, file=f"{name}#{_id(card) or ''}"))
    return _Export(sources, reporter, []).read()


def _as_texts(value: Any) -> Any:
    """Convert numbers to strings: ids are numbers in JSON, but strings in YAML."""
    if isinstance(value, dict):
        return {key: _as_texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_texts(each) for each in value]
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


class _Export:
    def __init__(
        self, sources: Iterable[_Source], reporter: str, problems: list[LineageProblem]
    ) -> None:
        self._reporter = reporter
        self._problems = problems
        self._cards: dict[str, _Source] = {}
        self._dashboards: dict[str, _Source] = {}
        self._engines: dict[str, str] = {}
        self._snippets: dict[str, str] = {}
        self._definitions: dict[str, Any] = {}
        # In JSON, questions refer to each other by numeric ids.
        self._ids: dict[str, str] = {}
        for each in sources:
            value, id = each.value, _id(each.value)
            if text_at(value, "archived") == "true":
                continue
            if "dataset_query" in value and id is not None:
                self._cards.setdefault(id, each)
                self._ids[text_at(value, "id") or id] = id
                self._definitions[id] = value["dataset_query"]
            elif isinstance(value.get("definition"), dict) and id is not None:
                # A segment or measure of a table.
                self._definitions[id] = value["definition"]
            elif ("dashcards" in value or "ordered_cards" in value) and id is not None:
                self._dashboards[id] = each
            elif (engine := text_at(value, "engine")) is not None:
                self._engines[text_at(value, "name") or ""] = engine
            elif (content := text_at(value, "content")) is not None:
                self._snippets[text_at(value, "name") or ""] = content

    def read(self) -> ConsumerExport:
        consumers = [
            *(self._card(id, source) for id, source in self._cards.items()),
            *(self._dashboard(id, source) for id, source in self._dashboards.items()),
        ]
        return ConsumerExport(
            reporter=self._reporter, consumers=tuple(consumers), problems=tuple(self._problems)
        )

    def _card(self, id: str, source: _Source) -> Consumer:
        value = source.value
        query = value.get("dataset_query")
        database = text_at(query, "database") or text_at(value, "database_id") or ""
        engine = self._engines.get(database)
        entity = _entity("chart", id, source)
        sql, path = _native_sql(query)
        dialect = Consumer(entity=entity, engine=engine).dialect
        try:
            if sql is not None:
                sql = self._render(sql, _template_tags(query), dialect)
            else:
                path = ()
                builder = _BuilderQuery(query, self._table_of_card, self._definitions.get, dialect)
                sql = builder.sql()
                for missing in builder.missing:
                    self._add_remark(
                        source,
                        f"The question '{entity.display_name}' uses the {missing}, which the "
                        "export does not contain. Its columns are left out.",
                    )
        except _Unresolvable as problem:
            self._add_remark(
                source, f"The question '{entity.display_name}' is not analysed: {problem}"
            )
            sql = None
        line: int | None = 1
        if source.document is not None:
            line = source.document.line("dataset_query", *path)
        return Consumer(entity=entity, sql=sql, file=source.file, line=line, engine=engine)

    def _add_remark(self, source: _Source, reason: str) -> None:
        self._problems.append(LineageProblem(place=source.file, reason=reason, severity="remark"))

    def _render(self, sql: str, tags: Mapping[str, Any], dialect: str | None) -> str:
        """Replace template tags; line breaks stay as they are."""

        def replace(match: re.Match[str]) -> str:
            name = match.group(1)
            breaks = "\n" * match.group().count("\n")
            if name.lower().startswith("snippet:"):
                content = self._snippets.get(name.partition(":")[2].strip(), "NULL")
                return " ".join(re.sub(r"--[^\n]*", "", content).split()) + breaks
            if name.startswith("#"):
                tag = tags.get(name)
                id = text_at(tag, "card-id") or name[1:].partition("-")[0]
                return self._table_of_card(id) + breaks
            column = _tag_column(tags.get(name), dialect)
            match text_at(tags.get(name), "type"):
                case "dimension":
                    # A field filter is a whole condition.
                    return (f"{column} IS NOT NULL" if column else "1 = 1") + breaks
                case "temporal-unit" if column:
                    return column + breaks
            return "NULL" + breaks

        return _OPTIONAL.sub("", _TAG.sub(replace, sql))

    def _table_of_card(self, id: str) -> str:
        entity_id = self._ids.get(id, id)
        if entity_id not in self._cards:
            raise _Unresolvable(f"it reads the question {id}, which the export does not contain.")
        return consumer_table(entity_urn("chart", _TOOL, entity_id))

    def _dashboard(self, id: str, source: _Source) -> Consumer:
        entity = _entity("dashboard", id, source)
        reference = consumer_reference(entity.urn)
        edges: dict[str, ReportedEdge] = {}
        for card in _cards_of(source.value):
            card_id = _id(card) or ""
            entity_id = self._ids.get(card_id, card_id)
            if entity_id not in self._cards:
                # The file of the question may be part of another export.
                reason = f"The question {card_id} of the dashboard is not in the export."
                self._add_remark(source, reason)
                continue
            upstream = consumer_reference(entity_urn("chart", _TOOL, entity_id))
            edges[entity_id] = ReportedEdge(upstream=upstream, downstream=reference)
        filters = _dashboard_filters(source, entity.urn)
        return Consumer(entity=entity, file=source.file, edges=(*edges.values(), *filters))


def _dashboard_filters(source: _Source, urn: str) -> Iterator[ReportedEdge]:
    """The columns that the filters of a dashboard are connected to."""
    for number, card in mappings_in(source.value.get("dashcards")):
        for index, mapping in mappings_in(card.get("parameter_mappings")):
            line = None
            if source.document is not None:
                line = source.document.line("dashcards", number, "parameter_mappings", index)
            target = mapping.get("target")
            # ["dimension", ["field", ...]] for columns, ["variable", ...] for variables of SQL.
            if isinstance(target, list) and target[:1] == ["dimension"] and len(target) > 1:
                edge = _filter_edge(target[1], urn, source.file, line)
                if edge is not None:
                    yield edge


def _filter_edge(field: Any, urn: str, file: str, line: int | None) -> ReportedEdge | None:
    """The edge from the table of a field in a filter; None for fields with numeric ids."""
    reference = _reference_in(field)
    if not isinstance(reference, list) or len(reference) < 4:
        return None
    # A table is [database, schema, table]; some databases have no schemas.
    table = TableName(parts=tuple(str(part) for part in reference[1:3] if part))
    use = ColumnUse(upstream=str(reference[3]), usage=UseKind.FILTER, file=file, line=line)
    return ReportedEdge(upstream=table, downstream=consumer_reference(urn), uses=(use,))


def _tag_column(tag: Any, dialect: str | None) -> str | None:
    """The column of a template tag in SQL, if it has one, with its table as Metabase writes it."""
    reference = _reference_in(tag.get("dimension")) if isinstance(tag, dict) else None
    if not isinstance(reference, list) or len(reference) < 4:
        return None
    # Databases ignore the case of names without quotes, such as those in the SQL.
    return ".".join(
        part if part.isidentifier() and (part.islower() or part.isupper())
        else quote_name(part, dialect)
        for part in map(str, reference[2:4])
    )  # fmt: skip


def _reference_in(field: Any) -> Any:
    """What a `field` clause refers to: a list of names, a name, or a number as text."""
    if not isinstance(field, list) or field[:1] != ["field"] or len(field) < 2:
        return None
    # Older versions have the options last.
    if isinstance(field[1], dict):
        return field[2] if len(field) > 2 else None
    return field[1]


def _entity(kind: str, id: str, source: _Source) -> Any:
    value = source.value
    creator = value.get("creator") or value.get("creator_id")
    # In JSON, creator_id is a number.
    owners = () if isinstance(creator, str) and creator.isdecimal() else owner_texts(creator)
    return make_entity(
        kind,
        _TOOL,
        id,
        name=text_at(value, "name") or id,
        description=text_at(value, "description"),
        owners=parse_owners(owners),
        file=source.file,
    )


def _id(value: dict[str, Any]) -> str | None:
    return text_at(value, "entity_id") or text_at(value, "id")


def _cards_of(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The questions on a dashboard, with further series; text boxes have none."""
    for each in dashboard.get("dashcards") or dashboard.get("ordered_cards") or ():
        if not isinstance(each, dict):
            continue
        series = each.get("series")
        for item in (each, *(series if isinstance(series, list) else ())):
            if not isinstance(item, dict):
                continue
            card = item.get("card") if isinstance(item.get("card"), dict) else None
            if card is None and "dataset_query" in item:
                card = item
            if card is not None and _id(card) is not None:
                yield card
            elif (id := text_at(item, "card_id")) is not None:
                yield {"entity_id": id}


def _native_sql(query: Any) -> tuple[str | None, tuple[str | int, ...]]:
    """The SQL of a question and its path in the query; None for the query builder."""
    for key in ("query", "native"):
        if (sql := text_at(query, "native", key)) is not None:
            return sql, ("native", key)
    stages = query.get("stages") if isinstance(query, dict) else None
    if isinstance(stages, list) and stages and (sql := text_at(stages[0], "native")) is not None:
        return sql, ("stages", 0, "native")
    return None, ()


def _template_tags(query: Any) -> dict[str, Any]:
    """The template tags by name; newer versions have a list of pairs."""
    stages = query.get("stages") if isinstance(query, dict) else None
    owner = stages[0] if isinstance(stages, list) and stages else query.get("native")
    tags = owner.get("template-tags") if isinstance(owner, dict) else None
    if isinstance(tags, dict):
        return tags
    pairs = (each for each in tags or () if isinstance(each, list) and len(each) == 2)
    return {str(name): tag for name, tag in pairs}


class _Unresolvable(Exception):
    """A question whose tables cannot be determined."""


class _BuilderQuery:
    """A question of the query builder, as SQL with the same tables, columns and clauses."""

    def __init__(
        self,
        query: Any,
        table_of_card: Callable[[str], str],
        definition_of: Callable[[str], Any],
        dialect: str | None,
    ) -> None:
        self._query = query
        self._table_of_card = table_of_card
        self._definition_of = definition_of
        self._dialect = dialect
        # Saved clauses that are not defined.
        self.missing: dict[str, None] = {}
        self._tables: dict[str, None] = {}
        self._selected: dict[str, None] = {}
        self._grouped: dict[str, None] = {}
        self._filtered: dict[str, None] = {}
        self._joined: list[str] = []
        self._sorted: dict[str, None] = {}
        self._has_aggregates = False

    def sql(self) -> str:
        stages = self._query.get("stages") if isinstance(self._query, dict) else None
        for number, stage in enumerate(
            stages if isinstance(stages, list) else [self._query.get("query")]
        ):
            self._add_stage(stage, is_first=number == 0, depth=0)
        if not self._tables:
            raise _Unresolvable(
                "its tables are numeric ids. Use the serialized YAML files instead of the API."
            )
        first, *others = self._tables
        on = " AND ".join(self._joined) or "1 = 1"
        joins = "".join(f" LEFT JOIN {table} ON {on}" for table in others[-1:])
        cross_joins = "".join(f" CROSS JOIN {table}" for table in others[:-1])
        columns = list(dict.fromkeys((*self._grouped, *self._selected)))
        projections = (f"{sql} AS column_{number}" for number, sql in enumerate(columns, start=1))
        sql = f"SELECT {', '.join(projections) or '*'} FROM {first}{cross_joins}{joins}"
        if self._filtered:
            sql += f" WHERE {' AND '.join(f'{each} IS NOT NULL' for each in self._filtered)}"
        if self._grouped and self._has_aggregates:
            sql += f" GROUP BY {', '.join(self._grouped)}"
        return sql + (f" ORDER BY {', '.join(self._sorted)}" if self._sorted else "")

    def _add_stage(self, stage: Any, *, is_first: bool, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise _Unresolvable("its query is nested too deeply.")
        if not isinstance(stage, dict):
            return
        nested = stage.get("source-query")
        if isinstance(nested, dict):
            self._add_stage(nested, is_first=is_first, depth=depth + 1)
        self._add_table(stage.get("source-table"))
        if (card := text_at(stage, "source-card")) is not None:
            self._tables[self._table_of_card(card)] = None
        # Names refer to columns of the table only in the first stage.
        with_names = is_first and nested is None
        for join in stage.get("joins") or ():
            if isinstance(join, dict):
                inner = join.get("stages")
                for each in inner if isinstance(inner, list) else [join]:
                    self._add_stage(
                        {**each, "joins": None} if isinstance(each, dict) else None,
                        is_first=False, depth=depth + 1,
                    )  # fmt: skip
                condition = join.get("conditions") or join.get("condition")
                fields = list(self._fields(condition, with_names=False))
                self._joined += [
                    f"{left} = {right}"
                    for left, right in zip(fields[::2], fields[1::2], strict=False)
                ]
                if len(fields) % 2:
                    self._joined.append(f"{fields[-1]} IS NOT NULL")
                if isinstance(join.get("fields"), list):
                    self._selected |= dict.fromkeys(self._fields(join["fields"], with_names=False))
        for aggregate in stage.get("aggregation") or ():
            self._has_aggregates = True
            function = _AGGREGATES.get(_operator(aggregate), "COUNT")
            fields = list(self._fields(aggregate, with_names=with_names))
            # Only the first field is aggregated; the others are in conditions.
            self._selected |= dict.fromkeys(f"{function}({each})" for each in fields[:1])
            self._selected |= dict.fromkeys(f"COUNT({each})" for each in fields[1:])
            if not fields:
                self._selected["COUNT(*)"] = None
        expressions = stage.get("expressions")
        for each in expressions.values() if isinstance(expressions, dict) else expressions or ():
            operator = _operator(each)
            fields = list(self._fields(each, with_names=with_names))
            if fields:
                is_arithmetic = operator in _ARITHMETIC
                text = f" {operator} ".join(fields) if is_arithmetic else ", ".join(fields)
                self._selected[text if is_arithmetic else f"COALESCE({text})"] = None
        for key, target in (
            ("fields", self._selected),
            ("breakout", self._grouped),
            ("filter", self._filtered),
            ("filters", self._filtered),
            ("order-by", self._sorted),
        ):
            target |= dict.fromkeys(self._fields(stage.get(key), with_names=with_names))

    def _add_table(self, source: Any) -> None:
        if isinstance(source, str) and source.startswith(_CARD_PREFIX):
            self._tables[self._table_of_card(source.removeprefix(_CARD_PREFIX))] = None
        elif isinstance(source, str) and not source.isdecimal():
            # In files, a question instead of a table is its entity_id.
            self._tables[self._table_of_card(source)] = None
        elif isinstance(source, list) and len(source) == 3:
            self._tables[self._quote(source[1:])] = None

    def _fields(self, clause: Any, *, with_names: bool) -> Iterator[str]:
        """The columns in a clause; fields with numeric ids are left out."""
        pending = [clause]
        visited: set[str] = set()
        while pending:
            each = pending.pop()
            if not isinstance(each, list):
                continue
            if each[:1] == ["field"]:
                reference = _reference_in(each)
                if isinstance(reference, list) and len(reference) >= 4:
                    yield self._quote(reference[1:4])
                elif with_names and isinstance(reference, str) and not reference.isdecimal():
                    yield self._quote([reference])
            elif (
                each[:1]
                and each[0] in _SAVED_CLAUSE_KINDS
                and isinstance(each[-1], str)
                and len(each) > 1
            ):
                # Saved clauses may refer to each other in a cycle.
                if each[-1] not in visited:
                    visited.add(each[-1])
                    pending += self._saved_clauses(each[0], each[-1])
            else:
                pending += reversed(each)

    def _saved_clauses(self, kind: str, id: str) -> Iterator[Any]:
        """The aggregations and filters of a metric, measure or segment."""
        definition = self._definition_of(id)
        if definition is None and not id.isdecimal():
            self.missing[f"{kind} {id}"] = None
        stages = definition.get("stages") if isinstance(definition, dict) else None
        query = definition.get("query") if isinstance(definition, dict) else None
        for stage in stages if isinstance(stages, list) else (query, definition):
            if isinstance(stage, dict):
                yield from (stage.get(key) for key in _CLAUSE_KEYS)

    def _quote(self, parts: Iterable[Any]) -> str:
        return ".".join(quote_name(str(part), self._dialect) for part in parts if part)


def _operator(clause: Any) -> str:
    return clause[0] if isinstance(clause, list) and clause and isinstance(clause[0], str) else ""
