"""A URL that has a password is refused wherever it stands, and no part of the password is shown."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fecbench.results.store.error import DatabaseError
from fecbench.results.store.postgresql_url import check_url, refuse_password

SECRET = "s3cret"
PLACES = (
    "postgresql://me:{}@host/db",
    "postgres://me:{}@host/db",
    "--db=postgresql://me:{}@host:5433/db",
    "postgresql://:{}@host/db",
    "postgresql://me:{}@[::1]:1/db",
    "postgresql://me:{}@/db?host=/run/pg",
    "postgresql://me:{}@one:1,two:2/db",
    "postgresql://host/db?user=me&password={}",
    "postgresql://host/db?user=me&pass%77ord={}",
    "postgresql://me@host/db?sslmode=require&sslpassword={}",
    "postgresql://me@host/db?scram_client_key={}",
    "mysql://me:{}@host/db",
)
encoded_or_not = st.lists(st.text(st.sampled_from("@:/?#%&= '\"\\[]1\n")), min_size=1, max_size=4)


@given(parts=encoded_or_not, place=st.sampled_from(PLACES))
@example(["", ""], PLACES[0])
@example(["a@", ""], PLACES[0])
@example(["12/", ""], PLACES[0])
def test_a_password_is_refused_in_a_line_that_names_pgpass_and_shows_none_of_it(
    parts: list[str], place: str
) -> None:
    with pytest.raises(DatabaseError) as refused:
        refuse_password(place.format(SECRET.join(["", *parts, ""])))
    line = str(refused.value)
    assert SECRET[:3] not in line
    assert "\n" not in line
    assert "~/.pgpass" in line
    assert "postgresql://USER@HOST:PORT/DATABASE" in line


UNREADABLE = [
    "postgresql://me:s3cret",
    "postgresql://me@host:s3cret/db",
    "postgresql://me@[::1/db",
    "postgresql://me@host/db/s3cret",
]


@pytest.mark.parametrize("url", UNREADABLE)
def test_a_url_of_another_form_is_refused_without_any_part_of_it(url: str) -> None:
    with pytest.raises(DatabaseError, match=re.escape("postgresql://***: ")):
        check_url(url)


@pytest.mark.parametrize(
    "word",
    [
        *(
            "postgresql://me@host/db",
            "postgresql://?service=mine",
            "postgresql:///db",
            "--db=postgresql://h:1/",
        ),
        *("postgres://me%40here@one:1,[::1]:2/db?sslmode=verify-full&host=/run/pg", "postgresql://"),
        *("results.sqlite", "workload=a://b", "tls://host:8786", "-v", ""),
    ],
)
def test_a_word_without_a_password_is_taken(word: str) -> None:
    refuse_password(word)
