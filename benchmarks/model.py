"""How quickly the model is decoded: 20,000 datasets of 25 fields, against other libraries.

Each library decodes the same bytes into values of its own in a process of its own, so that the
memory figures do not mix. A library that is not installed is left out.
"""

import json
import subprocess
import sys
from typing import Any

DATASETS = 20_000
FIELDS = 25

_MAKE = f"""
import json
fields = [{{"name": f"column_{{n}}", "type": "STRING" if n % 3 else "INT64", "nullable": n % 5 != 0,
           "description": f"what column {{n}} means"}} for n in range({FIELDS})]
data = json.dumps([{{"urn": f"lumos://s3/lake/t{{d}}", "name": f"t{{d}}", "platform": "s3",
                    "schema": {{"fields": fields}}}} for d in range({DATASETS})]).encode()
"""
_LUMOS = """
from lumos.model.json_codec import from_json
from lumos.model.dataset import Dataset
def decode(): return from_json(data, list[Dataset])
"""
_PYDANTIC = """
from pydantic import BaseModel, ConfigDict, Field as F, TypeAdapter
class Field(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    type: str
    nullable: bool = True
    description: str | None = None
class Schema(BaseModel):
    model_config = ConfigDict(frozen=True)
    fields: tuple[Field, ...]
class Dataset(BaseModel):
    model_config = ConfigDict(frozen=True)
    urn: str
    name: str
    platform: str
    shape: Schema = F(alias="schema")
adapter = TypeAdapter(list[Dataset])
def decode(): return adapter.validate_json(data)
"""
_DATACLASSES = """
from dataclasses import dataclass
@dataclass(frozen=True)
class Field:
    name: str
    type: str
    nullable: bool = True
    description: str | None = None
@dataclass(frozen=True)
class Schema:
    fields: tuple
@dataclass(frozen=True)
class Dataset:
    urn: str
    name: str
    platform: str
    schema: Schema
def decode():
    return [Dataset(d["urn"], d["name"], d["platform"],
                    Schema(tuple(Field(**f) for f in d["schema"]["fields"])))
            for d in json.loads(data)]
"""
_MEASURE = """
import resource, time
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, started = peak(), time.perf_counter()
values = decode()
print(json.dumps({"seconds": round(time.perf_counter() - started, 3),
                  "megabytes": round(peak() - before)}))
"""


def measure() -> dict[str, Any]:
    """Seconds and megabytes of each library, and how many times Lumos's they are."""
    figures: dict[str, Any] = {"datasets": DATASETS, "fields_each": FIELDS}
    for name, library in (
        ("lumos (msgspec)", _LUMOS),
        ("pydantic", _PYDANTIC),
        ("dataclasses", _DATACLASSES),
    ):
        done = subprocess.run(
            [sys.executable, "-c", _MAKE + library + _MEASURE],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            figures[name] = json.loads(done.stdout)
        else:
            figures[name] = done.stderr.strip().splitlines()[-1]
    return figures
