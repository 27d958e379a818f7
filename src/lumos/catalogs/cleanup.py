"""Deletes entities that were only created because an entry refers to them."""

from abc import ABC, abstractmethod


class CleansUp(ABC):
    """A catalog where writing an entry also creates the entities that it refers to."""

    @abstractmethod
    def clean_up(self) -> None:
        """Delete entities that Lumos created and that are empty, unreferenced and unedited."""
