"""The design of an interoperability campaign has a variant for each pair that can meet."""

from pathlib import Path

import pytest

from fecbench import designs
from fecbench.designs import Design
from fecbench.runners.campaign.experiment import Experiment
from fecbench.runners.campaign.order import trial_keys
from fecbench.runners.commands.console.interop_pairs import End, design_of_pairs, end_of, ends_there_are
from fecbench.runners.implementations.finding import Implementations, ours
from tests.support.refusals import refusal_of


@pytest.fixture
def design() -> Design:
    return designs.load(designs.catalogue()["interop"])


@pytest.fixture
def available() -> Implementations:
    return ours()


def ends(available: Implementations, *names: str) -> list[End]:
    return [end_of(name, available) for name in names]


def test_every_client_meets_every_server(design: Design, available: Implementations) -> None:
    pairs, cells = design_of_pairs(
        design, ends(available, "noq-fec", "rquic", "noq-fec:scheme=rlc,controller=tail,n=5,k=4")
    )
    assert cells == []
    assert len(pairs.variants) == 9
    experiment = Experiment(pairs, pairs.plan().points, available)
    met = {
        tuple(arm.options_set({})["scheme"] for arm in (arm, experiment.arms[arm.server]))
        for arm in experiment.arms.values()
    }
    schemes = ("none", "plain", "rlc")
    assert met == {(client, server) for client in schemes for server in schemes}


def test_fec_is_owed_where_both_ends_have_the_same(design: Design, available: Implementations) -> None:
    names = ("noq-fec:scheme=rlc", "noq-fec:scheme=xor", "noq-fec:scheme=rlc,congestion_control=bbr3")
    pairs, _ = design_of_pairs(design, ends(available, *names))
    experiment = Experiment(pairs, pairs.plan().points, available)
    owing = {}
    for key in trial_keys(pairs, 1):
        (pair,) = experiment.task(key, "wire").pairs
        owing[key.variant] = {end.owes_repair and end.owes_source for end in (pair.client, pair.server)}
    for client in names:
        for server in names:
            label = client if client == server else f"{client}, server {server}"
            same = ("xor" in client) == ("xor" in server)
            assert owing[label] == {same}, label


def test_an_end_without_downloads_meets_nobody(design: Design, available: Implementations) -> None:
    pairs, cells = design_of_pairs(design, ends(available, "udp", "noq-fec"))
    assert [variant.label for variant in pairs.variants] == ["noq-fec"]
    assert {(cell.client, cell.server) for cell in cells} == {
        ("udp", "udp"), ("udp", "noq-fec"), ("noq-fec", "udp")
    }  # fmt: skip
    assert {(cell.state, cell.reason) for cell in cells} == {("unsupported", "udp has no workload download")}


def test_ends_that_speak_different_protocols_cannot_meet_and_those_that_speak_the_same_do(
    design: Design, available: Implementations
) -> None:
    for client, server, reason in (
        ("noq-fec", "tcp", "noq-fec speaks hq-interop over QUIC, tcp TLS over TCP"),
        ("rquic", "ngtcp2", "rquic speaks hq-interop over QUIC, ngtcp2 HTTP/3 over QUIC"),
        ("noq-fec:http=h3", "rquic", "noq-fec:http=h3 speaks HTTP/3 over QUIC, rquic hq-interop over QUIC"),
    ):
        _, cells = design_of_pairs(design, ends(available, client, server))
        met = [(cell.client, cell.server, cell.state) for cell in cells]
        assert met == [(client, server, "unsupported"), (server, client, "unsupported")]
        assert cells[0].reason == reason
    for client, server in (("noq-fec:http=h3", "ngtcp2"), ("quic-go", "rquic")):
        pairs, cells = design_of_pairs(design, ends(available, client, server))
        assert (len(pairs.variants), cells) == (4, [])


def test_options_are_of_their_type(available: Implementations) -> None:
    end = end_of("noq-fec:scheme=rlc,controller=tail,n=5,k=4,window_trim=false", available)
    assert end.options == {**{"scheme": "rlc", "controller": "tail", "n": 5, "k": 4, "window_trim": False}}


NO_ENDS: list[tuple[str, str]] = [
    ("noq", "end 'noq': there is no implementation 'noq'"),
    ("noq-fec:scheme", "end 'noq-fec:scheme': 'scheme': must be OPTION=VALUE"),
    ("noq-fec:shceme=rlc", "noq-fec has no option 'shceme'; did you mean 'scheme'"),
    ("noq-fec:n=many", "option n = 'many'"),
    ("noq-fec:window_trim=no", "option window_trim = 'no'"),
]


def test_what_is_no_end_is_refused_by_name(available: Implementations) -> None:
    for text, line in NO_ENDS:
        assert line in refusal_of(end_of, text, available)


def test_ends_that_are_the_same_or_none_of_which_can_meet_are_refused(
    design: Design, available: Implementations
) -> None:
    for names, message in (
        (("noq-fec", "noq-fec"), "are the same"),
        (("noq-fec", "noq-fec:scheme=none"), "are the same"),
        (("udp",), "udp has no workload download"),
    ):
        assert message in refusal_of(design_of_pairs, design, ends(available, *names))


def test_an_image_that_was_not_unpacked_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "impl.toml").write_text(
        'name = "image"\ntitle = "t"\ncontract = "interop"\nworkloads = ["download"]\n'
        '[interop]\nbundle = "unpacked"\n'
    )
    there, (line,) = ends_there_are(Implementations([tmp_path]))
    assert there == []
    assert line.startswith(f"image: {folder}/unpacked/config.json: ")
    assert "umoci unpack" in line


def test_by_default_all_take_part_that_are_built_and_fec_inside_quic_twice(
    available: Implementations,
) -> None:
    there, left_out = ends_there_are(available)
    names = [end.name for end in there]
    assert {"noq-fec", "noq-fec:scheme=rlc", "rquic"} <= set(names)
    assert "udp has no workload download" in left_out
    absent = {name for name in ("aioquic", "quiche", "quinn") if available.find(name, "x").missing_programs()}
    assert absent.isdisjoint(names)
    for name in absent:
        assert any(line.startswith(f"{name}: ") and "make build-all" in line for line in left_out)
