"""Writes the text of reminders (pure).

A recipient gets one message about many datasets. Paragraphs of a template with placeholders of a
dataset are repeated for each dataset; all other paragraphs are written once.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from lumos.config.settings import DATASET_PLACEHOLDERS, PLACEHOLDER
from lumos.notifications.messages import fill_template
from lumos.rendering.text import plural

# The number of datasets that one message describes; for the others, it only has their number.
MAX_DATASETS: Final = 20
_BLANK_LINES: Final = re.compile(r"\n(?:[ \t]*\n)+")
_CHECKBOX: Final = re.compile(r"^(\s*[-*] )\[ \]( (.+?)\s*)$", re.MULTILINE)

TITLE: Final = "Missing documentation in {dataset_count}"
TEMPLATE: Final = """\
Hi {owner_name},

documentation is missing.

{dataset_name}
{missing}

Add documentation: {catalog_url}

Datasets without documentation are tagged {deprecation_tag} after {deprecate_after_days} days."""


class DatasetText(NamedTuple):
    """The values of a dataset for a template; `has_field` checks for documentation fields."""

    values: Mapping[str, str]
    has_field: Callable[[str], bool]


def fill_reminder(template: str, values: Mapping[str, str], datasets: Sequence[DatasetText]) -> str:
    """Fill a template for one recipient, with the first datasets and the number of the others.

    Paragraphs whose values are all empty are omitted. In paragraphs about a dataset, a checkbox is
    ticked if its label names a documentation field that the dataset has: `- [ ] Owner`.
    """
    parts: list[str] = []
    paragraphs = _BLANK_LINES.split(template.strip("\n"))
    for is_of_dataset, group in groupby(paragraphs, _is_about_dataset):
        text = "\n\n".join(group)
        if not is_of_dataset:
            parts += [
                fill_template(each, values)
                for each in _BLANK_LINES.split(text)
                if _has_content(each, values)
            ]
            continue
        for each in datasets[:MAX_DATASETS]:
            filled = fill_template(text, {**values, **each.values})
            parts.append(_tick_boxes(filled, each.has_field))
        if (more := len(datasets) - MAX_DATASETS) > 0:
            parts.append(f"and {plural(more, 'more dataset', 'more datasets')}")
    return "\n\n".join(part for part in parts if part)


def bullet_list(items: Sequence[str], limit: int = MAX_DATASETS) -> str:
    """A line for each of the first items, and a line with the number of the others."""
    lines = [f"- {each}" for each in items[:limit]]
    if (more := len(items) - len(lines)) > 0:
        lines.append(f"- and {more:,} more")
    return "\n".join(lines)


def _is_about_dataset(paragraph: str) -> bool:
    return any(name in DATASET_PLACEHOLDERS for name in _placeholders(paragraph))


def _placeholders(text: str) -> Iterator[str]:
    return (match.group(2) for match in PLACEHOLDER.finditer(text) if match.group(2))


def _has_content(paragraph: str, values: Mapping[str, str]) -> bool:
    """Whether a paragraph has no placeholders, or any with a value that is not empty."""
    names = list(_placeholders(paragraph))
    return not names or any(values[name] for name in names)


def _tick_boxes(text: str, has_field: Callable[[str], bool]) -> str:
    def tick(match: re.Match[str]) -> str:
        field = match.group(3).casefold().replace(" ", "_")
        return f"{match.group(1)}[{'x' if has_field(field) else ' '}]{match.group(2)}"

    return _CHECKBOX.sub(tick, text)
