"""Bad files, as they come: mutated designs, impl.toml files and endpoint messages give one line, never a
traceback. Keys and values of a design are tested in tests/designs."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fecbench.checkout import REPOSITORY
from fecbench.runners.implementations.implementation import load
from fecbench.runners.refusal import Refusal
from fecbench.runners.trial.endpoint import Endpoint

ENDED = subprocess.Popen(["true"], start_new_session=True)

DESIGN = (REPOSITORY / "designs" / "catalog" / "smoke.toml").read_text()
DECLARATION = (REPOSITORY / "quic-impls" / "rquic" / "impl.toml").read_text()
MESSAGES = b'{"event": "ready"}\n{"event": "done", "metrics": {"dct_s": 1.5, "packets_sent": 40}}\n'

# Scraps that a person may type, or a broken disk may hold, in the place of something right.
SCRAPS = (
    st.sampled_from(
        ["", " ", '"', "'''", "\n", "[", "]", "[[", "{", "}", "=", ",", ".", "#", "\\", "\0", "\x1b", "é"]
    )
    | st.sampled_from(
        ["-1", "0", "1e999", "-0.0", "nan", "inf", "0x10", "9" * 20, "1979-05-27", "true", "[1, 2]"]
    )
    | st.sampled_from(
        ['"text"', "{ min = 1, max = 0 }", "{ min = 1, max = 2, scale = 3 }", "../..", "/dev/zero"]
    )
    | st.text(max_size=8)
)


@st.composite
def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with a few places replaced, words and values more often than others."""
    for _ in range(draw(st.integers(1, 3))):
        starts = [n for n in range(len(text)) if text[n : n + 1].isalnum() != text[n - 1 : n].isalnum()]
        begin = draw(st.sampled_from(starts or [0]) | st.integers(0, len(text)))
        end = (
            draw(st.sampled_from([n for n in starts if n > begin] or [begin]))
            if draw(st.booleans())
            else begin
        )
        text = text[:begin] + draw(SCRAPS) + text[min(end, begin + 200) :]
    return text


many = settings(
    max_examples=3 * settings().max_examples,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def assert_planned_or_refused(fecbench: Any, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    result = fecbench("plan", path, "--json", "--no-measure")
    if result.returncode != 0:
        assert result.refusal().startswith("fecbench: ")
        assert len(result.refusal()) > len("fecbench: \n")


@many
@given(mutated(DESIGN))
@example("seed = " + "9" * 5000)
@example("seed = " + "[" * 5000)
def test_a_mutated_design_is_planned_or_refused_in_one_line(
    fecbench_here: Any, tmp_path: Path, text: str
) -> None:
    content = text.encode(errors="surrogatepass")
    assert_planned_or_refused(fecbench_here, tmp_path / "design.toml", content)


@many
@given(st.binary(max_size=200))
def test_a_design_of_any_bytes_is_refused_in_one_line(
    fecbench_here: Any, tmp_path: Path, content: bytes
) -> None:
    assert_planned_or_refused(fecbench_here, tmp_path / "design.toml", content)


@many
@given(mutated(DECLARATION))
@example("name = " + "9" * 5000)
@example("name = " + "[" * 5000)
def test_a_mutated_impl_toml_is_read_or_refused_by_name(text: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root) / "rquic"
        folder.mkdir()
        (folder / "impl.toml").write_bytes(text.encode(errors="surrogatepass"))
        try:
            load(folder).options({}, "here")
        except Refusal as error:
            assert str(error).startswith(f"{folder}/impl.toml: ")


def endpoint_that_is_killed() -> Endpoint:
    """An endpoint whose process has ended: a kill of it harms nobody."""
    endpoint = Endpoint("client", ENDED)
    endpoint.exit_code = 0
    return endpoint


@many
@given(
    mutated(MESSAGES.decode()).map(lambda text: text.encode(errors="surrogatepass"))
    | st.binary(max_size=200),
    st.integers(1, 50),
)
@example(b'{"event": "done", "metrics": {"dct\\u0000s": 1}}\n', 50)
@example(b'{"event": "done", "metrics": {"' + b"x" * 10_000 + b'": 1}}\n', 50)
@example(b'{"event": "done", "metrics": {"n": 1' + b"0" * 5000 + b"}}\n", 50)
@example(b"[" * 60_000 + b"\n", 1000)
def test_mutated_messages_are_taken_or_complained_about_in_one_line(written: bytes, cut: int) -> None:
    endpoint = endpoint_that_is_killed()
    for begin in range(0, len(written), cut):
        endpoint.take_stdout(written[begin : begin + cut])
    assert "\n" not in endpoint.complaint
    assert len(endpoint.complaint) < 500
    for name in endpoint.metrics or {}:
        assert name.isprintable()
        assert len(name) <= 100


@given(st.binary())
def test_what_is_kept_of_standard_error_can_be_stored_as_text(written: bytes) -> None:
    endpoint = endpoint_that_is_killed()
    endpoint.take_stderr(written)
    endpoint.stderr.encode()
    assert "\0" not in endpoint.stderr  # PostgreSQL stores no NUL
