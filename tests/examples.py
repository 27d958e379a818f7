"""How many examples a property test tries: a fifth in `make test`, all in `make test-full`."""

import os
from typing import Final

IS_FULL: Final = bool(os.environ.get("FULL_TESTS"))


def examples(most: int) -> int:
    """So many examples in the full run, and at least ten, if there are as many, in any."""
    return most if IS_FULL else min(most, max(10, most // 5))
