"""`fecbench trace`: makes the traces that the workloads `messages` and `live` send. Needs no root."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fecbench.quantities import counted
from fecbench.runners.commands.console import arguments
from fecbench.runners.commands.console.destination import check_file, writing
from fecbench.runners.commands.console.terminal import say
from fecbench.whole_files import write_text

if TYPE_CHECKING:
    from fecbench.runners.workloads.messages.traffic import Trace

trace = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Make a trace for the workload messages or live: traces/NAME.json beside the designs that send it.",
)

Seed = Annotated[int, typer.Option(min=0, max=2**64 - 1)]
Duration = Annotated[float, typer.Option(help="Messages are due for so long.", min=0.1, max=1600.0)]


@trace.command()
def chat(
    output: arguments.OutputFile,
    seed: Seed = 2018,
    duration_s: Duration = 60.0,
    bitrate_mbps: Annotated[float, typer.Option(help="Of the video.", min=0.01, max=200.0)] = 2.0,
) -> None:
    """Make a video chat of 30 frames a second, with rare large frames, from a seed."""
    from fecbench.runners.workloads.messages import real_time

    command = f"fecbench trace chat --seed {seed} --duration-s {duration_s:g} --bitrate-mbps {bitrate_mbps:g}"
    _write(real_time.chat(seed, duration_s, bitrate_mbps, command), output)


@trace.command()
def voice(output: arguments.OutputFile, seed: Seed = 2018, duration_s: Duration = 60.0) -> None:
    """Make speech in 50 frames a second from a seed."""
    from fecbench.runners.workloads.messages import real_time

    command = f"fecbench trace voice --seed {seed} --duration-s {duration_s:g}"
    _write(real_time.voice(seed, duration_s, command), output)


@trace.command()
def game(output: arguments.OutputFile, seed: Seed = 2018, duration_s: Duration = 60.0) -> None:
    """Make a game's 60 messages a second from a seed."""
    from fecbench.runners.workloads.messages import real_time

    command = f"fecbench trace game --seed {seed} --duration-s {duration_s:g}"
    _write(real_time.game(seed, duration_s, command), output)


@trace.command("from-list")
def from_list(
    listed: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A frame a line: its size in bytes, or columns that end with it. % or # begins a comment.",
        ),
    ],
    output: arguments.OutputFile,
    rate_hz: Annotated[
        float, typer.Option(help="Frames a second, where lines have no times.", min=0.001, max=10_000.0)
    ] = 30.0,
    time_column: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            help="Which column has a frame's time in s: 1 is the first, 0 none. By default the one before the"
            " size, if a comment calls it a time, or if it begins at about 0 and does not fall.",
        ),
    ] = None,
) -> None:
    """Make a trace of a list of frames, such as those of cisco/syncodecs."""
    from fecbench.runners.workloads.messages import real_time

    name = "".join(letter for letter in listed.name if letter.isprintable())[:60] or "-"
    _write(real_time.from_list(listed, rate_hz, f"fecbench trace from-list {name}", time_column), output)


@trace.command("from-video")
def from_video(
    video: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A media file that ffprobe reads, such as a fragmented MP4."),
    ],
    output: arguments.OutputFile,
) -> None:
    """Make a trace for the workload live of a media file: its frames of video, by ffprobe of FFmpeg."""
    from fecbench.runners.workloads.live import recorded

    check_file("--output", output, [".json"])
    name = "".join(letter for letter in video.name if letter.isprintable())[:60] or "-"
    recording = recorded.from_video(video, f"fecbench trace from-video {name}")
    with writing("--output", output):
        write_text(output, recording.text())
    frames = recording.frames
    say(
        f"{output}: {counted(len(frames), 'frame')} of {sum(size for _, size, _ in frames)} bytes in"
        f" {frames[-1][0] / 1e6:g} s, {counted(sum(begins for *_, begins in frames), 'group')}, the"
        " largest frame of"
        f" {max(size for _, size, _ in frames)}"
    )


def _write(trace: Trace, output: Path) -> None:
    check_file("--output", output, [".json"])
    with writing("--output", output):
        write_text(output, trace.text())
    sizes = [size_bytes for _, size_bytes in trace.messages]
    say(
        f"{output}: {counted(len(sizes), 'message')} of {sum(sizes)} bytes in"
        f" {trace.messages[-1][0] / 1e6:g} s,"
        f" the largest of {max(sizes)}"
    )
