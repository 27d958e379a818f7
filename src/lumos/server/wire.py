"""Encodes arguments of SDK methods as query strings and JSON, and errors as problem documents.

Problem documents are those of RFC 9457.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from lumos.errors import FAILED, MISUSED, LumosError, MisuseError, UnknownName
from lumos.model.json_codec import from_json, from_plain, to_json, to_plain
from lumos.model.types import DataType
from lumos.server.routes import Route, UploadedFile, UploadedPath
from lumos.server.sdk_methods import Parameter, SdkMethod

PROBLEM: Final = "application/problem+json"
# The header for the JSON report of a command whose response body is a file.
REPORT_HEADER: Final = "Lumos-Report"
_ERROR_TYPE: Final = "urn:lumos:error:"
_MAX_QUERY_FIELDS: Final = 1_000


class ApiProblem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An error in the format of RFC 9457; `detail` is the message that a command prints.

    `exit_code` is the exit code of the command, `nearest` are similar names that exist.
    """

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    exit_code: int = FAILED
    request_id: str = ""
    nearest: tuple[str, ...] = ()


class InvalidArguments(MisuseError):
    """Arguments that do not match the parameters of a method."""


def query_of(route: Route, given: Mapping[str, Any]) -> str:
    """The query string of a request: lists as repeated names, mappings as `key=value`."""
    parameters = {each.name: each for each in route.sdk_method.parameters}
    fields: list[tuple[str, str]] = []
    for name, value in given.items():
        plain = to_plain(value)
        if plain is None:
            continue
        if isinstance(plain, dict):
            fields += [(name, f"{key}={_text(each)}") for key, each in plain.items()]
        elif parameters[name].is_list:
            fields += [(name, _text(each)) for each in plain]
        else:
            fields.append((name, _text(plain)))
    return urlencode(fields)


def from_query(route: Route, query: str) -> msgspec.Struct:
    """The arguments in a query string."""
    parameters = {each.name: each for each in route.sdk_method.parameters}
    values: dict[str, Any] = {}
    try:
        pairs = parse_qsl(
            query,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_QUERY_FIELDS,
        )
    except ValueError as problem:
        raise InvalidArguments(f"The query is not valid: {problem}.") from None
    for name, text in pairs:
        parameter = parameters.get(name)
        if parameter is None:
            known = ", ".join(parameters) or "none"
            raise InvalidArguments(f"Unknown parameter '{name}'. Parameters: {known}.")
        _add_value(values, parameter, text)
    try:
        return msgspec.convert(values, route.sdk_method.arguments, strict=False)
    except (msgspec.ValidationError, OverflowError) as problem:
        raise InvalidArguments(f"{problem}.") from None


def _add_value(values: dict[str, Any], parameter: Parameter, text: str) -> None:
    name = parameter.name
    if parameter.is_mapping:
        key, equals, value = text.partition("=")
        if not equals:
            raise InvalidArguments(f"'{text}' of '{name}' has no value. Write it as key=value.")
        values.setdefault(name, {})[key] = value
    elif parameter.is_list:
        values.setdefault(name, []).append(text)
    elif name in values:
        raise InvalidArguments(f"'{name}' is given twice. Give it once.")
    else:
        values[name] = text


def body_of(given: Mapping[str, Any]) -> bytes:
    """The body of a request."""
    return to_json({name: to_plain(value) for name, value in given.items() if value is not None})


def from_body(route: Route, body: bytes) -> msgspec.Struct:
    """The arguments in a body; files are still `UploadedFile`."""
    try:
        return from_json(body or b"{}", body_type(route))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError) as problem:
        raise InvalidArguments(f"The body is not valid: {problem}.") from None


def body_type(route: Route) -> type[msgspec.Struct]:
    """The struct of a body: the arguments, with files instead of paths."""
    return _body_struct(route.sdk_method, route.files)


@cache
def _body_struct(method: SdkMethod, files: tuple[str, ...]) -> type[msgspec.Struct]:
    if not files:
        return method.arguments
    fields: list[Any] = []
    parameters = {each.name: each for each in method.parameters}
    for each in msgspec.structs.fields(method.arguments):
        if each.name not in files:
            fields.append((each.name, each.type, *_default(each)))
        elif parameters[each.name].kind == "rest":
            fields.append((each.name, tuple[UploadedPath, ...], ()))
        elif each.required:
            fields.append((each.name, UploadedFile))
        else:
            fields.append((each.name, UploadedFile | None, None))
    return msgspec.defstruct(
        f"{method.arguments.__name__}WithFiles",
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        omit_defaults=True,
    )


def _default(field: Any) -> tuple[Any, ...]:
    return () if field.required else (field.default,)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def problem_of(error: LumosError, *, status: int, title: str, request_id: str) -> ApiProblem:
    """An error as a problem document."""
    names = getattr(error, "nearest", ())
    return ApiProblem(
        type=f"{_ERROR_TYPE}{_kebab(type(error).__name__)}",
        title=title,
        status=status,
        detail=str(error),
        exit_code=error.exit_code,
        request_id=request_id,
        nearest=tuple(names) if isinstance(names, Sequence) else (),
    )


def error_of(problem: ApiProblem) -> LumosError:
    """The error that a problem document describes; classes that commands handle are restored."""
    # Imported late: most responses are not errors.
    from lumos.config.switches import FeatureDisabled
    from lumos.names import NoMatchingDataset
    from lumos.store.errors import AmbiguousName, NoStore, UnknownDataset

    classes: tuple[type[LumosError], ...] = (
        UnknownDataset, NoMatchingDataset, AmbiguousName, NoStore, FeatureDisabled, UnknownName,
    )  # fmt: skip
    kind = problem.type.removeprefix(_ERROR_TYPE)
    default = MisuseError if problem.exit_code == MISUSED else LumosError
    error_class = next((each for each in classes if _kebab(each.__name__) == kind), default)
    # Skip the constructors of these classes, which compose their own messages.
    error = error_class.__new__(error_class)
    Exception.__init__(error, problem.detail)
    error.__dict__["nearest"] = problem.nearest
    return error


def _kebab(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def decode_result(data: bytes, type: Any) -> Any:
    """A result of a method from JSON."""
    if type is DataType:
        return from_plain(msgspec.json.decode(data), type)
    return from_json(data, type)
