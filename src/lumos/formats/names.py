"""Names for columns that have none, or the same one twice."""

from collections.abc import Sequence


def distinct_names(names: Sequence[str]) -> list[str]:
    """A name for every column; missing and repeated ones get their place as a suffix."""
    taken = set(names)
    used: set[str] = set()
    distinct: list[str] = []
    for place, given in enumerate(names, start=1):
        name = given or f"column_{place}"
        while name in used or (name != given and name in taken):
            name = f"{name}_{place}"
        used.add(name)
        distinct.append(name)
    return distinct
