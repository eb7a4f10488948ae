"""`fecbench list` names everything that a design may use, and what it names is accepted."""

import json
from typing import Any

import pytest

from fecbench import designs
from fecbench.dropper.draws import LossModelError
from fecbench.dropper.parameters import MODELS, loss_model
from fecbench.runners.workloads import WORKLOADS
from fecbench.topologies.topology import TOPOLOGIES

VALUES = {"p": 0.01, "r": 0.5, "rate": 0.05, "burst": 2.5, "k": 0.99, "h": 0.1, "burst_max": 3}
VALUES |= {"drop": "3,7-9", "length": 20, "repeat": True}
VALUES |= {"good_s": 1.0, "bad_s": 0.02, "slot_ms": 10.0}


FEW = {"smoke", "demo", "interop", "multipath-smoke", "video-live"}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has a few designs: to plan all of them takes long."""
    catalogue = designs.catalogue()
    monkeypatch.setattr(designs, "catalogue", lambda: {name: catalogue[name] for name in sorted(FEW)})


@pytest.fixture
def listed(fecbench_here: Any) -> Any:
    """The documents of a kind, by name."""

    def listed(kind: str) -> dict[str, dict[str, Any]]:
        result = fecbench_here("list", kind, "--json")
        assert (result.returncode, result.stderr) == (0, "")
        document = json.loads(result.stdout)
        assert list(document) == [kind]
        return {entry["name"]: entry for entry in document[kind]}

    return listed


def test_a_table_for_a_person_has_every_name(fecbench_here: Any, listed: Any) -> None:
    for kind in ("topologies", "workloads", "losses", "designs"):
        output = fecbench_here("list", kind).stdout.split()
        assert listed(kind).keys() <= set(output)


def test_topologies_have_their_links_and_the_hosts_of_their_pairs(listed: Any) -> None:
    topologies = listed("topologies")
    assert topologies.keys() == TOPOLOGIES.keys()
    assert topologies["single-path"]["links"] == ["internet"]
    for topology in topologies.values():
        hosts = [host for pair in topology["pairs"] for host in (pair["client"], pair["server"])]
        hosts += [topology["relay"]] if topology["relay"] else []
        assert sorted(hosts) == sorted(topology["hosts"])


def test_workloads_have_parameters_that_a_design_may_set(listed: Any) -> None:
    workloads = listed("workloads")
    assert workloads.keys() == WORKLOADS.keys()
    assert workloads["competing"]["pairs"] == 2
    assert workloads["page"]["parameters"]["connections"]["choices"] == ["one", "per_origin"]
    for name, workload in workloads.items():
        assert workload["parameters"].keys() == WORKLOADS[name].parameters.keys()
        assert all(parameter["help"].endswith(".") for parameter in workload["parameters"].values())


def test_every_form_of_a_loss_model_that_is_listed_is_one_and_its_parameters_are_explained(
    listed: Any,
) -> None:
    models = listed("losses")
    assert models.keys() == MODELS.keys()
    for name, model in models.items():
        of_forms = set()
        for form in model["forms"]:
            needed, optional = form["needed"], form["optional"]
            loss_model({"model": name, **{key: VALUES[key] for key in (*needed, *optional)}})
            for key in needed:
                with pytest.raises(LossModelError):
                    loss_model({"model": name, **{other: VALUES[other] for other in needed if other != key}})
            of_forms |= {*needed, *optional}
        common = set() if name == "none" else {"only_longer_than"}
        assert model["parameters"].keys() == of_forms | common
        assert all(text.endswith(".") for text in (model["meaning"], *model["parameters"].values()))


def test_designs_of_the_catalogue_have_as_many_points_and_trials_as_they_plan(listed: Any) -> None:
    catalogue = listed("designs")
    assert catalogue.keys() == FEW
    for design in catalogue.values():
        planned = designs.load(design["file"]).plan().points
        assert design["points"] == len(planned)
        arms = len(design["workloads"]) * len(design["variants"])
        assert design["trials"] == len(planned) * arms * design["repetitions"]


def test_an_unknown_kind_is_refused_with_the_nearest(fecbench_here: Any) -> None:
    assert "Did you mean 'workloads'?" in fecbench_here("list", "workload").refusal()
