"""The `fecbench` command. Bad input ends it with one line and status 2; no result is lost by an interrupt."""

import atexit
import gc
import os
import re
import signal
import sys
from importlib import import_module
from itertools import pairwise
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from fecbench.checkout import require_whole
from fecbench.complaint import in_our_words
from fecbench.errors import BAD_INPUT, FAILED, status_of
from fecbench.results.store.postgresql_url import refuse_password
from fecbench.runners.commands.console import completion, steps, terminal, time_left
from fecbench.runners.commands.console.examples import EXAMPLES
from fecbench.runners.commands.console.terminal import one_line

GROUPS = {
    "Run a campaign": {
        "try": "Compare variants in networks of some ranges at once, without a file.",
        "new": "Write a design of some ranges, to go on with.",
        "list": "List topologies, workloads, loss models, metrics and designs.",
        "plan": "Show the points of a design, and how well they fill its space.",
        "run": "Run the trials of a design into a results database.",
        "watch": "Show how a campaign goes on, and what it says so far.",
        "hunt": "Search a design's space for networks in which a variant does harm.",
        "crosscheck": "Emulate a sample of a campaign in virtual time, and compare.",
        "field": "Run trials over a real path: the far host, its certificates.",
        "worker": "Run trials of campaigns of a cluster on this host.",
        "cluster": "Make a cluster's certificates, and run its scheduler.",
    },
    "Read the results": {
        "show": "Show what a results database holds.",
        "report": "Draw the figures of a campaign, and write its page.",
        "serve": "Show the campaigns of a database in a browser, while they run, too.",
        "figure": "Draw one figure of a campaign, as a paper wants it.",
        "explain": "Say in which networks a variant helps.",
        "export": "Write a table of a campaign to a file.",
        "replay": "Run a trial again as it was, and record everything.",
        "diff": "Show two trials over one axis, and where they part.",
        "advise": "Say whether to use FEC, by a recording of a link.",
    },
    "Try a QUIC stack": {
        "implementations": "List the implementations, or check one of them.",
        "interop": "Let clients of some stacks meet servers of others.",
        "compare": "Say whether a new build of a stack is slower than an old one.",
        "history": "Show the verdicts of compare over commits, and where times change.",
    },
    "Prepare losses, links and traffic": {
        "losses": "Predict which packets a loss model and a seed drop.",
        "link": "Make or import the trace of a link that changes.",
        "page": "Make a web page's graph for the workload page.",
        "trace": "Make a trace for the workloads messages and live.",
        "video": "Make a ladder for the workload video.",
    },
    "Look after the machine": {
        "doctor": "Say what this machine has, what it lacks, and what mends it.",
        "calibrate": "Measure the emulated link with known traffic.",
        "aa": "Compare what should be equal: what is noise?",
        "topo": "Open a shell in a topology.",
        "clean": "Remove what a killed harness left.",
    },
}
"""The commands as the help groups them, each with its line. A command is the function or the group of that
name in the module of that name, or of its name in MODULES."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

MODULES = {"list": "listing", "try": "trying"}
"""Modules of commands whose names mean something else in Python."""

NEED_PROGRAMS = frozenset(
    {
        *("doctor", "calibrate", "run", "try", "worker", "field", "hunt", "crosscheck", "compare", "interop"),
        *("aa", "replay", "diff", "topo", "clean"),
    }
)
"""Commands that build or start programs of a checkout, or clean up after these."""


_type_of_value = TyperOption.display_type_rich


def _type_in_help(option: TyperOption, ctx: Any) -> str | None:
    """Return the type of an option's value in help; "" for a flag, which takes none."""
    return "" if option.is_flag else _type_of_value(option, ctx)


TyperOption.display_type_rich = _type_in_help  # type: ignore[method-assign,assignment]


class Unloaded(TyperCommand):
    """A command whose module is loaded when it is called."""

    _completion: completion.Completion | None = None
    """Completion of the word at the shell, if the command need not be loaded for it."""

    def load(self) -> Any:
        """The command itself."""
        assert self.name
        module = MODULES.get(self.name, self.name)
        command = getattr(import_module(f"fecbench.runners.commands.{module}"), module)
        if not isinstance(command, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(self.name)(command)
            command = alone
        loaded = typer.main.get_command(command)
        _begin_with_example(loaded, self.name)
        return loaded

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        assert self.name and info_name
        if extra.get("resilient_parsing"):  # a shell completes a word
            self._completion = completion.known(self.name, args)
            if self._completion is not None:
                return super().make_context(info_name, [], parent=parent, **extra)
        elif self.name in NEED_PROGRAMS and not {"--help", "-h"} & set(args):
            require_whole([info_name, *args])
        command = self.load()
        # `-v` may stand behind the command, too.
        verbose = next(option for option in parent.command.params if option.name == "verbose")
        leaves = list(getattr(command, "commands", {"": command}).values())
        for leaf in leaves:
            leaf.params.append(verbose)
        for part in {command, *leaves}:
            _tell_command_of_errors(part)
        whole = _with_values_left_out(args, command)
        return command.make_context(info_name, whole, parent=parent, **extra)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the possible completions of the word."""
        if self._completion is None:
            return super().shell_complete(ctx, incomplete)
        return [
            completion.Offer(word) if isinstance(word, str) else completion.Offer(*word)
            for word in self._completion(incomplete)
        ]


def _begin_with_example(command: Any, words: str) -> None:
    """Put an example before the help of a command, or of each command of a group and of the group itself, and
    make one line of each paragraph: the terminal breaks it."""
    for name, leaf in getattr(command, "commands", {}).items():
        _begin_with_example(leaf, f"{words} {name}")
    example = next(
        line for example_command, line in EXAMPLES.items() if f"{example_command} ".startswith(f"{words} ")
    )
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    command.short_help = paragraphs[0]  # for the list of a group's commands
    command.help = "\n\n".join([f"Example: {example}", *paragraphs])


def _tell_command_of_errors(command: Any) -> None:
    """Have the error of an option without its value say which command it is of; the library says it of all
    others."""
    parse = command.parse_args

    def parse_args(context: Any, args: list[str]) -> Any:
        try:
            return parse(context, args)
        except typer.TyperException as error:
            vars(error).update(ctx=getattr(error, "ctx", None) or context)
            raise

    command.parse_args = parse_args


def _with_values_left_out(args: list[str], command: Any) -> list[str]:
    """Return the words of a command, with an empty value after each option that stands without its optional
    value."""
    optional = {
        name
        for option in command.params
        if str(option.metavar).startswith("[") and option.param_type_name == "option"
        for name in option.opts
    }
    words = []
    for word, following in pairwise([*args, "-"]):
        words += [word, ""] if word in optional and following.startswith("-") else [word]
    return words


class Commands(TyperGroup):
    """The group of all commands; none of them is loaded."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for title, group in GROUPS.items():
            for name, line in group.items():
                self.add_command(Unloaded(name, help=line, rich_help_panel=title))


app = typer.Typer(
    cls=Commands,
    help="In which networks does forward erasure correction help QUIC, by how much, and at what cost?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(requested: bool) -> None:
    if requested:
        from fecbench.runners.commands.console.version import version_line  # asks git

        print(version_line())
        raise typer.Exit


def _tell_steps(requested: bool) -> None:
    if requested:
        steps.tell(True)


@app.callback()
def _common_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "-v",
            "--verbose",
            callback=_tell_steps,
            expose_value=False,
            help="Tell each step on standard error, and the whole of an error.",
        ),
    ] = False,
) -> None:
    pass


ALLOCATIONS = 300_000
"""Objects that are made before garbage is sought among them: loading a command makes up to 250,000."""


class Interrupted(BaseException):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.status = 128 + number


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise Interrupted(number)


def main() -> NoReturn:
    """The entry point: 0 for success, 1 when something was not ok, 2 for bad input."""
    # A third of the time of a short command is Python's search for garbage, in modules that stay to the end.
    gc.set_threshold(ALLOCATIONS)
    atexit.register(gc.freeze)
    terminal.open_streams()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    os.environ.setdefault("MPLBACKEND", "agg")  # figures are files: no window is opened for any
    # Threads of NumPy's products wait in loops, for longer than ours take.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Pydantic would read the metadata of all packages, to find some that change it.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    time_left.begin()
    steps.tell(False)
    terminal.tame()
    try:
        for word in sys.argv:
            refuse_password(word)
        status = app(prog_name="fecbench", standalone_mode=False)
    except typer.TyperException as error:
        # Without any argument, the help has been printed, and there is nothing else to say.
        message = _plain(error.format_message())
        context = getattr(error, "ctx", None)
        _end(
            message and f"{message} (see {context.command_path if context else 'fecbench'} --help)", BAD_INPUT
        )
    except Interrupted as error:
        _end(f"ended by {error}: what was finished is kept", error.status)
    except Exception as error:
        status = status_of(error)
        # Such an error often says nothing, or names a function; a thread lacks the room for its stack.
        if isinstance(error, MemoryError) or str(error) == "can't start new thread":
            steps.trace(error)
            _end("out of memory: this machine, or the limit of this process, has too little", FAILED)
        if status is None:
            raise
        steps.trace(error)
        _end(str(error), status)
    sys.exit(status if isinstance(status, int) else 0)


def _plain(message: str) -> str:
    """Return the message without remarks of the library that reads values."""
    return re.sub(r", unable to parse.*", "", in_our_words(message))


def _end(line: str, status: int) -> NoReturn:
    if line:
        print("fecbench:", one_line(line), file=sys.stderr)
    sys.exit(status)
