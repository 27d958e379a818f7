"""Text files with schemas in Lumos form, and complaints about them with their place."""

from pathlib import Path
from typing import Final

from lumos.model.schema import Schema, parse_schema
from lumos.model.types import SchemaSyntaxError
from lumos.schemas.errors import UnreadableSchema
from lumos.schemas.proposals import repeated_name

_MOST_BYTES: Final = 50 * 1024 * 1024


def read_text(file: Path) -> str:
    """The text of a file; whatever is no text is refused with its place."""
    with file.open("rb") as stream:
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise UnreadableSchema(str(file), f"it is larger than {_MOST_BYTES // 1024**2} MB")
    return decoded(str(file), data)


def decoded(file: str, data: bytes) -> str:
    """The bytes of a file as text."""
    try:
        # Names may hold lone surrogates, as `lumos schema export` writes them.
        return data.decode("utf-8", "surrogatepass").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        before = data[: problem.start]
        raise UnreadableSchema(
            file,
            "this is not UTF-8 text",
            line=before.count(b"\n") + 1,
            column=problem.start - before.rfind(b"\n"),
        ) from None


def parsed_text(file: str, text: str) -> Schema:
    """The schema written in Lumos text form."""
    try:
        schema = parse_schema(text, strict=True)
    except SchemaSyntaxError as problem:
        raise UnreadableSchema(
            file, problem.problem, line=problem.line, column=problem.column
        ) from None
    refuse_repeated(file, schema)
    return schema


def refuse_repeated(file: str, schema: Schema) -> None:
    """Refuses a schema in which a field stands twice."""
    repeated = repeated_name(schema)
    if repeated is not None:
        raise UnreadableSchema(file, f"the field '{repeated}' stands twice")
