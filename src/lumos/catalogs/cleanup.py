"""What a catalog can do about what was only made to be referred to."""

from abc import ABC, abstractmethod


class Tidies(ABC):
    """A catalog where writing an entry also makes what the entry refers to or lies in."""

    @abstractmethod
    def tidy(self) -> None:
        """Takes out what Lumos made for entries and nothing is in, refers to, or was said of."""
