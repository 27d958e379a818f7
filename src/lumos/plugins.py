"""Finds sources and platforms by name among the entry points of all installed packages."""

import os
import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Final

from lumos.errors import LumosError, MissingDependency, UnknownName

SOURCES: Final = "lumos.sources"
PLATFORMS: Final = "lumos.platforms"

_OWN_PACKAGE: Final = "lumos"

# Plug-ins that a test or a notebook has added at run time.
_registered: Final[dict[str, dict[str, object]]] = {}


class BrokenPlugin(LumosError):
    """A plug-in is installed but cannot be used."""

    def __init__(self, what: str, name: str, package: str, problem: str) -> None:
        self.name = name
        self.package = package
        super().__init__(f"The {what} '{name}' of the package '{package}' {problem}")


def register(group: str, name: str, plugin: object) -> None:
    """Add a plug-in to this process; it overrides an installed plug-in of the same name."""
    _registered.setdefault(group, {})[name] = plugin


def unregister(group: str, name: str) -> None:
    """Remove a plug-in that was added with `register`."""
    _registered.get(group, {}).pop(name, None)


def names(group: str) -> set[str]:
    """The names of all plug-ins of a group, without importing them."""
    return {entry.name for entry in _installed(group)} | set(_registered.get(group, {}))


def find(group: str, name: str, what: str) -> object:
    """The plug-in with a name; `what` is its kind in error messages, such as "source"."""
    registered = _registered.get(group, {})
    if name in registered:
        return registered[name]
    entries = _installed(group).select(name=name)
    if not entries:
        raise UnknownName(what, name, names(group), listed="Installed")
    # Equal entry points are no conflict: a package may be installed and also be a checkout.
    by_target = {entry.value: entry for entry in entries}
    if len(by_target) > 1:
        packages = " and ".join(sorted({_package(entry) for entry in by_target.values()}))
        raise LumosError(f"The {what} '{name}' comes from {packages}. Uninstall all but one.")
    return _load(by_target.popitem()[1], what)


def _installed(group: str) -> EntryPoints:
    return _entry_points(group, tuple((folder, _modified_at(folder)) for folder in sys.path))


# Cached, since it reads the metadata of every package and is called several times at start.
@lru_cache(maxsize=4)
def _entry_points(group: str, _path: tuple[tuple[str, int | None], ...]) -> EntryPoints:
    return entry_points(group=group)


def _modified_at(folder: str) -> int | None:
    """The modification time of a folder, which changes if packages are installed or removed."""
    try:
        return os.stat(folder or ".").st_mtime_ns
    except OSError:
        return None


def _load(entry: EntryPoint, what: str) -> object:
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        missing = error.name or "a module"
        if entry.module == missing or entry.module.startswith(f"{missing}."):
            problem = f"points to the module '{entry.module}', which does not exist. Reinstall it."
        elif _package(entry) == _OWN_PACKAGE:
            extra = next(iter(entry.extras), entry.name)
            library = missing.partition(".")[0]
            raise MissingDependency(f"The {what} '{entry.name}'", library, extra) from error
        else:
            problem = f"needs the module '{missing}', which is not installed."
    except (ImportError, AttributeError) as error:
        problem = f"cannot be imported: {error}."
    raise BrokenPlugin(what, entry.name, _package(entry), problem)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else entry.module.partition(".")[0]
