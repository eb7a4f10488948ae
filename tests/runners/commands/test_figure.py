"""`fecbench figure`: a figure in a paper's width and letters, with its caption; the summary as a table."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from tests.runners.commands.conftest import RS, XOR

SVG = "{http://www.w3.org/2000/svg}"


def inches_wide(pdf: bytes) -> float:
    (box,) = re.findall(rb"/MediaBox \[ ?([\d. ]+) ?\]", pdf)
    return float(box.split()[2]) / 72


def test_a_pdf_has_the_width_that_is_asked_and_letters_as_truetype(
    fecbench_here: Any, planted: Path, tmp_path: Path
) -> None:
    for width, inches in (
        ("3.33in", 3.33),
        ("85mm", 85 / 25.4),
        ("8.5 cm", 8.5 / 2.54),
        ("240pt", 240 / 72.27),
    ):
        file = tmp_path / "ratio.pdf"
        result = fecbench_here("figure", "ratio", "--db", planted, "--width", width, "-o", file)
        assert result.returncode == 0, result.stderr
        pdf = file.read_bytes()
        assert inches_wide(pdf) == pytest.approx(inches, abs=0.01), width
        assert b"/Type3" not in pdf
        assert b"/CIDFontType2" in pdf  # TrueType, embedded
        assert b"/FontFile2" in pdf


def test_text_of_an_svg_is_text_and_the_title_can_be_left_out(
    fecbench_here: Any, planted: Path, tmp_path: Path
) -> None:
    captions = {}
    for option in ("--title", "--no-title"):
        file = tmp_path / f"bars{option}.svg"
        assert fecbench_here("figure", "bars", "--db", planted, option, "-o", file).returncode == 0
        captions[option] = " ".join(
            "".join(text.itertext()) for text in ElementTree.parse(file).iter(f"{SVG}text")
        )
        caption = Path(f"{str(file).removesuffix('.svg')}.caption.txt").read_text()
        assert caption.startswith("By how much does the DCT change?")
        assert "The DCT ratio" in caption
        assert "40 networks" in caption or "60 networks" in caption
    assert "By how much" in captions["--title"]
    assert "By how much" not in captions["--no-title"]
    assert XOR in captions["--no-title"]


def test_arms_and_workloads_are_chosen(fecbench_here: Any, planted: Path, tmp_path: Path) -> None:
    file = tmp_path / "bars.svg"
    assert fecbench_here("figure", "bars", "--db", planted, "--arms", RS, "-o", file).returncode == 0
    drawing = file.read_text()
    assert RS in drawing
    assert XOR not in drawing


def test_a_style_of_ones_own_decides_width_and_letters(
    fecbench_here: Any, planted: Path, tmp_path: Path
) -> None:
    style = tmp_path / "thesis.mplstyle"
    style.write_text("figure.figsize: 4.5, 3\nfont.size: 6\nfont.family: monospace\n")
    file = tmp_path / "bars.svg"
    assert fecbench_here("figure", "bars", "--db", planted, "--style", style, "-o", file).returncode == 0
    drawing = ElementTree.parse(file)
    assert float(drawing.getroot().attrib["width"].removesuffix("pt")) == pytest.approx(4.5 * 72)
    styles = [text.attrib.get("style", "") for text in drawing.iter(f"{SVG}text")]
    assert all("monospace" in entry or "DejaVu Sans Mono" in entry for entry in styles), styles
    sizes = {float(size) for entry in styles for size in re.findall(r"font-size: ([\d.]+)px", entry)}
    assert max(sizes) <= 6.001


@pytest.mark.parametrize("style", ["paper", "acm", "ieee"])
def test_each_style_fits_in_a_column(fecbench_here: Any, planted: Path, tmp_path: Path, style: str) -> None:
    file = tmp_path / "ratio.pdf"
    result = fecbench_here("figure", "ratio", "--db", planted, "--style", style, "--no-title", "-o", file)
    assert result.returncode == 0, result.stderr
    assert inches_wide(file.read_bytes()) <= 3.51


def test_without_a_name_the_figures_are_listed(fecbench_here: Any, few: Path) -> None:
    result = fecbench_here("figure", "--db", few)
    names = [line.partition(":")[0] for line in result.stdout.splitlines()]
    assert {"points", "ratio", "bars", "dct"} <= set(names)
    assert not [line for line in result.stdout.splitlines() if line.endswith(", Fig")]  # of "Fig. 6"
    listed = json.loads(fecbench_here("figure", "--db", few, "--json").stdout)
    assert [style["figure"] for style in listed] == names


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["ratio"], "figure ratio: give --output FILE.pdf"),
        (["-o", "x.pdf"], "give the figure's name, too"),
        (["ratios", "-o", "x.pdf"], "has none; did you mean 'ratio'?"),
        (["ratio", "-o", "x.eps"], "must end with .png, .svg or .pdf"),
        (["map", "-o", "x.pdf"], "choose one of map-"),
        (["ratio", "-o", "x.pdf", "--width", "3.33"], "--width 3.33: must be a number with its unit"),
        (["ratio", "-o", "x.pdf", "--width", "0.5in"], "1.5in to 20in"),
        (["ratio", "-o", "x.pdf", "--style", "nature"], "must be one of acm, ieee, paper or a file"),
        (["ratio", "-o", "x.pdf", "--style", "no.mplstyle"], "no.mplstyle: cannot be read"),
        (["ratio", "-o", "x.pdf", "--arms", "XO"], "has no variant 'XO'"),
        (["ratio", "-o", "x.pdf", "--workloads", "upload"], "has no workload 'upload'"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_is_wrong_is_told_in_one_line(
    fecbench_here: Any,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    database = request.getfixturevalue("planted" if options[0] == "map" else "few")  # maps are of rules
    assert said in fecbench_here("figure", *options, "--db", database).refusal()
    assert list(tmp_path.iterdir()) == []


def test_the_summary_is_the_same_in_every_form(fecbench_here: Any, planted: Path, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(fecbench_here("show", "--db", planted, "--format", "csv").stdout)))
    assert {row["variant"] for row in rows} == {XOR, RS}
    counted = [tuple(row[name] for name in ("helps", "harms", "equivalent", "undecided")) for row in rows]
    markdown = fecbench_here("show", "--db", planted, "--format", "md").stdout.splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in markdown]
    assert [tuple(line[2:6]) for line in cells[2:]] == counted
    latex = fecbench_here("show", "--db", planted, "--format", "latex").stdout
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"[95 \%]"):
        assert rule in latex
    bodies = [line.split(" & ") for line in latex.splitlines() if line.endswith(r"\\")][1:]
    assert [tuple(line[2:6]) for line in bodies] == counted
    for suffix, text in ((".tex", latex), (".md", "\n".join(markdown) + "\n")):
        file = tmp_path / f"summary{suffix}"
        result = fecbench_here("export", "--db", planted, "--table", "summary", "--output", file)
        assert result.returncode == 0
        assert file.read_text() == text
    fecbench_here("export", "--db", planted, "--table", "summary", "--output", tmp_path / "summary.csv")
    exported = pd.read_csv(tmp_path / "summary.csv", dtype=str, keep_default_na=False)
    assert exported.to_dict("records") == [{k: v for k, v in row.items() if k != "campaign"} for row in rows]
    output = json.loads(fecbench_here("show", "--db", planted, "--format", "json").stdout)
    assert output == json.loads(fecbench_here("show", "--db", planted, "--json").stdout)


def test_a_table_form_with_another_question_is_refused(fecbench_here: Any, planted: Path) -> None:
    for options in (["1"], ["--trials"], ["--digest"], ["--hosts"], ["--overhead"], ["--json"]):
        result = fecbench_here("show", *options, "--db", planted, "--format", "latex")
        assert "--format latex: is of the table of ratios" in result.refusal(), options
