"""Deleting entities that were only created to be referred to."""

from abc import ABC, abstractmethod


class Tidies(ABC):
    """A catalog where writing an entry also creates what it refers to or is part of."""

    @abstractmethod
    def tidy(self) -> None:
        """Delete entities that Lumos created and that are empty, unreferenced and unedited."""
