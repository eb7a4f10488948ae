"""impl.toml of the QUIC interop runner's contract, and OCI bundles: what is wrong is named."""

import json
from pathlib import Path, PurePosixPath

import pytest

from fecbench.runners.implementations.implementation import Implementation, load
from fecbench.runners.implementations.interop import filled, inside, load_bundle
from fecbench.runners.refusal import Refusal
from tests.support.refusals import refusal_of

COMMANDS = 'server = ["./run.sh"]\nclient = ["./run.sh"]'
CC = '[options.cc]\ntype = "string"\nchoices = ["reno", "cubic"]\ndefault = "cubic"\nhelp = "of both"'


def declare(folder: Path, interop: str = COMMANDS, above: str = "", below: str = "") -> Implementation:
    (folder / "example").mkdir(exist_ok=True)
    (folder / "example" / "impl.toml").write_text(
        'name = "example"\ntitle = "An example"\ncontract = "interop"\nworkloads = ["download"]\n'
        f"{above}\n[interop]\n{interop}\n{below}\n"
    )
    return load(folder / "example")


WRONG_TABLES: list[tuple[str, str]] = [
    ("", "interop: must have a bundle, or the commands server and client"),
    ('server = ["./run.sh"]', "interop: must have a bundle, or the commands server and client"),
    (f'{COMMANDS}\nbundle = "unpacked"', "interop: has a bundle and commands; it must be one or the other"),
    (f'{COMMANDS}\ntestcase = ""', "interop.testcase = ''"),
    (f'{COMMANDS}\nimage = "x"', "interop.image: is no key here"),
    (f'{COMMANDS}\nenv = {{ ROLE = "x" }}', "env.ROLE is set by the harness; leave it out"),
    (f'{COMMANDS}\nenv = {{ "A B" = "x" }}', "interop.env.A B"),
    (f"{COMMANDS}\nparams = 3", "interop.params"),
    (f'{COMMANDS}\nparams = {{ sever = "x" }}', "interop.params"),
    (f'{COMMANDS}\nparams = "--cc={{cc}}"', "there is no option 'cc'"),
    (f'{COMMANDS}\nparams = "{{cc!r:>{{n}}}}"', "between braces stands the name of an option"),
    (f'{COMMANDS}\nparams = "{{"', "Single '{'"),
]


def test_a_wrong_table_is_refused_in_one_line(tmp_path: Path) -> None:
    for interop, message in WRONG_TABLES:
        line = refusal_of(declare, tmp_path, interop)
        assert message in line and line.startswith(f"{tmp_path}/example/impl.toml: ")


def test_what_its_contract_does_not_have_is_refused(tmp_path: Path) -> None:
    refusal = refusal_of(declare, tmp_path, COMMANDS, 'simulator = ["x"]')
    assert "simulator is not of the interop contract; leave it out" in refusal
    refusal = refusal_of(declare, tmp_path, COMMANDS, "", CC)
    assert "option cc reaches nobody: name it as {cc} in env or params" in refusal


def test_a_table_of_the_other_contract_is_refused(tmp_path: Path) -> None:
    declare(tmp_path)
    path = tmp_path / "example" / "impl.toml"
    path.write_text(path.read_text().replace('"interop"', '"fecbench"'))
    with pytest.raises(Refusal, match=r'impl.toml: \[interop\] needs contract = "interop"$'):
        load(path.parent)


def test_options_reach_the_program_by_their_names(tmp_path: Path) -> None:
    params = '{ server = "--cc={cc} {{}}", client = "-v" }'
    interop = declare(
        tmp_path, f'{COMMANDS}\nparams = {params}\nenv = {{ CC = "{{cc}}" }}', below=CC
    ).declaration
    assert interop.interop is not None
    options = {"cc": "reno", "quiet": True}
    assert filled(interop.interop.params_of("server"), options) == "--cc=reno {}"
    assert filled(interop.interop.params_of("client"), options) == "-v"
    assert filled("{quiet}", options) == "true"


def bundle(folder: Path, **changes: object) -> Path:
    (folder / "rootfs" / "usr" / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "rootfs" / "usr" / "bin" / "program").touch()
    (folder / "rootfs" / "work").mkdir(exist_ok=True)
    process = {"args": ["program"], "env": ["PATH=/bin", "A=b=c"], "cwd": "/work"}
    configuration = {"process": process, "root": {"path": "rootfs"}, **changes}
    (folder / "config.json").write_text(json.dumps(configuration))
    return folder


def test_the_program_of_a_bundle_is_found_through_links_inside_of_it(tmp_path: Path) -> None:
    folder = bundle(tmp_path / "unpacked")
    (folder / "rootfs" / "bin").symlink_to("/usr/bin")
    (folder / "sha256_0.mtree").touch()
    loaded = load_bundle(folder)
    assert (loaded.environment, loaded.working_folder) == ({"PATH": "/bin", "A": "b=c"}, "/work")
    assert loaded.program == folder / "rootfs" / "usr" / "bin" / "program"
    assert loaded.files == sorted([folder / "config.json", folder / "sha256_0.mtree", loaded.program])


def test_no_link_leads_out_of_a_bundle(tmp_path: Path) -> None:
    root = tmp_path / "rootfs"
    root.mkdir()
    (root / "up").symlink_to("../../..")
    (root / "etc").symlink_to("/etc")
    (root / "round").symlink_to("round")
    assert inside(root, PurePosixPath("/up/etc/passwd")) is None, "round and round"
    (root / "etc").unlink()
    assert inside(root, PurePosixPath("/up/etc/passwd")) == root / "etc" / "passwd"
    assert inside(root, PurePosixPath("/../../a")) == root / "a"
    assert inside(root, PurePosixPath("/round/x")) is None


WRONG_BUNDLES: list[tuple[dict[str, object], str]] = [
    ({"process": {"args": []}}, "process.args = []"),
    ({"process": {"args": ["x"], "cwd": "work"}}, "process.cwd = 'work'"),
    ({"process": {"args": ["x"], "cwd": "/nowhere"}}, "process.cwd = '/nowhere': must be a folder"),
    ({"process": {"args": ["x"], "cwd": "/logs/x"}}, "process.cwd = '/logs/x': must be a folder"),
    ({"root": {}}, "root.path: is missing"),
    ({"root": {"path": "nowhere"}}, "root.path = 'nowhere': must be a folder of the bundle"),
    ({"root": {"path": "/"}}, "root.path = '/': must be inside of the bundle"),
    ({"root": {"path": "out"}}, "root.path = 'out': must be inside of the bundle"),
    ({"root": {"path": "."}}, "root.path = '.': must be inside of the bundle"),
]


def test_a_wrong_bundle_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    (folder / "out").symlink_to("/usr")
    for changes, message in WRONG_BUNDLES:
        line = refusal_of(load_bundle, bundle(folder, **changes))
        assert line.startswith(f"{folder}/config.json: {message}")


def test_a_bundle_that_is_missing_is_told_with_what_makes_one(tmp_path: Path) -> None:
    implementation = declare(tmp_path, 'bundle = "unpacked"')
    with pytest.raises(Refusal, match=r"^example: .*/unpacked/config.json: .*`umoci unpack`"):
        implementation.check_built()


def test_the_program_of_a_bundle_has_to_be_there(tmp_path: Path) -> None:
    implementation = declare(tmp_path, 'bundle = "unpacked"')
    folder = bundle(tmp_path / "example" / "unpacked")
    with pytest.raises(Refusal, match="rootfs/bin/program is missing"):
        implementation.check_built()
    (folder / "rootfs" / "bin").symlink_to("usr/bin")
    (folder / "rootfs" / "usr" / "bin" / "program").chmod(0o755)
    implementation.check_built()
    assert implementation.command("client") == ["program"]
