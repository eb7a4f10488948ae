"""impl.toml files: what is wrong is named, with the file and the key."""

import tomllib
from pathlib import Path

from fecbench.runners.implementations.implementation import load
from tests.support.refusals import refusal_of


def rewrite(folder: Path, before: str, after: str) -> None:
    """Write the impl.toml with another text in the place of `before`."""
    text = (folder / "impl.toml").read_text()
    assert before in text
    (folder / "impl.toml").write_text(text.replace(before, after))


WRONG: list[tuple[str, str, str]] = [
    ('name = "example"', 'name = "other"', "must be that of the folder"),
    ('title = "An example"', "", "title: is missing"),
    ('title = "An example"', "title = 3", "title = 3"),
    ('build = ["true"]', "build = []", "build"),
    ('default = "none"', 'default = "rs"', "must be one of none, xor"),
    ('type = "integer"', 'type = "int"', "options.window.type"),
    ("[fec]", "[fek]", "fek"),
    ("off = { scheme =", "off = { shceme =", "there is no option 'shceme'; did you mean 'scheme'"),
    ('off = { scheme = "none"', 'off = { scheme = "off"', "scheme = 'off' must be one of none, xor"),
    ("[fec]", "[fec]\nalso_off = [{}]", "fec.also_off[0]"),
    ("[fec]", '[fec]\nalso_off = [{ code = "no" }]', "there is no option 'code'"),
    ("[fec]", '[fec]\nrepair_may_lack = [{ window = "x" }]', "option window = 'x' must be of type integer"),
    ('type = "integer"', 'type = "integer"\nonly_with = { code = ["xor"] }', "there is no option 'code'"),
    (
        'type = "integer"',
        'type = "integer"\nonly_with = { scheme = ["rs"] }',
        "option scheme = 'rs' must be one of none, xor",
    ),
    ("workloads =", 'series = ["../cwnd"]\nworkloads =', "series[0] = '../cwnd'"),
    ("workloads =", 'local_addresses = "yes"\nworkloads =', "local_addresses = 'yes'"),
    ("workloads =", "multipath = true\nworkloads =", "needs local_addresses = true"),
    ("workloads =", 'transport = "sctp"\nworkloads =', "transport = 'sctp'"),
    ('client = ["build/example"', 'client = [""', "client[0] = ''"),
    ('client = ["build/example"', 'client = ["build\\u0000"', "client[0] = "),
    ("[options.scheme]", "[options.scheme", "impl.toml"),
]


def test_a_wrong_declaration_is_refused(folder: Path) -> None:
    sound = (folder / "impl.toml").read_text()
    for before, after, message in WRONG:
        (folder / "impl.toml").write_text(sound)
        rewrite(folder, before, after)
        line = refusal_of(load, folder)
        assert message in line and str(folder / "impl.toml") in line


def test_a_mark_of_utf8_is_no_part_of_a_declaration(folder: Path) -> None:
    without = load(folder).declaration
    (folder / "impl.toml").write_text("\ufeff" + (folder / "impl.toml").read_text())
    assert load(folder).declaration == without


def test_what_is_declared_is_there_and_what_is_not_said_is_none_of_it(folder: Path) -> None:
    more = 'series = ["cwnd"]\nlocal_addresses = true\nmultipath = true\ncontent_seed_hex = true\nworkloads ='
    for series, declared in (([], False), (["cwnd"], True)):
        declaration = load(folder).declaration
        assert (declaration.series, declaration.transport) == (series, "udp")
        assert {declaration.local_addresses, declaration.multipath, declaration.content_seed_hex} == {
            declared
        }
        rewrite(folder, "workloads =", more)


def test_fec_is_on_unless_all_options_that_turn_it_off_are_chosen(folder: Path) -> None:
    rewrite(folder, "[fec]", '[fec]\nalso_off = [{ scheme = "xor", window = 1 }]')
    switch = load(folder).declaration.fec
    assert switch is not None
    options = {"scheme": "xor", "window": 20, "pacing": True}
    assert switch.is_on(options)
    assert not switch.is_on(options | {"scheme": "none"})
    assert not switch.is_on(options | {"window": 1})


def test_a_repair_symbol_is_owed_unless_options_are_declared_with_which_it_may_lack(folder: Path) -> None:
    rewrite(folder, "[fec]", "[fec]\nrepair_may_lack = [{ window = 1 }, { pacing = false }]")
    switch = load(folder).declaration.fec
    assert switch is not None
    options = {"scheme": "xor", "window": 20, "pacing": True}
    assert switch.owes_repair(options)
    assert not switch.owes_repair(options | {"window": 1})
    assert not switch.owes_repair(options | {"pacing": False})


def test_what_need_not_be_protected_owes_neither_symbol(folder: Path) -> None:
    rewrite(folder, "[fec]", "[fec]\nsource_may_lack = [{ pacing = false }]")
    switch = load(folder).declaration.fec
    assert switch is not None
    for pacing in (True, False):
        options = {"scheme": "xor", "window": 5, "pacing": pacing}
        assert (switch.owes_source(options), switch.owes_repair(options)) == (pacing, pacing)


def beside(folder: Path, text: str) -> Path:
    """Return the folder `second` beside this one, which shares its options and has this text, too."""
    second = folder.parent / "second"
    second.mkdir(exist_ok=True)
    sound = (folder / "impl.toml").read_text()
    rest = sound.partition("[options.scheme]")[0].replace('"example"', '"second"')
    (second / "impl.toml").write_text(f"{rest}{text}")
    return second


def test_options_of_another_implementation_are_its_own_and_in_its_text(folder: Path) -> None:
    first, second = load(folder), load(beside(folder, 'options_of = "example"\n'))
    assert second.declaration.options == first.declaration.options != {}
    assert second.declaration.fec == first.declaration.fec is not None
    written, text = tomllib.loads(first.text), tomllib.loads(second.text)
    assert {name: text[name] for name in ("options", "fec")} == {
        name: written[name] for name in ("options", "fec")
    }


WRONG_OPTIONS_OF = {
    'options_of = "exampel"': "options_of = 'exampel': {parent}/exampel/impl.toml: ",
    'options_of = "../example"': "options_of = '../example': must be the name of a folder beside it",
    'options_of = ""': "options_of = '': must be the name of a folder beside it",
    "options_of = 3": "options_of = 3: must be the name of a folder beside it",
    'options_of = "second"': "options_of = 'second': second has no options of its own; name 'second'",
    'options_of = "example"\n[fec]\noff = {}': "[fec] is that of example; leave one of the two out",
}


def test_options_of_nothing_of_two_or_of_a_circle_are_refused(folder: Path) -> None:
    for text, message in WRONG_OPTIONS_OF.items():
        second = beside(folder, text)
        line = refusal_of(load, second)
        assert line.startswith(f"{second}/impl.toml: "), line
        assert message.format(parent=folder.parent) in line
