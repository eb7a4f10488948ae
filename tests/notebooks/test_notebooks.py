"""The notebooks run from first cell to last on recorded campaigns of real trials, and are kept clean."""

import ast
import lzma
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from fecbench import designs, results
from fecbench.checkout import REPOSITORY
from fecbench.results import papers

NOTEBOOKS = REPOSITORY / "notebooks"
NAMES = sorted(path.name for path in NOTEBOOKS.glob("*.ipynb"))
# Half a minute each. Whoever changes one, or what it draws, runs `pytest -m slow tests/notebooks`.
# CI runs these when a notebook changes.
SLOW = (
    *("how-much-fec.ipynb", "networking2019.ipynb", "rquic2021.ipynb", "short-messages.ipynb"),
    *("starlink2022.ipynb", "tcp.ipynb", "thesis2018-one-path.ipynb", "two-paths.ipynb", "which-fec.ipynb"),
)
LIMIT_S = 120  # of a cell
MOST_SAMPLES_BYTES = 24_000_000

# What notebooks/README.md says that is recorded: the databases of each notebook, and the campaigns of each.
RECORDED = {
    "01-first-look.ipynb": {"demo": {"demo"}},
    "networking2019.ipynb": {
        "networking2019": {f"networking2019-{name}" for name in ("da2gc", "mss")}
        | {f"networking2019-{name}-short" for name in ("uniform", "ge", "noloss", "fairness")},
        "networking2019-virtual": {
            *(f"networking2019-{name}" for name in ("uniform", "ge", "noloss", "fairness", "da2gc", "mss")),
            *(f"networking2019-{name}-more" for name in ("da2gc", "mss", "uniform", "ge")),
            "networking2019-ge-r",
        },
    },
    "rquic2021.ipynb": {
        "rquic2021": {"rquic2021-bulk"} | {f"rquic2021-{name}-short" for name in ("bulk", "page", "bto")},
        "rquic2021-virtual": {
            f"rquic2021-{name}" for name in ("bulk", "page", "bto", "page-more", "bto-more")
        },
        "rquic2021-recovery2020": {
            *(f"rquic2021-{name}-recovery2020" for name in ("bulk", "page", "bto")),
            *(f"rquic2021-{name}-recovery2020-more" for name in ("bulk", "page")),
        },
    },
    "thesis2018-one-path.ipynb": {
        "thesis2018-one-path": {
            f"thesis2018-{name}-short" for name in ("uniform", "ge", "delay", "low-desync")
        }
    },
    "thesis2018-two-paths.ipynb": {
        "thesis2018-two-paths": {
            f"thesis2018-multipath-{name}-short" for name in ("homogeneous", "losses", "heterogeneous")
        }
    },
    "starlink2022.ipynb": {"starlink2022-virtual": {"starlink2022-uploads-short"}},
    "short-messages.ipynb": {"moskvitin": {"moskvitin-short"}},
    "never-harms.ipynb": {"never-harms": {"never-harms"}},
    "losses-of-time.ipynb": {"losses-of-time": {"losses-of-packets", "losses-of-time"}},
    "changing-links.ipynb": {"changing-links": {"changing-links"}},
    "tcp.ipynb": {"tcp": {"tcp-or-fec", "changing-links-tcp"}},
    "two-paths.ipynb": {"multipath-bulk": {"multipath-bulk"}},
    "real-time.ipynb": {"realtime-voice": {"realtime-voice"}},
    "video.ipynb": {"video-ladder": {"video-ladder"}},
    "how-much-fec.ipynb": {},
    "which-fec.ipynb": {},
    "which-plan.ipynb": {},
    "your-own-analysis.ipynb": {"demo": {"demo"}},
}
# How a notebook calls what shows the figures of a database.
SHOW = {"": "show", "-virtual": "show_virtual", "-recovery2020": "show_2020"}
# What is recorded as a table of trials alone, for the notebook of that name.
TABLES = {"how-much-fec.ipynb": "how-much-fec.parquet"}

OURS = {"bench", "designs", "dropper", "results", "runners", "topologies"}


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOKS / name, as_version=4)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The notebooks, and the folder where they look for databases."""
    shutil.copytree(NOTEBOOKS, tmp_path / "notebooks")
    (tmp_path / "out").mkdir()
    return tmp_path


def unpack(names: Iterable[str], checkout: Path) -> None:
    for name in names:
        sample = NOTEBOOKS / "samples" / f"{name}.sqlite.xz"
        (checkout / "out" / f"{name}.sqlite").write_bytes(lzma.decompress(sample.read_bytes()))


@pytest.fixture(scope="session")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KernelManager]:
    """A kernel for all notebooks: loading the libraries takes as long as running a notebook."""
    started = KernelManager(kernel_name="python3")
    folder = str(tmp_path_factory.mktemp("ipython"))
    started.start_kernel(env={**os.environ, "PYTHONPATH": str(REPOSITORY), "IPYTHONDIR": folder})
    yield started
    started.shutdown_kernel(now=True)


def run(notebook: nbformat.NotebookNode, kernel: KernelManager, folder: Path) -> None:
    """Run all cells in `folder`. Raises CellExecutionError for the first one that fails."""
    begin = nbformat.v4.new_code_cell(f"%reset -f\nimport os\nos.chdir({str(folder)!r})\ndel os")
    for output in (nbformat.v4.new_notebook(cells=[begin]), notebook):
        NotebookClient(output, km=kernel, timeout=LIMIT_S).execute()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in NAMES]
)
def test_a_notebook_draws_every_figure_that_its_cells_ask_for(
    name: str, checkout: Path, kernel: KernelManager
) -> None:
    notebook = read(name)
    unpack(RECORDED[name], checkout)
    run(notebook, kernel, checkout / "notebooks")
    of_papers = {
        SHOW.get(database.removeprefix(Path(name).stem), "show"): figures_of_papers(
            checkout / "out" / f"{database}.sqlite", campaigns
        )
        for database, campaigns in RECORDED[name].items()
    }
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in code:
        images = [output for output in cell.outputs if "image/png" in output.get("data", {})]
        # A campaign that lacks what a figure shows says so in its place ("No download is ok …").
        printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
        lacking = re.findall("^No ", printed, re.MULTILINE)
        assert len(images) + len(lacking) == figures_asked_for(cell.source, of_papers), cell.source
        assert cell.outputs, f"shows nothing: {cell.source}"
    printed = "".join(
        output.text for cell in code for output in cell.outputs if output.get("name") == "stdout"
    )
    missing = re.findall("^(.*): this database has no campaign for it", printed, re.MULTILINE)
    assert missing == []
    assert [output.text for cell in code for output in cell.outputs if output.get("name") == "stderr"] == []


def figures_of_papers(database: Path, campaigns: set[str]) -> list[str]:
    """The numbers of the papers' figures that the campaigns reproduce, once for each campaign."""
    with results.open(str(database)) as db:
        assert set(db.campaigns()["campaign"]) == campaigns
        return [figure.number for name in campaigns for figure in papers.figures_of(db[name].info)]


def figures_asked_for(source: str, of_papers: dict[str, list[str]]) -> int:
    """Return how many images a cell draws: one for each call of a figure, or for each campaign with the
    paper's, and one for each figure of a reader's."""
    shows = len(re.findall(r"^ *plt\.show\(\)", source, re.MULTILINE))
    own = shows or len(re.findall(r"^axes = sns\.", source, re.MULTILINE))  # shown at the end of the cell
    drawing = len(re.findall(r"^figures\.", source, re.MULTILINE)) + own
    text_shown = re.findall(r"^(show\w*)\(\"(.+)\"\)", source, re.MULTILINE)
    return drawing + sum(number.endswith(output) for show, output in text_shown for number in of_papers[show])


def test_a_cell_that_fails_fails_the_notebook(checkout: Path, kernel: KernelManager) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        run(broken, kernel, checkout)


def test_a_notebook_is_kept_without_outputs_and_knows_only_results() -> None:
    for name in NAMES:
        notebook = read(name)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert all(cell.outputs == [] and cell.execution_count is None for cell in code), name
        source = "\n".join(
            line for cell in code for line in cell.source.splitlines() if not line.startswith("%")
        )
        imported = {
            name.removeprefix("fecbench.").split(".")[0]
            for node in ast.walk(ast.parse(source))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [f"{node.module}.{alias.name}" for alias in node.names]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert imported & OURS <= {"results"}, name


def test_a_notebook_is_an_article() -> None:
    for name in NAMES:
        headings = [
            line
            for cell in read(name).cells
            if cell.cell_type == "markdown"
            for line in cell.source.splitlines()
            if line.startswith("#")
        ]
        assert headings[0].startswith("# "), name
        assert "## The design" in headings, name
        assert headings[-1] == "## Limits", name


def test_a_recorded_table_has_each_trial_of_its_design() -> None:
    for name in sorted(TABLES):
        design = designs.load(designs.catalogue()[Path(name).stem])
        trials = pd.read_parquet(NOTEBOOKS / "samples" / TABLES[name])
        variants, workloads = [
            [output.label for output in some] for some in (design.variants, design.workloads)
        ]
        planned = product(variants, workloads, range(len(design.plan().points)), range(design.repetitions))
        key = ["variant", "workload", "point", "repetition"]
        assert set(trials[key].itertuples(index=False, name=None)) == set(planned), name
        assert not trials[key].duplicated().any(), name
        of_points = trials.drop_duplicates("point").sort_values("point")[list(design.factors)]
        assert of_points.to_dict("records") == design.plan().points, name


def test_the_recorded_campaigns_are_small() -> None:
    assert sum(sample.stat().st_size for sample in (NOTEBOOKS / "samples").iterdir()) <= MOST_SAMPLES_BYTES
