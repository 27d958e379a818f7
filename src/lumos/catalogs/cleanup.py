"""Deletes entities that were only created because an entry refers to them."""

from abc import ABC, abstractmethod

from lumos.catalogs.former_names import AcceptsFormerNames


class CleansUp(AcceptsFormerNames, ABC):
    """A catalog where writing an entry also creates the entities that it refers to."""

    @abstractmethod
    def clean_up(self) -> None:
        """Delete entities that Lumos created and that are empty, unreferenced and unedited."""


# The former name.
Tidies = CleansUp
