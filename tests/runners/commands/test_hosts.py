"""Hosts of a campaign, by the commands `show` and `aa`."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fecbench.results.analysis import hosts
from fecbench.results.store.database import Database
from fecbench.results.store.records import CampaignInfo
from fecbench.runners.commands import aa
from tests.results.analysis.test_hosts import two_hosts  # noqa: F401 - fixtures
from tests.results.conftest import new_campaign, sqlite  # noqa: F401 - fixtures


def test_show_and_aa_tell_of_hosts(
    two_hosts: tuple[Database, CampaignInfo],  # noqa: F811
    fecbench_here: Callable[..., Any],
) -> None:
    db = two_hosts[0].address
    output = fecbench_here("show", "--hosts", "--json", "--db", db)
    (campaign,) = json.loads(output.stdout)["campaigns"]
    assert [(host["host"], host["done"], host["invalid"]) for host in campaign["hosts"]] == [
        ("ada", 80, 0),
        ("bob", 80, 1),
    ]
    assert "Hosts differ: bob against ada" in fecbench_here("show", "--hosts", "--db", db).stdout
    for form in (["--between-hosts"], ["hosts"]):
        compared = fecbench_here("aa", *form, "--db", db)
        assert compared.returncode == 1, compared
        assert "they differ by more than the noise" in compared.stdout
    assert "leave out" in fecbench_here("show", "--hosts", "--digest", "--db", db).refusal()


def test_hosts_differ_where_two_of_several_do(
    two_hosts: tuple[Database, CampaignInfo],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (difference,) = hosts.differences(*two_hosts, "")
    monkeypatch.setattr(hosts, "differences", lambda *_: [difference, replace(difference, p_value=1.0)])
    assert aa.hosts(db=two_hosts[0].address) == 1
