"""Design files: what is read from a good one, and that a bad one is refused in one line that helps."""

import string
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fecbench import designs
from fecbench.designs import Design, DesignError

GOOD = """
name = "trial-run"
title = "Does it help?"
seed = 42
topology = "single-path"
repetitions = 3

[plan]
method = "wsp"
points = 6
candidates = 60

[factors]
bandwidth_mbps = { min = 0.3, max = 10, scale = "log" }
loss.p = { min = 0.01, max = 0.08 }
queue_packets = { min = 10, max = 100, integer = true }
option.http = { choices = ["hq", "h3"] }

[constants]
loss.model = "uniform"
owd_ms = 20

[[workloads]]
name = "download"
size_bytes = [1_000, 50_000]

[[workloads]]
name = "upload"
size_bytes = 1_000

[[variants]]
label = "off"
implementation = "rquic"
options = { scheme = "none" }
baseline = true

[[variants]]
label = "XOR 4/5"
implementation = "rquic"
options = { scheme = "xor", code_rate = 0.8 }
"""


@pytest.fixture
def write(tmp_path: Path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "some.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(DesignError) as error:
        designs.load(path)
    line = str(error.value)
    assert line.startswith(f"{path}: ")
    assert line.isprintable()
    return line.removeprefix(f"{path}: ")


def test_a_good_design_is_read_with_dotted_names_and_expanded_workloads(write) -> None:
    design = designs.load(write(GOOD))
    assert design.text == GOOD
    assert list(design.factors) == ["bandwidth_mbps", "loss.p", "queue_packets", "option.http"]
    assert design.constants == {"loss.model": "uniform", "owd_ms": 20}
    assert [workload.model_dump() for workload in design.workloads] == [
        {"label": "download-1000", "name": "download", "parameters": {"size_bytes": 1000}},
        {"label": "download-50000", "name": "download", "parameters": {"size_bytes": 50_000}},
        {"label": "upload-1000", "name": "upload", "parameters": {"size_bytes": 1000}},
    ]
    assert [(variant.label, variant.baseline) for variant in design.variants] == [
        ("off", True),
        ("XOR 4/5", False),
    ]
    assert (design.statistic, design.timeout_s, design.question) == ("median", None, None)


def test_dotted_and_quoted_names_and_tables_are_the_same(write) -> None:
    dotted = designs.load(write(GOOD)).factors
    quoted = designs.load(write(GOOD.replace("loss.p =", '"loss.p" ='))).factors
    nested = designs.load(write(GOOD.replace("loss.p = {", "loss = { p = {").replace("0.08 }", "0.08 } }")))
    assert dotted == quoted == nested.factors


def test_two_lists_in_a_workload_make_every_combination(write) -> None:
    messages = 'name = "messages"\nrate_hz = [20, 50]\nsize_bytes = [100, 200]\n\n[[workloads]]\n'
    design = designs.load(write(GOOD.replace('name = "download"', messages + 'name = "download"')))
    labels = [workload.label for workload in design.workloads]
    assert labels[:4] == ["messages-20-100", "messages-20-200", "messages-50-100", "messages-50-200"]


REFUSED = {
    "seed = 42": [
        ("seed = 42\nrepetition = 2", "repetition: unknown key; did you mean 'repetitions'?"),
        (
            'seed = 42\nfamily = "ipv6"',
            "family: unknown key; a parameter of the network belongs in [constants] or [factors]; known: ",
        ),
        ("seed = 42\nloss.p = 0.1", "loss: unknown key; a parameter of the network belongs in"),
        ("seed = -1", "seed = -1: must be greater than or equal to 0"),
        (f"seed = {2**64}", "seed = 18446744073709551616: must be less than 18446744073709551616"),
        ('seed = "42"', "seed = '42': must be a valid integer"),
        ("seed = 4.2", "seed = 4.2: must be a valid integer"),
        ("seed = true", "seed = true: must be a valid integer"),
        ("seed = " + "9" * 5000, "is no valid TOML"),
        ("seed = " + "9" * 500, "seed = an integer of over 40 digits: must be"),
    ],
    "points = 6": [
        ("point = 6", "plan.point: unknown key; did you mean 'points'?"),
        ("points = 0", "plan.points = 0: must be greater than or equal to 1"),
        ("points = 61", "plan.candidates = 60: the number of candidates must be from points = 61"),
        ("points = 1e9", "plan.points = 1000000000.0: must be a valid integer"),
        ("points = 1000000000", "plan.points = 1000000000: must be less than or equal to 10000"),
    ],
    "baseline = true": [
        ("base_line = true", "variants[0].base_line: unknown key; did you mean 'baseline'?"),
        ('baseline = "of"', "variants[0].baseline = 'of': is no variant's label; did you mean"),
        ('baseline = "off"', "variants[0].baseline = 'off': is this variant itself; it must be"),
        ("baseline = 1", "variants[0].baseline = 1: must be true, or the label of the variant to"),
    ],
    "min = 0.3": [
        ("mni = 0.3", "factors.bandwidth_mbps.mni: unknown key; did you mean 'min'?"),
        ("min = 10", "factors.bandwidth_mbps.min = 10: must be less than max = 10"),
        ("min = 0", "factors.bandwidth_mbps.min = 0: must be greater than 0 with scale = 'log'"),
        ("min = nan", "factors.bandwidth_mbps.min = nan: must be a finite number"),
    ],
    "seed = 42\n": [("", "seed: is missing")],
    "repetitions = 3": [
        ("repetitions = 0", "repetitions = 0: must be greater than or equal to 1"),
        ("repetitions = 3\nstatistic = 'mode'", "statistic = 'mode': must be 'median', 'mean' or 'p95'"),
        ("repetitions = 19\nstatistic = 'p95'", "statistic = 'p95': p95 needs 20 repetitions or more"),
        ("repetitions = 40\nuntil = 'done'", "until = 'done': must be 'decided'"),
        (
            "repetitions = 39\nuntil = 'decided'",
            "until = 'decided': needs repetitions = 40 or more, which is the most that a point may have",
        ),
        (
            "repetitions = 300\nuntil = 'decided'\nstatistic = 'p95'",
            "until = 'decided': is for a median or a mean",
        ),
        ("repetitions = 3\nmargin = -0.01", "margin = -0.01: must be greater than or equal to 0"),
        ("repetitions = 3\nmargin = 1", "margin = 1: must be less than 1"),
        ("repetitions = 3\ntimeout_s = 0", "timeout_s = 0: must be greater than 0"),
        ("repetitions = 3\ntimeout_s = nan", "timeout_s = nan: must be"),
    ],
    'name = "trial-run"': [('name = "trial run"', "name = 'trial run': must be a name of letters")],
    'title = "Does it help?"': [
        ('title = ""', "title = '': must be one line of text"),
        ('title = "a\\nb"', "title = 'a\\nb': must be one line of text"),
    ],
    'method = "wsp"': [
        ('method = "wps"', "plan.method = 'wps': is no method; did you mean 'wsp'?"),
        ("method = 3", "plan.method = 3: is no method; known: 'box-behnken', 'central-composite'"),
        (
            'method = "lhs"',
            "plan.candidates: unknown key; known: 'criterion', 'iterations', 'method', 'points'",
        ),
    ],
    'method = "wsp"\n': [("", "plan.method: is missing; it must be one of wsp, lhs")],
    "candidates = 60": [
        ("candidates = 200_001", "plan.candidates = 200001: the number of candidates must be"),
        ("generator = 'sobel'", "plan.generator = 'sobel': must be 'sobol', 'halton'"),
    ],
    "max = 10,": [
        ("max = inf,", "factors.bandwidth_mbps.max = inf: must be a finite number"),
        ("max = 1e300,", "factors.bandwidth_mbps.max = 1e+300: must be a finite number"),
    ],
    "max = 100,": [("max = 99.5,", "factors.queue_packets.max = 99.5: must be a whole number")],
    "{ min = 0.01, max = 0.08 }": [
        ("0.02", "factors.loss.p = 0.02: must be a table with min and max, choices, or linked"),
        ("{}", "factors.loss.p.min: is missing"),
        ("[0.01, 0.08]", "factors.loss.p: must be a table with min and max, choices, or linked"),
    ],
    "{ min = 10, max = 100, integer = true }": [
        ("{ min = -1, max = 100, integer = true }", "factors.queue_packets.min = -1: must be a whole number"),
        ("{ choices = [10, -1] }", "factors.queue_packets.choices[1] = -1: must be a whole number"),
    ],
    '"h3"]': [('"hq"]', "factors.option.http.choices: 'hq' is given twice")],
    ', "h3"]': [("]", "factors.option.http.choices: must list at least 2 values")],
    "owd_ms = 20": [
        ("owd_ms = -20", "constants.owd_ms = -20: must be a number, 0 or more"),
        ("owd_ms = 1979-05-27", "constants.owd_ms"),
        ("owd_ms = [20]", "constants.owd_ms: must be a number, a string or a boolean"),
        ("outage_s = [2]", "constants.outage_s: must be [from, to], two numbers"),
        ("outage_s = [2, 2]", "constants.outage_s: must be [from, to], two numbers"),
        ("outage_s = [-1, 2]", "constants.outage_s: must be [from, to], two numbers"),
        ('outage_s = [1, "2"]', "constants.outage_s: must be a number"),
        ("bandwidth_mbps = 5", "constants.bandwidth_mbps: is a factor too"),
        ('"owd ms" = 20', "constants: 'owd ms' is no parameter name"),
    ],
    'loss.model = "uniform"': [('loss.q = 1\n"loss.q" = 2', "constants.loss.q: is given twice")],
    "size_bytes = [1_000, 50_000]": [
        ("size_bytes = []", "workloads[0].size_bytes: must have at least one value"),
        ("size_bytes = [1e3]", "workloads[0].size_bytes = 1000.0: must be a whole"),
        ("size_bytes = [-5]", "workloads[0].size_bytes = -5: must be a whole number"),
        ("size_bytes = [5, 5]", "workloads: 'download-5' is given twice"),
    ],
    'name = "upload"': [('nam = "upload"', "workloads[1].name: must say what the endpoints do")],
    'label = "XOR 4/5"': [
        ('label = "off"', "variants: 'off' is given twice"),
        ('label = "XOR"\nbaseline = true', "variants: 'off' and 'XOR' are baselines"),
        (
            'label = "XOR"\nbaseline = "off"\nimplementation = "rquic"\n\n'
            '[[variants]]\nlabel = "x"\nbaseline = "XOR"',
            "variants[2].baseline = 'XOR': is itself compared with 'off'; it must be a variant that names no",
        ),
    ],
    'label = "off"': [('label = ""', "variants[0].label = '': must be one line of text")],
    "code_rate = 0.8": [("code_rate = inf", "variants[1].options.code_rate = inf: must be a finite number")],
}


def test_what_is_wrong_is_refused_with_key_value_and_remedy(write) -> None:
    for right, cases in REFUSED.items():
        assert right in GOOD
        for wrong, line in cases:
            assert refusal(write(GOOD.replace(right, wrong, 1))).startswith(line)


def test_a_table_that_is_not_there_is_missed_by_name(write) -> None:
    for table in ("[plan]", "[[workloads]]", "[[variants]]"):
        paragraphs = [part for part in GOOD.split("\n\n") if not part.startswith(table)]
        assert refusal(write("\n\n".join(paragraphs))).startswith(f"{table.strip('[]')}: is missing")


def without_factors(*, plan: bool) -> str:
    paragraphs = [part for part in GOOD.split("\n\n") if not part.startswith("[factors]")]
    return "\n\n".join(part for part in paragraphs if plan or not part.startswith("[plan]"))


def test_a_design_of_constants_alone_has_one_network(write) -> None:
    one = designs.load(write(without_factors(plan=False)))
    assert one.plan().points == [{}]
    assert one.point_count == 1
    assert one.parameters == set(one.constants)


def test_a_plan_without_factors_is_refused_with_what_to_leave_out(write) -> None:
    message = "plan: is for factors, and there are none: leave it out, and the constants are the one network"
    assert refusal(write(without_factors(plan=True))) == message


def test_a_table_of_another_type_is_refused(write) -> None:
    for value in ("7", '"wsp"', "[]", "true"):
        for key in ("plan", "factors", "constants", "workloads", "variants"):
            paragraphs = [part for part in GOOD.split("\n\n") if not part.lstrip("[").startswith(key)]
            assert refusal(write(f"{key} = {value}\n" + "\n\n".join(paragraphs))).startswith(key)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, write) -> None:
    assert "No such file" in refusal(tmp_path / "absent.toml")
    assert "Is a directory" in refusal(tmp_path)
    assert "Not a directory" in refusal(write(GOOD) / "inside.toml")


NO_DESIGNS = [
    (b"name = \xff", "must be UTF-8 text; byte 7 is not"),
    (b"\x00\x00SQLite", "is no valid TOML"),
    ("name = ", "is no valid TOML"),
    ("a = " + "[" * 5000, "is nested too deeply"),
    ("a.b = 1\na = 2", "is no valid TOML"),
    ("", "name: is missing"),
    ('"two\\nlines" = 1', "two lines: unknown key"),
]


def test_a_mark_of_utf8_is_no_part_of_a_design(write) -> None:
    assert designs.load(write("\ufeff" + GOOD)) == designs.load(write(GOOD))


def test_a_file_that_is_no_design_is_refused(write) -> None:
    for content, line in NO_DESIGNS:
        assert refusal(write(content)).startswith(line)


def test_a_file_without_an_end_is_refused() -> None:
    assert "larger than" in refusal(Path("/dev/zero"))


scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from([2**64, 10**400, -(2**63), "wsp", "list", "grid", "log", 1e308]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_design_with_anything_anywhere_is_read_or_refused_and_never_crashes(data) -> None:
    table = tomllib.loads(GOOD)
    spoilt: Any = table
    while isinstance(spoilt, dict | list) and spoilt:
        keys = list(spoilt) if isinstance(spoilt, dict) else range(len(spoilt))
        key = data.draw(st.sampled_from(list(keys)))
        parent, spoilt = spoilt, spoilt[key]
        if data.draw(st.booleans()):
            break
    if data.draw(st.booleans()) and isinstance(parent, dict):
        key = data.draw(st.text(alphabet=string.printable, max_size=8))
    parent[key] = data.draw(anything)
    try:
        Design.model_validate(table).plan()
    except ValueError as refused:  # pydantic's ValidationError before planning, DesignError while planning
        assert str(refused)
