"""The `fecbench` command. Bad input ends it with one line and status 2; no result is lost by an interrupt."""

import signal
import sys
from types import FrameType

import typer

from designs import DesignError
from dropper.command import DropperError
from dropper.model import LossModelError
from results.store.database import DatabaseError
from runners.commands.aa import aa
from runners.commands.calibrate import calibrate
from runners.commands.clean import clean
from runners.commands.doctor import doctor
from runners.commands.explain import explain
from runners.commands.export import export
from runners.commands.implementations import implementations
from runners.commands.losses import losses
from runners.commands.page import page
from runners.commands.plan import plan
from runners.commands.replay import replay
from runners.commands.report import report
from runners.commands.run import run
from runners.commands.show import show
from runners.commands.topo import topo
from runners.refusal import Refusal
from runners.trial.isolation import IsolationError
from topologies.link import LinkError, TopologyError

BAD_INPUT = 2

app = typer.Typer(
    help="In which networks does forward erasure correction help QUIC, by how much, and at what cost?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(doctor)
app.command()(calibrate)
app.command()(implementations)
app.command()(plan)
app.add_typer(losses, name="losses")
app.add_typer(page, name="page")
app.command()(run)
app.command()(show)
app.command()(aa)
app.command()(replay)
app.command()(report)
app.command()(explain)
app.command()(export)
app.command()(topo)
app.command()(clean)


class Interrupted(BaseException):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def main() -> None:
    """The entry point: 0 for success, 1 when something was not ok, 2 for bad input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        status = app(standalone_mode=False)
    except typer.TyperException as error:
        _end(f"{error.format_message()} (see fecbench --help)", BAD_INPUT)
    except (Refusal, DesignError, DatabaseError, LossModelError, TopologyError) as error:
        _end(str(error), BAD_INPUT)
    except (DropperError, IsolationError, LinkError, OSError) as error:
        _end(str(error), 1)
    except Interrupted as error:
        _end(f"ended by {error}: what was finished is kept", error.status)
    sys.exit(status if isinstance(status, int) else 0)


def _end(line: str, status: int) -> None:
    print("fecbench:", " ".join(line.split()), file=sys.stderr)
    sys.exit(status)
