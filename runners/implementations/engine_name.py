"""The engines that run trials: namespaces of this machine, simulators in virtual time, a real path."""

from typing import Literal

EngineName = Literal["local", "virtual", "field"]
