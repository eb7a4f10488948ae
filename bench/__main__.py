"""`python -m bench [PART …]`: the tables of these parts, by default of all; 1 if a bound was missed.
Run it on a machine that does nothing else."""

import argparse
import sys
from collections.abc import Callable

from bench import (
    cluster_cost,
    codec_cost,
    command_cost,
    coverage,
    dropper_cost,
    engine_cost,
    link_cost,
    link_effects,
    link_limits,
    noq_cost,
    results_cost,
    rquic_cost,
    simulator_cost,
    trace_cost,
)


def _link() -> list[str]:
    link_cost.run()
    return link_effects.run()


PARTS: dict[str, Callable[[], list[str] | None]] = {
    "dropper": dropper_cost.run,
    "link": _link,
    "limits": link_limits.run,
    "trace": trace_cost.run,
    "codes": codec_cost.run,
    "rquic": rquic_cost.run,
    "noq": noq_cost.run,
    "simulator": simulator_cost.run,
    "commands": command_cost.run,
    "loading": results_cost.run,
    "engine": engine_cost.run,
    "cluster": cluster_cost.run,
    "coverage": coverage.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="What our parts cost.")
    parser.add_argument("parts", metavar="PART", nargs="*", help=f"of {', '.join(PARTS)}; by default all")
    chosen = parser.parse_args().parts or list(PARTS)
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"{min(unknown)}: must be one of {', '.join(PARTS)}")
    missed = [line for part in chosen for line in PARTS[part]() or []]
    sys.exit("\n".join(missed) or 0)


if __name__ == "__main__":
    main()
