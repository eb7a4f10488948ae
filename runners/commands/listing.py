"""`fecbench list`: the names that designs and options may use, and what each means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.campaign_documents import print_document
from fecbench.runners.commands.console.terminal_tables import print_table, table_of

if TYPE_CHECKING:
    from fecbench.results.metrics import Metric

listing = typer.Typer(
    add_completion=False, no_args_is_help=True, help="List the names that designs and options may use."
)

Document = dict[str, Any]


def topology_documents() -> list[Document]:
    """Return the topologies: emulated links, hosts, and which hosts are client and server of a pair."""
    from fecbench.topologies.topology import TOPOLOGIES

    return [
        {
            "name": name,
            "links": [link.name for link in layout.links],
            "hosts": list(layout.hosts),
            "pairs": [{"client": client, "server": server} for client, server in layout.pairs],
            "relay": layout.relay,
        }
        for name, layout in TOPOLOGIES.items()
    ]


def workload_documents() -> list[Document]:
    """Return the workloads: parameters, number of pairs of client and server, and compared metric."""
    from fecbench.runners.workloads import WORKLOADS

    return [
        {
            "name": workload.name,
            "meaning": workload.summary,
            "parameters": {
                name: option.model_dump(exclude={"default"}) for name, option in workload.parameters.items()
            },
            "pairs": workload.pairs,
            "compared": workload.compared,
        }
        for workload in WORKLOADS.values()
    ]


def metric_documents() -> list[Document]:
    """Return the known metrics by the names that they have in frames and in `--metric`.

    LINK.DIRECTION stands for each link of the topology and `up` or `down`, PATH for each of several paths.
    `background_client` and `background_server` report the same metrics as `client` and `server`, if a
    transfer competes.
    """
    from fecbench.results.metrics import ALL

    return [
        {
            "name": f"{endpoint}.{metric.name}" if endpoint else metric.name,
            "unit": metric.unit,
            "meaning": metric.meaning,
            "better": metric.better,
            "by": endpoint or metric.by,
        }
        for metric in ALL
        for endpoint in _endpoints_of(metric)
    ]


def _endpoints_of(metric: Metric) -> list[str]:
    """The endpoints that report it; an empty name for what no endpoint reports."""
    ends = [end for end in ("client", "server") if metric.by in (end, "client and server")]
    return ends or [""]


def loss_documents() -> list[Document]:
    """Return the loss models: the forms in which each may be written, and the meanings of its parameters."""
    from fecbench.dropper.parameters import COMMON, MODELS, parameters_of

    return [
        {
            "name": name,
            "meaning": model.meaning,
            "parameters": {key: parameter.meaning for key, parameter in model.parameters.items()}
            | {key: COMMON[key] for key in COMMON if key in parameters_of(model)},
            "forms": [{"needed": form.needed, "optional": form.optional} for form in model.forms],
        }
        for name, model in MODELS.items()
    ]


def design_documents() -> list[Document]:
    """Return the designs of the catalogue, without their points."""
    from fecbench import designs

    catalogue = {name: designs.load(path) for name, path in designs.catalogue().items()}
    return [
        {
            "name": name,
            "title": design.title,
            "file": design.path,
            "topology": design.topology,
            "points": design.point_count,
            "workloads": [workload.label for workload in design.workloads],
            "variants": [variant.label for variant in design.variants],
            "repetitions": design.repetitions,
            "trials": design.trial_count,
        }
        for name, design in catalogue.items()
    ]


@listing.command("topologies")
def list_topologies(as_json: arguments.Json = False) -> None:
    """List the topologies, with their links, hosts and pairs of client and server."""
    documents = topology_documents()
    rows = [
        (
            topology["name"],
            ", ".join(topology["links"]),
            ", ".join(topology["hosts"]),
            ", ".join(f"{pair['client']} – {pair['server']}" for pair in topology["pairs"]),
        )
        for topology in documents
    ]
    _print("topologies", documents, ("topology", "links", "hosts", "pairs"), rows, as_json)


@listing.command("workloads")
def list_workloads(as_json: arguments.Json = False) -> None:
    """List the workloads, with their parameters."""
    documents = workload_documents()
    if as_json:
        print_document({"workloads": documents})
        return
    workloads = [
        (workload["name"], workload["pairs"], workload["compared"], workload["meaning"])
        for workload in documents
    ]
    print_table(table_of(("workload", "pairs", "compared", "meaning"), workloads))
    parameters = [
        (workload["name"], name, _values_of(option), option["help"])
        for workload in documents
        for name, option in workload["parameters"].items()
    ]
    print_table(table_of(("workload", "parameter", "values", "meaning"), parameters))


@listing.command("losses")
def list_losses(as_json: arguments.Json = False) -> None:
    """List the loss models, with the parameters that each takes."""
    from fecbench.dropper.parameters import MODELS

    documents = loss_documents()
    if as_json:
        print_document({"losses": documents})
        return
    models = [
        (model["name"], " or ".join(map(str, MODELS[model["name"]].forms)), model["meaning"])
        for model in documents
    ]
    print_table(table_of(("model", "parameters", "meaning"), models))
    parameters = [
        (model["name"], name, meaning) for model in documents for name, meaning in model["parameters"].items()
    ]
    print_table(table_of(("model", "parameter", "meaning"), parameters))


@listing.command("metrics")
def list_metrics(as_json: arguments.Json = False) -> None:
    """List the metrics that are known: name, unit, which direction is better, who measures it, meaning.

    Endpoints may report others: their units are the ends of their names.
    """
    documents = metric_documents()
    rows = [
        (metric["name"], metric["unit"], metric["better"] or "", metric["by"], metric["meaning"])
        for metric in documents
    ]
    _print("metrics", documents, ("metric", "unit", "better", "by", "meaning"), rows, as_json)


@listing.command("designs")
def list_designs(as_json: arguments.Json = False) -> None:
    """List the designs of the catalogue, which commands know by name."""
    documents = design_documents()
    rows = [(design["name"], design["points"], design["trials"], design["title"]) for design in documents]
    numbers = ("points", "trials")
    _print("designs", documents, ("design", *numbers, "title"), rows, as_json, right=numbers)


def _print(
    kind: str,
    documents: Sequence[Document],
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    as_json: bool,
    right: Sequence[str] = (),
) -> None:
    if as_json:
        print_document({kind: documents})
    else:
        print_table(table_of(headings, rows, right))


def _values_of(option: Document) -> str:
    """Return the values that an option takes, in words."""
    if option["choices"] is not None:
        return ", ".join(map(str, option["choices"]))
    least, most = option["minimum"], option["maximum"]
    bounds = [f"from {_number(least)}"] if least is not None else []
    bounds += [f"to {_number(most)}"] if most is not None else []
    return " ".join([option["type"], *bounds])


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
