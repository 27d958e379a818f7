"""Messages of a .proto file as schemas, without protoc.

| direction     | lost                                                                          |
|---------------|-------------------------------------------------------------------------------|
| from Protobuf | how numbers are encoded (sint32, fixed32), reserved names, options, extensions |
| from Protobuf | that the fields of a oneof exclude each other                                  |
| from Protobuf | messages of files that are not given: UNKNOWN('ref:...')                       |
Every field may be missing in a message, so all but the required ones of proto2 are nullable.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lumos.errors import MissingDependency
from lumos.model import types
from lumos.model.schema import Field, Schema
from lumos.model.type_path import TOO_DEEP, NamedTypes, TypePath

if TYPE_CHECKING:
    from proto_schema_parser import ast

_SCALARS: Final[dict[str, types.DataType]] = {
    "double": types.FLOAT64,
    "float": types.FLOAT32,
    "int32": types.INT32,
    "sint32": types.INT32,
    "sfixed32": types.INT32,
    "int64": types.INT64,
    "sint64": types.INT64,
    "sfixed64": types.INT64,
    "uint32": types.UINT32,
    "fixed32": types.UINT32,
    "uint64": types.UINT64,
    "fixed64": types.UINT64,
    "bool": types.BOOLEAN,
    "string": types.STRING,
    "bytes": types.BINARY,
}
_WELL_KNOWN_TYPES: Final[dict[str, types.DataType]] = {
    "google.protobuf.Timestamp": types.Timestamp("ns", zoned=True),
    "google.protobuf.Duration": types.Duration("ns"),
    "google.protobuf.Struct": types.JSON,
    "google.protobuf.Value": types.JSON,
    "google.protobuf.ListValue": types.JSON,
    "google.protobuf.Any": types.JSON,
    "google.protobuf.DoubleValue": types.FLOAT64,
    "google.protobuf.FloatValue": types.FLOAT32,
    "google.protobuf.Int64Value": types.INT64,
    "google.protobuf.UInt64Value": types.UINT64,
    "google.protobuf.Int32Value": types.INT32,
    "google.protobuf.UInt32Value": types.UINT32,
    "google.protobuf.BoolValue": types.BOOLEAN,
    "google.protobuf.StringValue": types.STRING,
    "google.protobuf.BytesValue": types.BINARY,
    "google.type.Date": types.DATE,
    "google.type.Decimal": types.Decimal(),
}
# Deeper braces would exceed the recursion limit of the parser.
_MAX_BRACES: Final = 60
_MAX_IMPORTS: Final = 200


class ProtobufMessage(NamedTuple):
    """A top-level message: its name with the package, and its schema."""

    name: str
    schema: Schema


def messages_from_protobuf(
    text: str, *, imported: Callable[[str], str | None] = lambda _: None
) -> tuple[ProtobufMessage, ...]:
    """The top-level messages of a .proto file; raises SchemaSyntaxError.

    `imported` returns the text of an imported file, or None if the file is unknown.
    """
    try:
        from antlr4.error.ErrorListener import ErrorListener
        from proto_schema_parser import ast
        from proto_schema_parser.parser import Parser
    except ImportError:
        raise MissingDependency(
            "Reading Protobuf schemas", "proto-schema-parser", "protobuf"
        ) from None

    class FailingListener(ErrorListener):  # type: ignore[misc]
        """Raises syntax errors, which the parser would otherwise print and ignore."""

        def syntaxError(self, *arguments: Any) -> None:
            _, _, line, column, text, _ = arguments
            # Cut off the rest, a list of all keywords of the language.
            problem = text.partition(" expecting ")[0]
            raise types.SchemaSyntaxError(problem, line=line, column=column + 1)

    def fail_on_errors(recognizer: Any) -> None:
        recognizer.removeErrorListeners()
        recognizer.addErrorListener(FailingListener())

    def parse(text: str) -> tuple[Any, str]:
        _check_depth(text)
        parser = Parser(setup_lexer=fail_on_errors, setup_parser=fail_on_errors)
        elements = parser.parse(text).file_elements
        packages = (each.name for each in elements if isinstance(each, ast.Package))
        return elements, next(packages, "")

    elements, package = parse(text)
    reader = _Reader(package)
    pending_imports = [each.name for each in elements if isinstance(each, ast.Import)]
    read_imports: set[str] = set()
    while pending_imports and len(read_imports) < _MAX_IMPORTS:
        name = pending_imports.pop()
        if name in read_imports or (other := imported(name)) is None:
            continue
        read_imports.add(name)
        # Ignore syntax errors: they are reported when the file itself is read.
        with suppress(types.SchemaSyntaxError):
            others, scope = parse(other)
            reader.define(others, scope)
            pending_imports += (each.name for each in others if isinstance(each, ast.Import))
    reader.define(elements, package)
    return tuple(
        ProtobufMessage(name, reader.schema(name))
        for each in elements
        if isinstance(each, ast.Message)
        for name in [_join(package, each.name)]
    )


class _Reader:
    """Reads the messages of one file, which refer to each other by name."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._definitions: dict[str, ast.Message | ast.Group | ast.Enum] = {}
        self._references = NamedTypes()

    def define(self, elements: Any, scope: str) -> None:
        from proto_schema_parser import ast

        for each in elements:
            if isinstance(each, ast.OneOf):
                self.define(each.elements, scope)
            elif isinstance(each, ast.Message | ast.Group | ast.Enum):
                name = _join(scope, each.name)
                self._definitions[name] = each
                if not isinstance(each, ast.Enum):
                    self.define(each.elements, name)

    def schema(self, message: str) -> Schema:
        fields = []
        for each in _fields(self._definitions[message].elements):
            path = TypePath(path=TypePath.column(each.name).path, inside=frozenset([message]))
            path.note(field_id=each.number)
            type = self._type(each, message, path)
            fields.append(
                path.field(
                    each.name, type, nullable=not _is_required(each), native_type=_native(each)
                )
            )
        return Schema(fields=tuple(_without_duplicate_names(fields)))

    def _type(self, field: Any, scope: str, path: TypePath) -> types.DataType:
        from proto_schema_parser import ast

        if path.is_deepest:
            return TOO_DEEP
        if isinstance(field, ast.MapField):
            value = self._named_type(field.value_type, scope, path.value())
            return types.Map(
                _SCALARS.get(field.key_type, types.STRING), value, value_nullable=False
            )
        is_repeated = field.cardinality is ast.FieldCardinality.REPEATED
        name = field.name if isinstance(field, ast.Group) else field.type
        inner = self._named_type(name, scope, path.element() if is_repeated else path)
        return types.Array(inner, element_nullable=False) if is_repeated else inner

    def _named_type(self, name: str, scope: str, path: TypePath) -> types.DataType:
        if name in _SCALARS:
            return _SCALARS[name]
        for full_name in _candidates(name, scope):
            if full_name in self._definitions:
                return self._defined(full_name, path)
        known = _WELL_KNOWN_TYPES.get(name.removeprefix("."))
        return known or types.Unknown(f"ref:{name.removeprefix('.')}")

    def _defined(self, name: str, path: TypePath) -> types.DataType:
        from proto_schema_parser import ast

        definition = self._definitions[name]
        if isinstance(definition, ast.Enum):
            values = [each for each in definition.elements if isinstance(each, ast.EnumValue)]
            return types.Enum(tuple(dict.fromkeys(each.name for each in values)))
        replacement = self._references.replacement_for(name, path)
        if replacement is not None:
            return replacement
        if path.is_deepest:
            return TOO_DEEP
        inner_path = path.within(name)
        members: dict[str, types.Member] = {}
        for each in _fields(definition.elements):
            inner = inner_path.member(each.name)
            inner.note(field_id=each.number)
            type = self._type(each, name, inner)
            members.setdefault(
                each.name, types.Member(each.name, type, nullable=not _is_required(each))
            )
        return self._references.count_expansion(types.Struct(tuple(members.values())))


def _fields(elements: Any) -> Iterator[Any]:
    from proto_schema_parser import ast

    for each in elements:
        if isinstance(each, ast.OneOf):
            yield from _fields(each.elements)
        elif isinstance(each, ast.Field | ast.MapField | ast.Group):
            yield each


def _without_duplicate_names(fields: list[Field]) -> Iterator[Field]:
    names: set[str] = set()
    for field in fields:
        if field.name not in names:
            names.add(field.name)
            yield field


def _is_required(field: Any) -> bool:
    from proto_schema_parser import ast

    return getattr(field, "cardinality", None) is ast.FieldCardinality.REQUIRED


def _native(field: Any) -> str | None:
    return getattr(field, "type", None)


def _candidates(name: str, scope: str) -> Iterator[str]:
    """The full names that a type name may mean, starting in the innermost scope."""
    if name.startswith("."):
        yield name[1:]
        return
    while scope:
        yield f"{scope}.{name}"
        scope = scope.rpartition(".")[0]
    yield name


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name


def _check_depth(text: str) -> None:
    depth = 0
    for at, mark in enumerate(text):
        depth += (mark in "{[<(") - (mark in "}]>)")
        if depth > _MAX_BRACES:
            line = text.count("\n", 0, at) + 1
            raise types.SchemaSyntaxError("the file nests too deeply", line=line, column=1)
