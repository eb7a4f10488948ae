"""Where implementations are found, and what disturbs whom."""

import pytest

from runners.implementations import finding as implementations
from runners.refusal import Refusal


def test_an_unknown_implementation_is_answered_with_the_nearest_name() -> None:
    with pytest.raises(Refusal, match="did you mean 'rquic'"):
        implementations.find("rquick", "design.toml")


def test_every_implementation_here_can_be_read() -> None:
    for implementation in implementations.all_of_them().values():
        assert implementation.options({}, "defaults")
        assert implementation.declaration.fec is not None
        implementation.options(implementation.declaration.fec.off, "fec.off")
