"""A note on simulators, for every command that starts some."""

from fecbench.runners.commands.console.terminal import note
from fecbench.runners.trial import confinement


def note_free_simulators() -> None:
    """Tell where simulators are not kept from what is the user's."""
    if why := confinement.why_simulators_are_free():
        note(why)
