"""The files by which clusters start workers name the same things as one another, and as what they start."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import PurePath
from typing import Any

import pytest
import yaml

from fecbench.checkout import REPOSITORY
from fecbench.runners import authority
from fecbench.runners.cluster.as_dask import worker_arguments
from fecbench.runners.implementations.finding import OWN, ours

CONTAINERFILE = (REPOSITORY / "Containerfile").read_text()
FOLDER = REPOSITORY / "docs/cluster"
PAGE = (REPOSITORY / "docs/cluster-kubernetes.md").read_text()

# As the templates of Dask's chart (2025.11) read them.
OF_THE_CHART = {
    "scheduler": {"enabled"},
    "jupyter": {"enabled", "rbac"},
    "worker": {
        *(
            "annotations",
            "affinity",
            "custom_scheduler_url",
            "env",
            "extraArgs",
            "image",
            "mounts",
            "nodeSelector",
        ),
        *("replicas", "resources", "securityContext", "serviceAccountName", "strategy", "tolerations"),
    },
}


@pytest.fixture
def values() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / "helm-values.yaml").read_text())
    return loaded


@pytest.fixture
def deployment() -> dict[str, Any]:
    return _scheduler("Deployment")


@pytest.fixture
def service() -> dict[str, Any]:
    return _scheduler("Service")


def _scheduler(kind: str) -> dict[str, Any]:
    documents = yaml.safe_load_all((FOLDER / "kubernetes-scheduler.yaml").read_text())
    (of_the_kind,) = (document for document in documents if document["kind"] == kind)
    loaded: dict[str, Any] = of_the_kind
    return loaded


def test_the_chart_reads_every_value(values: dict[str, Any]) -> None:
    assert {part: set(options) - OF_THE_CHART[part] for part, options in values.items()} == {
        "scheduler": set(),
        "jupyter": set(),
        "worker": set(),
    }


def test_workers_look_for_the_scheduler_where_it_is(
    values: dict[str, Any], deployment: dict[str, Any], service: dict[str, Any]
) -> None:
    """The address is that of its service, whose port is that of the container and of the scheduler."""
    (port,) = (each["port"] for each in service["spec"]["ports"])
    assert values["worker"]["custom_scheduler_url"] == f"tls://{service['metadata']['name']}:{port}"
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert deployment["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    assert container["ports"] == [{"containerPort": port}]
    assert container["args"][:3] == ["fecbench", "cluster", "scheduler"]
    assert container["args"][3].endswith(f":{port}")


def test_scheduler_and_workers_have_one_image_and_the_same_certificates(
    values: dict[str, Any], deployment: dict[str, Any]
) -> None:
    worker, pod = values["worker"], deployment["spec"]["template"]["spec"]
    (scheduler,) = pod["containers"]
    assert f"{worker['image']['repository']}:{worker['image']['tag']}" == scheduler["image"]
    assert worker["mounts"]["volumes"] == pod["volumes"]
    assert worker["mounts"]["volumeMounts"] == scheduler["volumeMounts"]
    # Those of a secret belong to root: the user of the image reads them by this group.
    assert worker["securityContext"] == pod["securityContext"] == {"fsGroup": _user_of_the_image()}
    (mount,) = scheduler["volumeMounts"]
    assert scheduler["args"][-2:] == worker["extraArgs"] == ["--certificates", mount["mountPath"]]


def _user_of_the_image() -> int:
    return int(re.findall(r"^USER (\d+)$", CONTAINERFILE, re.MULTILINE)[-1])


def test_the_page_makes_the_secrets_that_the_files_name(values: dict[str, Any]) -> None:
    secrets = set(re.findall(r"kubectl create secret generic (\S+)", PAGE))
    of_volumes = {volume["secret"]["secretName"] for volume in values["worker"]["mounts"]["volumes"]}
    of_variables = {variable["valueFrom"]["secretKeyRef"]["name"] for variable in values["worker"]["env"]}
    assert of_volumes | of_variables == secrets


def test_workers_are_started_by_what_the_image_has(values: dict[str, Any]) -> None:
    command = values["worker"]["image"]["dask_worker"]
    assert re.search(rf"> /usr/local/bin/{command} ", CONTAINERFILE)
    (module,) = re.findall(r"-m (fecbench\.runners\.\S+)", CONTAINERFILE)
    assert (REPOSITORY / f"{module.replace('.', '/')}.py").is_file()
    options = [values["worker"]["custom_scheduler_url"], *values["worker"]["extraArgs"]]
    assert "--certificates" in worker_arguments(options)


def test_the_image_has_all_that_make_builds() -> None:
    """The image has the target that builds every part; a removed folder has nothing that a trial needs."""
    assert re.search(r"make build( |$)", CONTAINERFILE, re.MULTILINE)
    assert re.findall(r"rm -rf (\S+) && find (.*) -exec rm", CONTAINERFILE) == [
        (".build", "quic-impls -path '*/target/release/*' -type d -prune")
    ]
    implementations = (ours().find(name, "tests") for name in OWN)
    needed = [path.resolve() for implementation in implementations for path in implementation.needed_files()]
    removed = re.compile(rf"{re.escape(str(REPOSITORY))}/(\.build|quic-impls/.*/target/release/[^/]+)/")
    assert [path for path in needed if removed.match(str(path))] == []


def _ignored(path: str) -> bool:
    """Whether .containerignore keeps a file out of the image; `**/` stands for any folder, and for none."""
    patterns = [
        line for line in (REPOSITORY / ".containerignore").read_text().splitlines() if line and line[0] != "#"
    ]
    parts = PurePath(path).parts
    return any(
        fnmatch(parts[depth], pattern.removeprefix("**/"))
        for pattern in patterns
        for depth in (range(len(parts)) if pattern.startswith("**/") else [0])
    )


def test_the_image_has_every_file_of_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("needs a checkout of git")
    assert [path for path in listed.stdout.split("\0") if path and _ignored(path)] == []


@pytest.mark.parametrize(
    "path", [f"cluster-papers/{authority.KEY}", "results.sqlite", "dropper/build/dropper", ".venv/bin/python"]
)
def test_what_a_checkout_collects_stays_out_of_the_image(path: str) -> None:
    assert _ignored(path)
