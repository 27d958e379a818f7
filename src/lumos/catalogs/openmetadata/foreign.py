"""What came from DataHub, and has a place of its own in OpenMetadata.

A tag is a tag, a domain a domain, a flow a pipeline and a job one of its tasks: people see their
titles and words, and may change them. Everything else that DataHub says of them lies beside, as
does what people had made under the same name before: that is never touched.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from lumos.catalogs.datahub_model import flows
from lumos.catalogs.datahub_model.annotations import DataHubWords, words_of
from lumos.catalogs.datahub_model.labels import LabelName, label_of
from lumos.catalogs.openmetadata import descriptions
from lumos.catalogs.openmetadata.entity_kinds import THINGS, says_more, says_nothing
from lumos.catalogs.openmetadata.extras import ABOUT
from lumos.catalogs.openmetadata.labels import OpenMetadataLabels
from lumos.catalogs.openmetadata.names import joined, shortened, spelled
from lumos.catalogs.openmetadata.patches import guard
from lumos.catalogs.openmetadata.server import Server
from lumos.catalogs.openmetadata.texts import shown_text
from lumos.model.catalog import CatalogEntity

_SERVICES: Final = "services/pipelineServices"
_USUAL_CLUSTER: Final = "PROD"
MadeFor: TypeAlias = Callable[[str], str | None]
"""The id of the entity that was made to show something of a URN."""
_ADDRESS: Final = re.compile(r"https?://[!-~]+")
# Types of pipeline services as of OpenMetadata 1.4; any other orchestrator is a custom one.
_TYPES: Final = {
    "airflow": "Airflow", "glue": "GluePipeline", "airbyte": "Airbyte", "fivetran": "Fivetran",
    "dagster": "Dagster", "nifi": "Nifi", "databricks": "DatabricksPipeline", "spark": "Spark",
    "kafka-connect": "KafkaConnect",
}  # fmt: skip


class ForeignView(ABC):
    """How something is shown."""

    type: str
    """The type of the entity that is all for it, or holds it."""

    @abstractmethod
    def found(self, id: str | None = None) -> Any:
        """What shows it, if that is there: the entity with that id where it is known."""

    def home(self, entity: Mapping[str, Any]) -> Mapping[str, Any]:
        """The entity that is all for it, or holds it."""
        return entity

    def is_free(self) -> bool:
        """Whether it may be shown: people have nothing of its name."""
        found = self.found()
        return found is None or self.is_bare(found)

    @abstractmethod
    def read(self, entity: Mapping[str, Any]) -> DataHubWords:
        """What people read there."""

    @abstractmethod
    def is_bare(self, entity: Mapping[str, Any]) -> bool:
        """Whether it is there only because something refers to it, and says nothing yet."""

    @abstractmethod
    def written(self, item: CatalogEntity, entity: Any) -> Any:
        """What shows it once it says the words of an item."""

    @abstractmethod
    def take_out(self, entity: Any) -> None:
        """Takes out what was made to show it, or its words where others use it."""


class Paged:
    """Tags, domains and pipelines of a server, read page by page when the first is asked for."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._known: dict[str, dict[str, Any]] = {}

    def named(self, route: str, fqn: str, **query: Any) -> Any:
        if route not in self._known:
            pages = self._server.pages(route, include="non-deleted", **query)
            self._known[route] = {each["fullyQualifiedName"]: each for each in pages}
        return self._known[route].get(fqn)


def view_of(
    urn: str, server: Any, labels: OpenMetadataLabels, made_for: MadeFor
) -> ForeignView | None:
    """How something from DataHub is shown, if it is shown at all."""
    if (label := label_of(urn)) is not None:
        return _Label(label, server, labels)
    if (flow := flows.flow_of(urn)) is not None:
        return _Pipeline(flow, server)
    if (job := flows.job_of(urn)) is not None:
        return _Task(job, server, made_for)
    return None


class _Label(ForeignView):
    """A tag or a domain."""

    def __init__(self, label: LabelName, server: Server, labels: OpenMetadataLabels) -> None:
        self._label = label
        self._server = server
        self._labels = labels
        self.type = label.kind
        self._thing = THINGS[label.kind]
        self._route = self._thing.route

    def found(self, id: str | None = None) -> Any:
        for there in self._labels.known_labels(self._route, self._label.name):
            if id is None or there["id"] == id:
                return there
        return None

    def read(self, entity: Mapping[str, Any]) -> DataHubWords:
        return DataHubWords(
            title=entity.get("displayName") or None,
            description=_description(entity),
            colour=(entity.get("style") or {}).get("color") or None,
        )

    def is_bare(self, entity: Mapping[str, Any]) -> bool:
        if entity.get("provider") == "system" or entity.get("parent"):
            return False
        if self.read(entity) != DataHubWords():
            return False
        # People may have said more of it than words.
        fqn = entity["fullyQualifiedName"]
        whole = self._server.named(self._route, fqn, fields=self._thing.asked)
        return whole is not None and says_nothing(self._thing, whole)

    def written(self, item: CatalogEntity, entity: Any) -> Any:
        said = words_of(item)
        if self._label.kind == "tag":
            self._labels.ensure(tags=[self._label.name])
        else:
            self._labels.ensure(domains=[self._label.name])
        entity = entity or self.found()
        id = entity["id"]
        title = _title(said, self._label.name)
        body = self._body(entity)
        if (entity.get("displayName") or None) != title or self.is_bare(entity):
            # A bot may not patch the names that people see.
            named = {"displayName": title} if title else {}
            style = {"style": {"color": shown_text(said.colour)}} if said.colour else {}
            self._server.put(self._route, body | named | style | _sent(said))
            entity = self.found(id)
        operations = _described(entity, said)
        colour = shown_text(said.colour) if said.colour else None
        if self.read(entity).colour != colour:
            old = {**(entity.get("style") or {}), "color": colour}
            value = {key: each for key, each in old.items() if each is not None}
            operations.append({"op": "add", "path": "/style", "value": value})
        return self._patched(entity, operations)

    def take_out(self, entity: Any) -> None:
        path = f"{self._route}/{entity['id']}"
        if self._label.kind == "tag":
            told = self._server.get(path, fields="usageCount") or {}
            if told.get("usageCount") == 0:
                self._server.delete(path, hardDelete=True)
                self._labels.forget_tag(self._label.name)
                return
        if entity.get("displayName"):
            self._server.put(self._route, self._body(entity) | {"description": ""})
            entity = self.found(entity["id"])
        operations = _described(entity, DataHubWords())
        if entity.get("style"):
            operations.append({"op": "remove", "path": "/style"})
        self._patched(entity, operations)

    def _body(self, entity: Mapping[str, Any]) -> dict[str, Any]:
        """What has to be said of an entity with every PUT."""
        if self._label.kind == "tag":
            home = entity["classification"]["fullyQualifiedName"]
            return {"name": entity["name"], "classification": home}
        return {"name": entity["name"], "domainType": entity["domainType"]}

    def _patched(self, entity: Any, operations: list[dict[str, Any]]) -> Any:
        if not operations:
            return entity
        self._server.patch(f"{self._route}/{entity['id']}", [*guard(entity), *operations])
        return self.found(entity["id"])


class _Pipeline(ForeignView):
    """A flow."""

    type = "pipeline"

    def __init__(self, flow: flows.Flow, server: Server) -> None:
        self._flow = flow
        self._server = server
        usual = flow.cluster.upper() == _USUAL_CLUSTER
        orchestrator = flow.orchestrator if usual else f"{flow.orchestrator}?env={flow.cluster}"
        self._service = shortened(spelled(orchestrator))
        self._name = shortened(spelled(flow.id))

    def found(self, id: str | None = None) -> Any:
        fqn = joined(self._service, self._name)
        there = self._server.named("pipelines", fqn, fields=THINGS[self.type].asked)
        return there if there is not None and id in (None, there["id"]) else None

    def read(self, entity: Mapping[str, Any]) -> DataHubWords:
        return _reported(entity)

    def is_bare(self, entity: Mapping[str, Any]) -> bool:
        return _is_bare(entity)

    def written(self, item: CatalogEntity, entity: Any) -> Any:
        said = words_of(item)
        title = _title(said, self._name)
        if entity is None or self.is_bare(entity) or (entity.get("displayName") or None) != title:
            body = _named(title) | _linked(said)
            if entity is None:
                body |= _sent(said)
            entity = self.made(body, entity)
        operations = _described(entity, said) + _linking(entity, said, "/sourceUrl")
        if operations:
            path = f"pipelines/{entity['id']}"
            self._server.patch(path, [*guard(entity), *operations])
            entity = self.found()
        return entity

    def take_out(self, entity: Any) -> None:
        if self.is_gone(entity, entity.get("tasks") or ()):
            return
        # Jobs are in it, or something that people said, which stays.
        if entity.get("displayName") or entity.get("sourceUrl"):
            entity = self.made({}, entity)
        if entity.get("description") != ABOUT:
            operation = {"op": "add", "path": "/description", "value": ABOUT}
            self._server.patch(f"pipelines/{entity['id']}", [*guard(entity), operation])

    def is_gone(self, entity: Any, tasks: Iterable[Any]) -> bool:
        """Takes out a pipeline that would have these tasks, if nothing else is said in it."""
        if says_more(THINGS[self.type], entity) or not all(map(_is_bare, tasks)):
            return False
        self._server.delete(f"pipelines/{entity['id']}", hardDelete=True)
        return True

    def made(self, said: dict[str, Any], entity: Any) -> Any:
        """The pipeline, made or said anew with the tasks that it has."""
        if self._server.named(_SERVICES, joined(self._service)) is None:
            type = _TYPES.get(self._flow.orchestrator, "CustomPipeline")
            body = {"name": self._service, "serviceType": type, "description": ABOUT}
            self._server.put(_SERVICES, body)
        pipeline = {"name": self._name, "service": joined(self._service), **said}
        if entity is not None:
            kept = ("scheduleInterval", "concurrency", "pipelineLocation", "startDate")
            pipeline = {key: entity[key] for key in kept if key in entity} | pipeline
            pipeline["tasks"] = [_as_sent(task) for task in entity.get("tasks") or ()]
        self._server.put("pipelines", pipeline)
        return self.found()


class _Task(ForeignView):
    """A job of a flow; `pipeline` in what shows it is all of the flow."""

    type = "pipeline"

    def __init__(self, job: flows.JobName, server: Server, made_for: MadeFor) -> None:
        self._job = job
        self._server = server
        self._made_for = made_for
        self._flow = _Pipeline(job.flow, server)
        self._name = spelled(job.id)

    def found(self, id: str | None = None) -> Any:
        pipeline = self._flow.found(id)
        task = None if pipeline is None else _task_of(pipeline, self._name)
        return None if task is None else {**task, "pipeline": pipeline}

    def home(self, entity: Mapping[str, Any]) -> Mapping[str, Any]:
        home: Mapping[str, Any] = entity["pipeline"]
        return home

    def is_free(self) -> bool:
        pipeline = self._flow.found()
        if pipeline is None or self._flow.is_bare(pipeline):
            return True
        return bool(pipeline["id"] == self._made_for(self._job.flow.urn))

    def read(self, entity: Mapping[str, Any]) -> DataHubWords:
        # The server takes only descriptions of whole entities for HTML.
        return msgspec.structs.replace(
            _reported(entity), description=entity.get("description") or None
        )

    def is_bare(self, entity: Mapping[str, Any]) -> bool:
        return _is_bare(entity)

    def written(self, item: CatalogEntity, entity: Any) -> Any:
        said = words_of(item)
        pipeline = entity["pipeline"] if entity else self._flow.found()
        if pipeline is None:
            pipeline = self._flow.made({"description": ABOUT}, None)
        tasks = [dict(task) for task in pipeline.get("tasks") or ()]
        self._say(_task_in(tasks, self._name), said, item)
        for name in map(spelled, flows.before(item, self._job)):
            there = _task_of({"tasks": tasks}, name)
            earlier = there or _task_in(tasks, name) | {"description": ABOUT}
            earlier["downstreamTasks"] = [
                *dict.fromkeys((*(earlier.get("downstreamTasks") or ()), self._name))
            ]
            if there is None:
                tasks[-1] = earlier
        self._put(pipeline, tasks)
        return self.found()

    def take_out(self, entity: Any) -> None:
        pipeline = entity["pipeline"]
        tasks = [dict(task) for task in pipeline.get("tasks") or () if task["name"] != self._name]
        for task in tasks:
            following = task.get("downstreamTasks") or ()
            task["downstreamTasks"] = [name for name in following if name != self._name]
        # Where nothing but jobs was shown by it, it goes with the last of them.
        if not self._flow.is_bare(pipeline) or not self._flow.is_gone(pipeline, tasks):
            self._put(pipeline, tasks)

    def _say(self, task: dict[str, Any], said: DataHubWords, item: CatalogEntity) -> None:
        type = flows.type_of_job(item)
        facts = {
            "displayName": _title(said, self._name),
            "description": descriptions.kept(said.description or "") or None,
            "sourceUrl": _linked(said).get("sourceUrl"),
            "taskType": None if type is None else shown_text(type),
        }
        task.update(facts)
        for key in [key for key, value in task.items() if value is None]:
            del task[key]

    def _put(self, pipeline: Any, tasks: list[dict[str, Any]]) -> None:
        sent = [_as_sent(task) for task in tasks]
        if sent == [_as_sent(task) for task in pipeline.get("tasks") or ()]:
            return
        operations = [*guard(pipeline), {"op": "add", "path": "/tasks", "value": sent}]
        self._server.patch(f"pipelines/{pipeline['id']}", operations)


def _is_bare(entity: Mapping[str, Any]) -> bool:
    return entity.get("description") == ABOUT


def _task_of(pipeline: Mapping[str, Any], name: str) -> Any:
    return next((task for task in pipeline.get("tasks") or () if task["name"] == name), None)


def _task_in(tasks: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """The task of that name, which is there from now on."""
    task: dict[str, Any] | None = _task_of({"tasks": tasks}, name)
    if task is None:
        task = {"name": name}
        tasks.append(task)
    return task


def _as_sent(task: Mapping[str, Any]) -> dict[str, Any]:
    """A task as it may be said again."""
    empty: tuple[Any, ...] = (None, [])
    return {
        key: value
        for key, value in task.items()
        if key != "fullyQualifiedName" and value not in empty
    }


def _reported(entity: Mapping[str, Any]) -> DataHubWords:
    return DataHubWords(
        title=entity.get("displayName") or None,
        description=_description(entity),
        url=entity.get("sourceUrl") or None,
    )


def _description(entity: Mapping[str, Any]) -> str | None:
    return descriptions.decoded(entity.get("description") or "") or None


def _title(said: DataHubWords, name: str) -> str | None:
    """What is shown instead of a name, where that is something else."""
    return shown_text(said.title) if said.title and said.title != name else None


def _named(title: str | None) -> dict[str, str]:
    return {"displayName": title} if title else {}


def _linked(said: DataHubWords) -> dict[str, str]:
    return {"sourceUrl": said.url} if said.url and _ADDRESS.fullmatch(said.url) else {}


def _sent(said: DataHubWords) -> dict[str, str]:
    return {"description": descriptions.encoded(descriptions.kept(said.description or ""))}


def _described(entity: Mapping[str, Any], said: DataHubWords) -> list[dict[str, Any]]:
    text = _sent(said)["description"]
    if (entity.get("description") or "") == text:
        return []
    return [{"op": "add", "path": "/description", "value": text}]


def _linking(entity: Mapping[str, Any], said: DataHubWords, path: str) -> list[dict[str, Any]]:
    wanted, there = _linked(said).get("sourceUrl"), entity.get("sourceUrl") or None
    if wanted == there:
        return []
    if wanted is None:
        return [{"op": "remove", "path": path}]
    return [{"op": "add", "path": path, "value": wanted}]
