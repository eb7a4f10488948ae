"""impl.toml files: what is wrong is named, with the file and the key."""

from pathlib import Path

import pytest

from runners.implementations.implementation import load
from runners.refusal import Refusal


def rewrite(folder: Path, before: str, after: str) -> None:
    """Write the impl.toml with another text in the place of `before`."""
    text = (folder / "impl.toml").read_text()
    assert before in text
    (folder / "impl.toml").write_text(text.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('name = "example"', 'name = "other"', "must be that of the folder"),
        ('title = "An example"', "", "title: is missing"),
        ('title = "An example"', "title = 3", "title = 3"),
        ('build = ["true"]', "build = []", "build"),
        ('default = "none"', 'default = "rs"', "must be one of none, xor"),
        ('type = "integer"', 'type = "int"', "options.window.type"),
        ("[fec]", "[fek]", "fek"),
        ("off = { scheme =", "off = { shceme =", "there is no option 'shceme'; did you mean 'scheme'"),
        ('off = { scheme = "none"', 'off = { scheme = "off"', "scheme = 'off' must be one of none, xor"),
        ("workloads =", 'series = ["../cwnd"]\nworkloads =', "series.0 = '../cwnd'"),
        ("workloads =", 'local_addresses = "yes"\nworkloads =', "local_addresses = 'yes'"),
        ('client = ["build/example"', 'client = [""', "client.0 = ''"),
        ('client = ["build/example"', 'client = ["build\\u0000"', "client.0 = "),
        ("[options.scheme]", "[options.scheme", "impl.toml"),
    ],
)
def test_a_wrong_declaration_is_refused(folder: Path, before: str, after: str, said: str) -> None:
    rewrite(folder, before, after)
    with pytest.raises(Refusal) as refusal:
        load(folder)
    assert said in str(refusal.value)
    assert str(folder / "impl.toml") in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_a_declaration_does_not_say_is_none_of_it(folder: Path) -> None:
    declaration = load(folder).declaration
    assert (declaration.series, declaration.local_addresses) == ([], False)


def test_series_and_local_addresses_are_declared(folder: Path) -> None:
    rewrite(folder, "workloads =", 'series = ["cwnd"]\nlocal_addresses = true\nworkloads =')
    declaration = load(folder).declaration
    assert (declaration.series, declaration.local_addresses) == (["cwnd"], True)
