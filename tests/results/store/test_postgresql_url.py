"""No part of a password is ever in what is shown of a URL."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fecbench.results.store.error import DatabaseError
from fecbench.results.store.postgresql_url import shown, url_in, without_secrets

SECRET = "s3cret"


URLS: list[tuple[str, str]] = [
    ("postgresql://me:s3cret@host/db", "postgresql://me:***@host/db"),
    ("postgres://me:s3cret@host/db", "postgresql://me:***@host/db"),
    ("--db=postgresql://me:s3cret@host:5433/db", "--db=postgresql://me:***@host:5433/db"),
    ("postgresql://host/db?user=me&password=s3cret", "postgresql://me:***@host/db"),
    ("postgresql://host/db?user=me&pass%77ord=s3cret", "postgresql://me:***@host/db"),
    ("postgresql://me@host/db?sslpassword=s3cret", "postgresql://me@host/db?sslpassword=***"),
    ("postgresql://me:s3cret@[::1]:1/db", "postgresql://me:***@[::1]:1/db"),
    ("postgresql://me:s3cret@/db?host=/run/pg", "postgresql://me:***@/db?host=/run/pg"),
    ("postgresql://me:s3%40cret@one:1,two:2/db", "postgresql://me:***@/db?host=one,two&port=1,2"),
    ("postgresql://me:s3cret@host/db?sslmode=verify-full", "postgresql://me:***@host/db?sslmode=verify-full"),
    ("mysql://me:s3cret@host/db", "mysql://***"),
]


def test_a_password_is_left_out_wherever_it_stands_in_a_url() -> None:
    for argument, kept in URLS:
        assert without_secrets(argument) == kept


def test_what_has_no_password_stays_as_it_is() -> None:
    for argument in (
        "postgresql://me@host/db",
        "postgresql://?service=mine",
        "results.sqlite",
        "workload=a://b",
        "-v",
        "",
    ):
        assert without_secrets(argument) == argument


UNREADABLE: list[str] = [
    "postgresql://me:s3cret@host:s3cret/db",
    "postgresql://me:s3c%ZZret@host/db",
    "postgresql://me:a/s3cret@host/db",
    "postgresql://me:12/s3cret@host/db",
    "postgresql://me:a@s3cret:s3cret@host/db",
    "postgresql://me:a@s3cret@host/db",
    "postgresql://me:s3cret@[::1/db",
    "postgresql://me:s3cret@host/db?s3cret=s3cret",
    "mysql://me:s3cret@host/db",
]


def test_a_url_that_cannot_be_read_is_refused_without_any_part_of_it() -> None:
    for url in UNREADABLE:
        with pytest.raises(DatabaseError) as refused:
            shown(url)
        assert SECRET[:3] not in str(refused.value)
        assert "\n" not in str(refused.value)
        assert "postgresql://USER@HOST:PORT/DATABASE" in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


@given(
    parts=st.lists(st.text(st.sampled_from("@:/?#%&= '\"\\[]1")), min_size=1, max_size=4),
    place=st.sampled_from(["postgresql://me:{}@host/db", "postgresql://host/db?user=me&password={}"]),
)
def test_whoever_forgets_to_encode_a_password_does_not_see_a_part_of_it(parts: list[str], place: str) -> None:
    password = "s3cret".join(["", *parts, ""])
    kept = without_secrets(place.format(password))
    assert SECRET not in kept


@given(st.text())
def test_any_text_may_be_shown_and_only_what_is_behind_the_scheme_changes(text: str) -> None:
    kept = without_secrets(text)
    assert kept.startswith(text.removesuffix(url_in(text)))
