"""A page's graph from a HAR 1.2 file, as browsers save it and WebPageTest writes it.

An object's parent is, of these, the first that is known: the redirect that led to it; what the browser says
initiated it (`_initiator`); the object that ended last before it was requested; the document. A parent's
processing time is the shortest wait of its children behind its end: no child waits longer behind its parent
than it did in the browser. A child that was requested while its parent still arrived waits for the end here.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field, model_validator

from fecbench.hints import nearest
from fecbench.runners.refusal import Refusal
from fecbench.runners.workloads.json_file import checked, read_json
from fecbench.runners.workloads.page.graph import LONGEST_PROCESSING_MS, MOST_OBJECTS, Page

LONGEST_NAME = 60
_STATUSES, _OK = range(100, 600), 200
_SHOWN = 6


def _a_url(text: str) -> str:
    try:
        urlsplit(text)
    except ValueError as error:
        raise ValueError(f"is no URL: {error}") from None
    return text


Url = Annotated[str, AfterValidator(_a_url)]


Bytes = Annotated[int, BeforeValidator(lambda size: -1 if size is None else size)]
"""A size; some browsers write null for one that they do not know."""


class Frame(BaseModel):
    url: str = ""


class Stack(BaseModel):
    callFrames: list[Frame] | None = None
    parent: "Stack | None" = None
    """The cause of this one, such as a timer."""

    @property
    def urls(self) -> list[str]:
        above = self.parent.urls if self.parent else []
        return [frame.url for frame in self.callFrames or []] + above


class Initiator(BaseModel):
    """The cause of a request, as Chromium and its kin add it. WebPageTest writes a URL alone."""

    url: str | None = None
    stack: Stack | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_url(cls, initiator: Any) -> Any:
        return {"url": initiator} if isinstance(initiator, str) else initiator

    @property
    def urls(self) -> list[str]:
        return [url for url in (self.url, *(self.stack.urls if self.stack else ())) if url]


class Request(BaseModel):
    url: Url


class Content(BaseModel):
    size: Bytes = -1
    compression: int | None = None
    """The bytes that were saved by packing it; None: it is not known whether it was packed."""

    @property
    def packed_bytes(self) -> int:
        return max(-1, self.size - (self.compression or 0))


class Response(BaseModel):
    status: int
    redirectURL: Url | None = None
    bodySize: Bytes = -1
    transferSize: Annotated[Bytes, Field(alias="_transferSize")] = -1
    content: Content = Content()


class Entry(BaseModel):
    startedDateTime: AwareDatetime
    time: Annotated[float, Field(ge=0, le=86_400_000, allow_inf_nan=False)]  # ms
    request: Request
    response: Response
    initiator: Annotated[Initiator | None, Field(alias="_initiator")] = None
    pageref: str | None = None

    @cached_property
    def ended(self) -> datetime:
        return self.startedDateTime + timedelta(milliseconds=self.time)

    @cached_property
    def redirects_to(self) -> str:
        """A URL; empty when it is no redirect."""
        to = self.response.redirectURL
        return urljoin(self.request.url, to) if to else ""

    @property
    def size_bytes(self) -> int:
        """Size of the body as it was transferred, or the nearest known size; −1 if none is known."""
        sizes = (self.response.bodySize, self.response.transferSize, self.response.content.packed_bytes)
        return next((size for size in sizes if size >= 0), -1)

    @property
    def is_of_content(self) -> bool:
        """Whether its size is that of the content alone, which may have been transferred packed."""
        response = self.response
        is_known = response.content.compression is not None or response.content.size == 0
        return not is_known and max(response.bodySize, response.transferSize) < 0


def _came(entry: Any) -> Any:
    """An entry as it is, or None if it did not come over the network: it failed, or was in a cache."""
    if not isinstance(entry, dict):
        return entry
    request, response = entry.get("request"), entry.get("response")
    if not isinstance(request, dict) or not isinstance(response, dict):
        return entry
    url, status = request.get("url"), response.get("status")
    if isinstance(url, str) and not url.startswith(("http://", "https://")):
        return None
    if status is None or (isinstance(status, int) and status not in _STATUSES) or entry.get("_fromCache"):
        return None
    content = response.get("content")
    size = content.get("size") if isinstance(content, dict) else None
    # Firefox has no word for its cache: nothing was transferred, and there is a content.
    nothing = status == _OK and response.get("bodySize") == 0 and not response.get("_transferSize")
    return None if nothing and isinstance(size, int) and size > 0 else entry


class Log(BaseModel):
    entries: list[Annotated[Entry | None, BeforeValidator(_came)]]


class Har(BaseModel):
    log: Log


def page_from(path: Path, pageref: str | None = None, warn: Callable[[str], None] = lambda _: None) -> Page:
    """The page in a HAR file; `pageref` chooses of several. Raises Refusal.

    `warn` gets a sentence if the sizes of some objects are those of their contents.
    """
    log = checked(Har, read_json(path), str(path)).log
    entries = _transferred([entry for entry in log.entries if entry is not None], path, pageref)
    if of_content := sum(entry.is_of_content for entry in entries):
        warn(
            f"{of_content} of {len(entries)} objects have the size of their content, for {path.name} does not"
            " say what was transferred; packed, it was less"
        )
    names = [f"{place}-{_short(entry.request.url)}" for place, entry in enumerate(entries)]
    parents = [_parent_of(place, entries) for place in range(len(entries))]
    processing_ms = _processing_ms(entries, parents)
    objects = [
        {
            "name": name,
            "origin": _origin(entry.request.url),
            "size_bytes": entry.size_bytes,
            "parents": [names[parent] for parent in parents[place]],
            "processing_ms": processing_ms[place],
        }
        for place, (name, entry) in enumerate(zip(names, entries, strict=True))
    ]
    title = f"{_origin(entries[0].request.url)} in {_printable(path.name)}"
    made_by = f"fecbench page from-har {_printable(path.name)}"
    return checked(Page, {"title": title, "made_by": made_by, "objects": objects}, str(path))


def _transferred(entries: list[Entry], path: Path, pageref: str | None) -> list[Entry]:
    """The objects of one page, in the order of the requests. Entries of no page belong to the only one."""
    pages = sorted({entry.pageref for entry in entries if entry.pageref is not None})
    if pageref is not None and pageref not in pages:
        raise Refusal(f"{path}: has no page {_printable(pageref)!r}; {nearest(pageref, pages)}")
    if pageref is None and len(pages) > 1:
        listed = ", ".join(_printable(page) for page in pages[:_SHOWN]) + (
            ", …" if len(pages) > _SHOWN else ""
        )
        raise Refusal(f"{path}: holds several pages: choose one of them by --page ({listed})")
    of_page = [entry for entry in entries if pageref is None or entry.pageref == pageref]
    for entry in of_page:
        if entry.size_bytes < 0:
            raise Refusal(f"{path}: {entry.request.url[:100]}: no size is known (bodySize, content.size)")
    if not 1 <= len(of_page) <= MOST_OBJECTS:
        raise Refusal(f"{path}: {len(of_page)} objects were transferred; a page has 1 to {MOST_OBJECTS}")
    return sorted(of_page, key=lambda entry: entry.startedDateTime)


def _parent_of(place: int, entries: Sequence[Entry]) -> list[int]:
    """The place of the entry's parent; none for the first."""
    entry, before = entries[place], range(place)
    redirects = [i for i in before if entries[i].redirects_to == entry.request.url]
    urls = entry.initiator.urls if entry.initiator else []
    initiators = [i for i in before if entries[i].request.url in urls]
    parents_before = [i for i in before if entries[i].ended <= entry.startedDateTime]
    if redirects or initiators:
        return [(redirects or initiators)[-1]]
    if parents_before:
        return [max(parents_before, key=lambda i: entries[i].ended)]
    return [] if place == 0 else [0]


def _processing_ms(entries: Sequence[Entry], parents: Sequence[list[int]]) -> list[float]:
    shortest: dict[int, float] = {}
    for place, entry in enumerate(entries):
        for parent in parents[place]:
            wait_ms = (entry.startedDateTime - entries[parent].ended) / timedelta(milliseconds=1)
            shortest[parent] = min(shortest.get(parent, LONGEST_PROCESSING_MS), max(wait_ms, 0.0))
    return [round(shortest.get(place, 0.0), 3) for place in range(len(entries))]


def _origin(url: str) -> str:
    return _printable(urlsplit(url).netloc)


def _short(url: str) -> str:
    """Return the last part of the path: enough to distinguish objects, and nothing of a query."""
    return _printable(urlsplit(url).path.rstrip("/").rpartition("/")[2])


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())[:LONGEST_NAME] or "-"
