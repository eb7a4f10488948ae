"""The names of what emulates a link; `topology` knows which of them this machine has."""

from typing import Literal

Backend = Literal["auto", "wire", "netem"]
BACKENDS: tuple[Backend, ...] = ("auto", "wire", "netem")
