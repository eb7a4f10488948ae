"""A web page as a graph: objects, each requested when its parents have arrived and been processed.

The form is that of quic-impls/README.md, workload `page`. This is the one place that refuses a wrong page:
unknown parents, cycles, names given twice, sizes and times out of range, nothing at all.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fecbench.hints import nearest
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.workloads.json_file import Line, checked, find_document, read_json

MOST_OBJECTS = 10_000
LARGEST_OBJECT_BYTES = 2**40
LONGEST_PROCESSING_MS = 3_600_000


class PageObject(BaseModel):
    """An object of a page, which one request fetches."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Line
    origin: Line
    size_bytes: Annotated[int, Field(ge=0, le=LARGEST_OBJECT_BYTES)]
    parents: list[str] = []
    processing_ms: Annotated[int | float, Field(ge=0, le=LONGEST_PROCESSING_MS, allow_inf_nan=False)] = 0


class Page(BaseModel):
    """A page: where it comes from, and its objects."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    title: Line
    made_by: Line
    objects: Annotated[list[PageObject], Field(min_length=1, max_length=MOST_OBJECTS)]

    @model_validator(mode="after")
    def _check_graph(self) -> Self:
        places = {item.name: place for place, item in enumerate(self.objects)}
        for place, item in enumerate(self.objects):
            if places[item.name] != place:
                raise ValueError(f"object {item.name!r} is given twice")
            for parent in item.parents:
                if parent not in places:
                    raise ValueError(f"object {item.name!r}: parent {parent!r}: {nearest(parent, places)}")
        try:
            _ = self.ordered
        except CycleError as error:
            cycle = " → ".join(error.args[1])
            raise ValueError(
                f"these objects wait for each other, so none is ever requested: {cycle}"
            ) from None
        return self

    @property
    def ordered(self) -> list[PageObject]:
        """The objects, each behind its parents: in the order of the file, if that is one."""
        places = {item.name: place for place, item in enumerate(self.objects)}
        if all(places[parent] < places[item.name] for item in self.objects for parent in item.parents):
            return self.objects
        order = TopologicalSorter({item.name: item.parents for item in self.objects}).static_order()
        return [self.objects[places[name]] for name in order]

    @property
    def size_bytes(self) -> int:
        """Size of all objects together."""
        return sum(item.size_bytes for item in self.objects)

    @property
    def origins(self) -> list[str]:
        """Origins in the order of their first objects."""
        return list(dict.fromkeys(item.origin for item in self.objects))

    @property
    def depth(self) -> int:
        """The number of objects on the longest way from parent to child."""
        depths: dict[str, int] = {}
        for item in self.ordered:
            depths[item.name] = 1 + max((depths[parent] for parent in item.parents), default=0)
        return max(depths.values())

    def text(self) -> str:
        """The file's text: one object a line."""
        head = {"title": self.title, "made_by": self.made_by}
        lines = ",\n  ".join(json.dumps(item.model_dump(), ensure_ascii=False) for item in self.objects)
        return json.dumps(head, ensure_ascii=False, indent=1)[:-2] + f',\n "objects": [\n  {lines}\n ]\n}}\n'


def load(path: Path) -> Page:
    """The page in a file. Raises Refusal."""
    return checked(Page, read_json(path), str(path))


def stored(path: Path) -> dict[str, Any]:
    """A page as a campaign keeps it: the file's hash, and the graph that endpoints get, to be run again."""
    objects = [item.model_dump() for item in load(path).ordered]
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "graph": {"objects": objects}}


def demand(graph: Mapping[str, Any]) -> Demand:
    """Return the least that a load of a stored graph needs: all its objects, and its slowest chain of objects
    by processing time."""
    ways: dict[str, tuple[float, int]] = {}
    for item in graph["objects"]:  # parents stand before their children
        before_ms, before = max((ways[parent] for parent in item["parents"]), default=(0.0, 0))
        ways[item["name"]] = (before_ms + item["processing_ms"], before + 1)
    pauses_ms, round_trips = max(ways.values())
    size_bytes = sum(item["size_bytes"] for item in graph["objects"])
    return Demand(down_bytes=size_bytes, round_trips=round_trips, pauses_s=pauses_ms / 1e3)


def path_of(name: str, folders: Sequence[Path]) -> Path:
    """The file of the page of that name: in `pages` within these folders. Raises Refusal."""
    return find_document(folders, "page", name, "workload page: graph")
