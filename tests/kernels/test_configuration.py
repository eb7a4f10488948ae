"""A kernel that lacks what trials need is refused before it is built."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kernels.configuration import differing, options

ASKED = "# The clock.\nCONFIG_TIME_TRAVEL=y\n\nCONFIG_HZ=100\n# CONFIG_SLOW is not set\n"


def test_a_configuration_with_all_that_was_asked_for_is_good() -> None:
    configuration = "CONFIG_TIME_TRAVEL=y\nCONFIG_HZ=100\nCONFIG_MORE=y\n# CONFIG_SLOW is not set\n"
    # An option that cannot be chosen is one that is not set.
    for same in (configuration, "CONFIG_TIME_TRAVEL=y\nCONFIG_HZ=100\n"):
        assert differing(options(ASKED), options(same)) == []


def test_an_option_with_another_value_is_named() -> None:
    for configuration, lacking in {
        "CONFIG_HZ=100\n": "CONFIG_TIME_TRAVEL",
        "# CONFIG_TIME_TRAVEL is not set\nCONFIG_HZ=100\n": "CONFIG_TIME_TRAVEL",
        "CONFIG_TIME_TRAVEL=m\nCONFIG_HZ=100\n": "CONFIG_TIME_TRAVEL",
        "CONFIG_TIME_TRAVEL=y\nCONFIG_HZ=1000\n": "CONFIG_HZ",
        "CONFIG_TIME_TRAVEL=y\nCONFIG_HZ=100\nCONFIG_SLOW=y\n": "CONFIG_SLOW",
    }.items():
        [problem] = differing(options(ASKED), options(configuration))
        assert problem.startswith(f"{lacking} is ")


def test_a_line_that_is_no_option_is_named_with_its_number() -> None:
    with pytest.raises(ValueError, match=r"line 2: 'CONFIG_B y'"):
        options("CONFIG_A=y\nCONFIG_B y\n")


def test_the_program_names_the_file_and_the_option(tmp_path: Path) -> None:
    options, configuration = tmp_path / "asked", tmp_path / "configuration"
    options.write_text(ASKED)
    configuration.write_text("CONFIG_HZ=100\n")
    program = Path(__file__).with_name("configuration.py")
    result = subprocess.run([sys.executable, program, options, configuration], capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith(f"{configuration}: CONFIG_TIME_TRAVEL is n, not y")
