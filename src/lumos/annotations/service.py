"""All that people say of datasets, under one roof."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

from lumos.annotations.owners import Owners
from lumos.annotations.reports import MissingDocsReport, WordsReport
from lumos.annotations.selection import is_dataset
from lumos.annotations.verbs import Docs, Labels, Properties, Terms
from lumos.annotations.writer import AnnotationWriter
from lumos.config import Settings
from lumos.lineage.reported_lineage import ReportedAnnotations


class Annotations:
    """Owners, tags, documentation, properties, terms and compliance labels of one store."""

    def __init__(self, settings: Settings, scribe: AnnotationWriter) -> None:
        self._settings = settings
        self._scribe = scribe

    @cached_property
    def owners(self) -> Owners:
        """Users and groups, and what they answer for."""
        return Owners(self._settings, self._scribe)

    @cached_property
    def tags(self) -> Labels:
        """Free labels."""
        return Labels(self._scribe, "tag", noun="tag")

    @cached_property
    def compliance(self) -> Labels:
        """Labels that rules of law hang on, such as GDPR."""
        return Labels(self._scribe, "compliance", noun="compliance label")

    @cached_property
    def docs(self) -> Docs:
        """Descriptions, business context and domains."""
        return Docs(self._scribe)

    @cached_property
    def properties(self) -> Properties:
        """Free-form properties."""
        return Properties(self._scribe)

    @cached_property
    def terms(self) -> Terms:
        """The glossary, and what is about its terms."""
        return Terms(self._scribe)

    def is_dataset(self, text: str) -> bool:
        """Whether a URN, a name or a pattern means a live dataset."""
        return is_dataset(self._scribe.store, text)

    def enrich(self, file: str | Path, *, dry_run: bool = False) -> WordsReport:
        """Brings the store to what a YAML file under review says.

        What an earlier version of the file said and this one does not is taken back.
        """
        from lumos.annotations.enrichment import enrich

        with self._scribe.herald.together():
            return enrich(self._settings, self._scribe, Path(file), dry_run=dry_run)

    def infer(self, *, dry_run: bool = False) -> WordsReport:
        """Describes what nobody described, from names, by the rules of the configuration."""
        from lumos.annotations.inference import infer

        with self._scribe.herald.together():
            return infer(self._settings, self._scribe, dry_run=dry_run)

    def missing(self, dataset: str | None = None) -> MissingDocsReport:
        """Which datasets lack documentation that the configuration requires."""
        from lumos.annotations.requirements import missing

        return missing(self._settings.documentation, self._scribe.store, dataset)

    def describe(
        self,
        reporter: str,
        described: Iterable[tuple[str, ReportedAnnotations]],
        *,
        dry_run: bool = False,
    ) -> WordsReport:
        """Makes what a reporter says of datasets, by URN, all that it says; people's words stay."""
        from lumos.annotations.reporters import apply_described

        with self._scribe.herald.together():
            return apply_described(self._scribe, reporter, described, dry_run=dry_run)
