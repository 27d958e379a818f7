"""Settings in environment variables: `LUMOS_STORAGE__PATH` is the key `storage.path`."""

from collections.abc import Iterator, Mapping
from typing import Final

from lumos.config.keys import NoSuchKey, Target, target
from lumos.config.settings import Settings, moved
from lumos.config.tree import Place, Scalar

FILE_VARIABLE: Final = "LUMOS_CONFIG"

_PREFIX: Final = "LUMOS_"
# Variables that are read elsewhere and name no setting.
_SWITCHES: Final = frozenset(
    {FILE_VARIABLE, "LUMOS_CLASS_ARCHIVE", "LUMOS_DEBUG", "LUMOS_QUIET", "LUMOS_VERBOSE"}
)
# Variables that users of a catalog have set already, and the keys they stand for.
_FOREIGN: Final = {"DATAHUB_GMS_URL": ["platform_config", "datahub", "gms_server"]}


def variables(environment: Mapping[str, str], folder: str) -> Iterator[tuple[Target, Scalar]]:
    """The settings among the variables; relative paths in them hang on `folder`."""
    # A variable of our own says more than one that was set for another program.
    ordered = sorted(environment, key=lambda name: (name.startswith(_PREFIX), name))
    for name in ordered:
        text = environment[name]
        found = _target(name)
        # Containers often hand on variables that are set to nothing.
        if found is not None and text:
            place = Place(origin=name, folder=folder, kind="variable")
            path = ".".join(step for step, _ in found.steps)
            yield found, Scalar(place=place, path=path, text=text, written=text)


def unused_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that start like ours but name no setting."""
    ours = (name for name in environment if name.startswith(_PREFIX) and name not in _SWITCHES)
    return tuple(sorted(name for name in ours if _target(name) is None))


def _target(variable: str) -> Target | None:
    if variable in _FOREIGN:
        return target(Settings, _FOREIGN[variable])
    if not variable.startswith(_PREFIX) or variable == FILE_VARIABLE:
        return None
    parts = variable.removeprefix(_PREFIX).split("__")
    # Free-form keys may have capitals, as Spark's do; those who need them write them.
    path = [part.lower() if part.isupper() else part for part in parts]
    try:
        found = target(Settings, moved(path))
    except NoSuchKey:
        return None
    return found if found.kind.takes_text and all(path) else None
