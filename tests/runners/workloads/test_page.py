"""Web pages: what is no page is refused, and a page is what a browser recorded or what a seed makes."""

import gzip
import json
import re
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench import designs
from fecbench.checkout import REPOSITORY
from fecbench.runners import workloads
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.refusal import Refusal
from fecbench.runners.tasks.outcome import EndpointOutcome
from fecbench.runners.workloads import json_file
from fecbench.runners.workloads.page import graph as page_graph
from fecbench.runners.workloads.page import har, photo_site
from fecbench.runners.workloads.page.graph import Page
from fecbench.runners.workloads.workload import Impossible
from tests.support.designs import one_of, variant
from tests.support.experiments import experiment_of
from tests.support.refusals import refusal_of
from tests.support.tasks import pair

CATALOG = REPOSITORY / "designs" / "catalog"


def an_object(name: str, *parents: str, **others: Any) -> dict[str, Any]:
    return {"name": name, "origin": "www", "size_bytes": 1, "parents": list(parents), **others}


def a_page(*objects: dict[str, Any]) -> dict[str, Any]:
    return {"title": "a page", "made_by": "hand", "objects": list(objects)}


WRONG: list[tuple[object, str]] = [
    (a_page(), "objects"),
    ({"title": "a", "made_by": "b"}, "objects: is missing"),
    (a_page(an_object("a"), an_object("b", "aa")), "parent 'aa': did you mean 'a'?"),
    (a_page(an_object("a", "a")), "a → a"),
    (a_page(an_object("a"), an_object("b", "c", "a"), an_object("c", "b")), "wait for each other"),
    (a_page(an_object("a"), an_object("a")), "'a' is given twice"),
    (a_page(an_object("a", size_bytes=-1)), "objects[0].size_bytes = -1"),
    (a_page(an_object("a", size_bytes=1.5)), "objects[0].size_bytes = 1.5"),
    (a_page(an_object("a", processing_ms=-1)), "objects[0].processing_ms = -1"),
    (a_page(an_object("a", processing_ms=float("nan"))), "objects[0].processing_ms"),
    (a_page(an_object("a", origin="")), "objects[0].origin"),
    (a_page(an_object("a\nb")), "objects[0].name"),
    (a_page(an_object("a", weight=1)), "objects[0].weight"),
    ([], "valid dictionary"),
]


def test_what_is_no_page_is_refused_in_one_line() -> None:
    for document, message in WRONG:
        line = refusal_of(json_file.checked, Page, document, "page.json")
        assert message in line and len(line) < 400


@st.composite
def pages(draw: st.DrawFn) -> Page:
    """Pages in which any object may stand before its parents."""
    count = draw(st.integers(1, 12))
    objects = [
        an_object(
            f"o{i}",
            *(f"o{parent}" for parent in draw(st.sets(st.integers(0, i - 1), max_size=3)) if i),
            size_bytes=draw(st.integers(0, 10**6)),
            processing_ms=draw(st.floats(0, 1000)),
        )
        if i
        else an_object("o0")
        for i in range(count)
    ]
    return Page.model_validate(a_page(*draw(st.permutations(objects))))


@given(pages())
def test_endpoints_get_every_object_once_and_behind_its_parents(page: Page) -> None:
    names: set[str] = set()
    for item in page.ordered:
        assert names.issuperset(item.parents)
        names.add(item.name)
    assert sorted(item.name for item in page.ordered) == sorted(item.name for item in page.objects)


@given(pages())
def test_a_page_is_read_as_it_was_written(page: Page) -> None:
    assert Page.model_validate(json.loads(page.text())) == page


@given(st.integers(0, 2**64 - 1), st.integers(photo_site.SMALLEST_BYTES, 10**8))
def test_a_photo_site_has_exactly_the_size_that_was_asked_for(seed: int, size_bytes: int) -> None:
    page = photo_site.make(seed, size_bytes, "test")
    assert page.size_bytes == size_bytes
    assert min(item.size_bytes for item in page.objects) >= photo_site.SMALLEST_OBJECT_BYTES
    assert page == photo_site.make(seed, size_bytes, "test")
    assert [item.name for item in page.objects if not item.parents] == ["document"]
    assert len(page.origins) == 4


CLIENT = {"dct_s": 1.0, "first_object_s": 0.4, "objects": 2, "connections": 1}
COUNTERS = [
    ("one", {}, ""),
    ("one", {"first_object_s": 1.0}, ""),
    ("one", {"first_object_s": 1.01}, "first_object_s = 1.01: must be above 0 and at most 1, its dct_s"),
    ("one", {"first_object_s": 0.0}, "first_object_s = 0: must be above 0"),
    ("one", {"objects": 1}, "objects = 1: the page has 2"),
    ("one", {"connections": 2}, "connections = 2: the page has 1"),
    ("per_origin", {"connections": 2}, ""),
    ("per_origin", {}, "connections = 1: the page has 2"),
]


@pytest.mark.parametrize(("connections", "changes", "problem"), COUNTERS)
def test_what_a_client_counts_of_a_page_is_the_page_s(
    connections: str, changes: dict[str, float], problem: str
) -> None:
    objects = [an_object("a", origin="x"), an_object("b", "a", origin="y")]
    workload = {"name": "page", "connections": connections, "graph": {"objects": objects}}
    task = SimpleNamespace(pairs=[pair(workload=workload)])
    outcome = SimpleNamespace(endpoints={"client": EndpointOutcome(metrics={**CLIENT, **changes})})
    with pytest.raises(Impossible, match=problem) if problem else nullcontext():
        workloads.of(workload).measure(task, outcome)  # type: ignore[arg-type]


def test_another_seed_makes_another_page() -> None:
    assert photo_site.make(1, 10**6, "test") != photo_site.make(2, 10**6, "test")


@pytest.mark.parametrize("path", sorted((CATALOG / "pages").glob("*.json")), ids=lambda path: path.stem)
def test_every_page_of_the_catalogue_is_made_again_by_the_command_in_it(
    path: Path, fecbench_here: Any, tmp_path: Path
) -> None:
    program, *arguments = page_graph.load(path).made_by.split()
    assert program == "fecbench"
    assert fecbench_here(*arguments, "--output", tmp_path / "again.json").returncode == 0
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_the_catalogue_has_a_photo_site_of_about_2_mb() -> None:
    page = page_graph.load(CATALOG / "pages" / "photo-site.json")
    assert 1.8e6 < page.size_bytes < 2e6  # rQUIC §VI-C: less than 2 MB
    assert len(page.objects) > 50


def an_entry(url: str, at_ms: int, time_ms: float, size_bytes: int = 100, **others: Any) -> dict[str, Any]:
    response = {"status": 200, "redirectURL": "", "bodySize": size_bytes, "content": {"size": 9 * size_bytes}}
    seconds, ms = divmod(at_ms, 1000)
    return {
        "startedDateTime": f"2026-01-01T12:00:{seconds:02}.{ms:03}+01:00",
        "time": time_ms,
        "request": {"method": "GET", "url": url},
        "response": {**response, **others.pop("response", {})},
        **others,
    }


def a_har(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"log": {"version": "1.2", "creator": {"name": "a browser"}, "entries": list(entries)}}


@pytest.fixture
def page_of(tmp_path: Path):
    def page_of(document: object) -> Page:
        path = tmp_path / "recorded.har"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return har.page_from(path)

    return page_of


WWW, CDN = "https://www.example", "https://cdn.example:8443"


def parents_in(page: Page) -> dict[str, list[str]]:
    """Return the parents of each object, by names without the numbers that make them unique."""
    return {
        item.name.partition("-")[2]: [parent.partition("-")[2] for parent in item.parents]
        for item in page.objects
    }


def test_a_har_gives_sizes_origins_parents_and_processing_times(page_of) -> None:
    page = page_of(
        a_har(
            an_entry(f"{CDN}/app.js?v=3", 210, 100, _initiator={"type": "parser", "url": f"{WWW}/"}),
            an_entry(f"{WWW}/", 0, 200, 5000),
            an_entry(
                f"{CDN}/a.jpg",
                350,
                50,
                _initiator={"type": "script", "stack": {"callFrames": [{"url": f"{CDN}/app.js?v=3"}]}},
            ),
            an_entry(f"{CDN}/b.jpg", 100, 50, _initiator={"type": "parser", "url": f"{WWW}/"}),
        )
    )
    assert [item.name for item in page.objects] == ["0--", "1-b.jpg", "2-app.js", "3-a.jpg"]
    assert parents_in(page) == {"-": [], "b.jpg": ["-"], "app.js": ["-"], "a.jpg": ["app.js"]}
    assert [item.size_bytes for item in page.objects] == [5000, 100, 100, 100]
    assert [item.origin for item in page.objects] == ["www.example", *["cdn.example:8443"] * 3]
    # b.jpg was asked for before the document had ended; app.js ended at 310, a.jpg began at 350.
    assert [item.processing_ms for item in page.objects] == [0, 0, 40, 0]
    assert page.made_by == "fecbench page from-har recorded.har"


def test_without_initiators_the_parent_is_what_ended_last_before_or_the_document(page_of) -> None:
    page = page_of(
        a_har(
            an_entry(f"{WWW}/", 0, 100),
            an_entry(f"{WWW}/early", 50, 100),
            an_entry(f"{WWW}/style", 110, 30),
            an_entry(f"{WWW}/font", 145, 30),
            an_entry(f"{WWW}/late", 150, 30),
        )
    )
    parents = {"-": [], "early": ["-"], "style": ["-"], "font": ["style"], "late": ["early"]}
    assert parents_in(page) == parents


def test_a_redirect_is_the_parent_of_where_it_leads(page_of) -> None:
    redirect = {"status": 301, "redirectURL": "/new", "bodySize": 0}
    page = page_of(
        a_har(
            an_entry(f"{WWW}/", 0, 10),
            an_entry(f"{WWW}/old", 15, 65, response=redirect),
            an_entry(f"{WWW}/icon", 15, 75),  # ended last before /new
            an_entry(f"{WWW}/new", 95, 10, _initiator={"type": "parser", "url": f"{WWW}/"}),
        )
    )
    assert parents_in(page) == {"-": [], "old": ["-"], "icon": ["-"], "new": ["old"]}
    assert [item.processing_ms for item in page.objects] == [5, 15, 0, 0]


def test_what_did_not_come_over_the_network_is_no_object(page_of) -> None:
    entries = [
        an_entry(f"{WWW}/", 0, 80),
        an_entry("data:image/png;base64,AAAA", 90, 0),
        an_entry(f"{WWW}/blocked", 90, 0, response={"status": 0}),
        an_entry(f"{WWW}/cached", 90, 0, _fromCache="memory"),
    ]
    page = page_of(a_har(*entries))
    assert list(parents_in(page)) == ["-"]


def test_the_size_is_that_of_the_transfer_where_it_is_known(page_of) -> None:
    for response, right in (
        ({"bodySize": 7, "_transferSize": 8, "content": {"size": 9}}, 7),
        ({"bodySize": -1, "_transferSize": 8, "content": {"size": 9}}, 8),
        ({"bodySize": -1, "content": {"size": 9}}, 9),
        ({"bodySize": -1, "content": {"size": 9, "compression": 5}}, 4),
    ):
        assert page_of(a_har(an_entry(f"{WWW}/", 0, 80, response=response))).size_bytes == right


def test_sizes_of_contents_alone_are_told(fecbench_here: Any, tmp_path: Path) -> None:
    packed = {"bodySize": -1, "content": {"size": 9, "compression": 5}}
    unknown, empty = ({"bodySize": -1, "content": {"size": size}} for size in (9, 0))
    for last, remark in ((empty, ""), (unknown, "note: 1 of 3 objects have the size of their content")):
        entries = [an_entry(f"{WWW}/{at}", at, 1, response=one) for at, one in enumerate(({}, packed, last))]
        (tmp_path / "x.har").write_text(json.dumps(a_har(*entries)))
        result = fecbench_here("page", "from-har", tmp_path / "x.har", "--output", tmp_path / "x.json")
        assert (result.returncode, result.stderr[: len(remark) or None]) == (0, remark)


def as_chrome(entry: dict[str, Any], initiator: str = "", **others: Any) -> dict[str, Any]:
    """HTTP/2, so without the size of a body; what asked for it, by the stack of a timer."""
    size_bytes = entry["response"]["bodySize"]
    response = {**entry["response"], "bodySize": -1, "_transferSize": size_bytes, "_error": None}
    stack = {"callFrames": [], "parent": {"description": "setTimeout", "callFrames": [{"url": initiator}]}}
    cause = {"type": "script", "stack": stack} if initiator else {"type": "other"}
    return {**entry, "response": response, "_initiator": cause, "pageref": "page_1", "cache": {}, **others}


def as_firefox(entry: dict[str, Any], **others: Any) -> dict[str, Any]:
    """Return the entry as Firefox writes it, without its initiator."""
    return {**entry, "pageref": "page_1", "cache": {}, "_securityState": "secure", **others}


def as_webpagetest(entry: dict[str, Any], initiator: str = "", **others: Any) -> dict[str, Any]:
    return {**entry, "pageref": "page_1_0_1", "_run": 1, "_cached": 0, "_initiator": initiator, **others}


def failed(entry: dict[str, Any], status: int | None = 0) -> dict[str, Any]:
    return {**entry, "time": -1, "response": {**entry["response"], "status": status, "bodySize": None}}


def cached(entry: dict[str, Any], size_bytes: int = 900) -> dict[str, Any]:
    return {**entry, "response": {**entry["response"], "bodySize": 0, "content": {"size": size_bytes}}}


SCRIPT = f"{CDN}/app.js"
ENTRIES = [
    an_entry(f"{WWW}/", 0, 80, 500),
    an_entry(SCRIPT, 100, 50, 300),
    an_entry(f"{WWW}/late", 300, 9, 40),
]
BLOCKED, FROM_CACHE = an_entry(f"{WWW}/blocked", 120, 1), an_entry(f"{WWW}/cached", 130, 1)
SOCKET = an_entry("wss://www.example/live", 140, 1)
WRITERS = {
    "Chrome": [
        as_chrome(ENTRIES[0]),
        as_chrome(ENTRIES[1], f"{WWW}/"),
        as_chrome(ENTRIES[2], SCRIPT),
        as_chrome(failed(BLOCKED)),
        as_chrome(FROM_CACHE, _fromCache="disk"),
        {key: value for key, value in as_chrome(SOCKET).items() if key != "pageref"},
    ],
    "Chrome, an object of no page": [
        as_chrome(ENTRIES[0]),
        {key: value for key, value in as_chrome(ENTRIES[1], f"{WWW}/").items() if key != "pageref"},
        as_chrome(ENTRIES[2], SCRIPT),
    ],
    "Firefox": [*map(as_firefox, ENTRIES), as_firefox(failed(BLOCKED)), as_firefox(cached(FROM_CACHE))],
    "WebPageTest": [
        as_webpagetest(ENTRIES[0]),
        as_webpagetest(ENTRIES[1], f"{WWW}/"),
        as_webpagetest(ENTRIES[2], SCRIPT),
        as_webpagetest(failed(BLOCKED, -1)),
        as_webpagetest(failed(BLOCKED, 12_999)),
    ],
    "no status": [*ENTRIES, failed(BLOCKED, None)],
}


@pytest.mark.parametrize("writer", WRITERS)
def test_one_page_is_the_same_in_the_files_of_every_browser(page_of, writer: str) -> None:
    page = page_of(a_har(*WRITERS[writer]))
    assert [item.size_bytes for item in page.objects] == [500, 300, 40]
    assert parents_in(page) == {"-": [], "app.js": ["-"], "late": ["app.js"]}


def test_a_page_is_chosen_of_several(fecbench_here: Any, tmp_path: Path) -> None:
    """WebPageTest has a page for each run, and for its second view."""
    again = [{**as_webpagetest(cached(entry)), "pageref": "page_1_1_1"} for entry in ENTRIES[1:]]
    again.append({**as_webpagetest(ENTRIES[0]), "pageref": "page_1_1_1"})
    path = tmp_path / "both.har"
    path.write_text(json.dumps(a_har(*map(as_webpagetest, ENTRIES), *again)))
    with pytest.raises(Refusal, match=r"holds several pages: .* by --page \(page_1_0_1, page_1_1_1\)"):
        har.page_from(path)
    assert len(har.page_from(path, "page_1_0_1").objects) == 3
    assert len(har.page_from(path, "page_1_1_1").objects) == 1
    with pytest.raises(Refusal, match=r"has no page 'page_2'; did you mean 'page_1_\d_1'"):
        har.page_from(path, "page_2")
    words = ("page", "from-har", path, "--output", tmp_path / "page.json", "--page", "page_1_0_1")
    assert "3 objects" in fecbench_here(*words).stdout


def test_a_har_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "recorded.har.gz"
    path.write_bytes(gzip.compress(json.dumps(a_har(*ENTRIES)).encode()))
    assert len(har.page_from(path).objects) == 3


ZONELESS = {**an_entry(WWW, 0, 1), "startedDateTime": "2026-01-01T12:00:00"}
NO_SIZE = {"bodySize": -1, "content": {"size": -1}}
TWO_PAGES = [an_entry(WWW, 0, 1, pageref="page_1"), an_entry(WWW, 5, 1, pageref="page_2")]
LONG_SIZE = {"bodySize": "x" * 100_000}
BAD_HARS: list[tuple[object, str]] = [
    ("{", "is no JSON"),
    ("[" * 100_000, "nested too deeply"),
    ([], "valid dictionary"),
    ({}, "log: is missing"),
    ({"log": {"version": "1.2"}}, "log.entries: is missing"),
    (a_har(), "0 objects were transferred"),
    (a_har(ZONELESS), "log.entries[0].startedDateTime"),
    (a_har(an_entry(WWW, 0, -1)), "log.entries[0].time = -1"),
    (a_har(an_entry(WWW, 0, 1, response=NO_SIZE)), "no size is known"),
    (a_har(*TWO_PAGES), "several pages"),
    (a_har(an_entry(WWW, 0, 1, response=LONG_SIZE)), "log.entries[0].response.bodySize"),
    (a_har(an_entry("https://[broken", 0, 1)), "log.entries[0].request.url"),
    (a_har(an_entry(WWW, 0, 1, 2**60)), "size_bytes"),
]


def test_a_bad_har_ends_the_command_with_one_line_and_status_2(fecbench_here: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.har"
    for document, message in BAD_HARS:
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        line = fecbench_here("page", "from-har", path, "--output", tmp_path / "never.json").refusal()
        assert str(path) in line and message in line and len(line) < 500
        assert not (tmp_path / "never.json").exists()


WRONG_CALLS = {
    "make --output page.txt": "page.txt",
    "make --output no/such/folder.json": "no/such/folder.json",
    "make --output x.json --size-bytes 5": "--size-bytes 5: must be from 100000 to 1000000000",
    "make --output x.json --seed -1": "--seed",
    "from-har missing.har --output x.json": "missing.har: cannot be read",
}


def test_a_wrong_call_is_refused(fecbench_here: Any, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, message in WRONG_CALLS.items():
        assert message in fecbench_here("page", *arguments.split()).refusal()
        assert not list(tmp_path.iterdir())


# Where it is not the little design.
DESIGN = {
    "repetitions": 1,
    "plan": {"method": "grid"},
    "constants": {"bandwidth_mbps": 20, "owd_ms": 10},
    "variants": [variant("off", "rquic")],
}
CONNECTIONS = "one", "per_origin"


@pytest.fixture
def design(write_design: Any, tmp_path: Path):
    def design(connections: tuple[str, ...] = CONNECTIONS, graph: object = "own") -> designs.Design:
        page = {"name": "page"} | ({} if graph is None else {"graph": graph})
        factors = {"workload.connections": one_of(*connections)}
        return designs.load(write_design(tmp_path, **DESIGN, factors=factors, workloads=[page]))

    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "own.json").write_text(json.dumps(a_page(an_object("b", "a"), an_object("a"))))
    return design


def test_endpoints_are_given_the_graph_that_was_checked_and_not_a_file(design, tmp_path: Path) -> None:
    loaded = design()
    documents = experiment_of(loaded).documents
    (tmp_path / "pages" / "own.json").unlink()  # a campaign can be replayed without it
    again = experiment_of(loaded, json.loads(json.dumps(documents)))
    keys = sorted(trial_keys(loaded, len(again.points)))
    workloads = [again.task(key, "wire").pairs[0].workload for key in keys]
    graph = {"objects": [an_object("a", processing_ms=0), an_object("b", "a", processing_ms=0)]}
    assert workloads == [
        {"name": "page", "graph": graph, "connections": connections} for connections in ("one", "per_origin")
    ]
    assert re.fullmatch(r"[0-9a-f]{64}", documents["pages"]["own"]["sha256"])


def test_a_page_may_stand_beside_the_base_and_the_designs_own_goes_first(design, tmp_path: Path) -> None:
    base = design()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "pages").mkdir(parents=True)
    file = elsewhere / "like-it.toml"
    file.write_text(f'base = "../{Path(base.path).name}"\nname = "like-it"\n')
    assert experiment_of(designs.load(file)).documents == experiment_of(base).documents
    (elsewhere / "pages" / "own.json").write_text(json.dumps(a_page(an_object("c"))))
    own = experiment_of(designs.load(file)).documents["pages"]["own"]["graph"]
    assert [item["name"] for item in own["objects"]] == ["c"]
    file.write_text(file.read_text() + '[[workloads]]\nname = "page"\ngraph = "none"\n')
    both = f"in {elsewhere / 'pages'} or {elsewhere / '..' / 'pages'}; "
    assert both in refusal_of(experiment_of, designs.load(file))


NO_PAGES = [
    ({"graph": "owm"}, "did you mean 'own'?"),
    ({"graph": "../pages/own"}, "there is no page '../pages/own'"),
    ({"graph": 5}, "graph = 5"),
    ({"graph": None}, "graph is missing"),
    ({"connections": ("one", "many")}, "connections = 'many' must be one of one, per_origin"),
]


def test_a_design_that_names_no_page_or_a_wrong_one_is_refused(design, tmp_path: Path) -> None:
    for changes, message in NO_PAGES:
        assert message in refusal_of(experiment_of, design(**changes))
    (tmp_path / "pages" / "own.json").write_text(json.dumps(a_page(an_object("a", "a"))))
    assert re.search(r"own\.json: .*a → a", refusal_of(experiment_of, design()))
