"""Accepts the former names of the adapter interface, so that older adapters keep working."""

import warnings
from inspect import signature
from typing import Any, Final

TYPES: Final = {
    "FailedEntry": "Refused",
    "AspectStorage": "How",
    "CatalogItem": "Item",
    "SeparatesUserEdits": "KnowsPeople",
    "StoredInFile": "KeptInFile",
    "StoresItems": "HoldsItems",
}
_MEMBERS: Final = {
    "adjust_for_merge": "sides",
    "as_stored": "as_held",
    "batch_size": "most",
    "clean_up": "tidy",
    "item_as_stored": "item_as_held",
}


class AcceptsFormerNames:
    """An ability whose members were renamed; subclasses may still define the former names."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        members = vars(cls)
        for name, former in _MEMBERS.items():
            if former in members and name not in members:
                _warn(f"{cls.__qualname__}.{former}", name)
                setattr(cls, name, members[former])
        put_many = members.get("put_many")
        if put_many is not None and "over" in signature(put_many).parameters:
            _warn(f"The parameter 'over' of {cls.__qualname__}.put_many", "current")
            cls.put_many = lambda self, entries, *, current: put_many(  # type: ignore[attr-defined]
                self, entries, over=current
            )


def find_type(former: str, types: dict[str, Any]) -> Any:
    """The type with a former name; raises AttributeError if there is none."""
    for name, other in TYPES.items():
        if other == former:
            _warn(former, name)
            return types[name]
    raise AttributeError(f"module 'lumos.catalogs' has no attribute '{former}'")


def _warn(former: str, name: str) -> None:
    warnings.warn(f"{former} is now called {name}.", DeprecationWarning, stacklevel=3)
