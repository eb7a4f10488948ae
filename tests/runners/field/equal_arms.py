"""Blocks of two equal arms over a path: python -m tests.runners.field.equal_arms HOST:PORT DIR BLOCKS

It prints the log of their ratio, a block a line; "-" where an arm has no time. Blocks are as those of a
campaign, but for probes of 0.1 s.
"""

import math
import random
import sys
from pathlib import Path

from fecbench.results.store.records import TrialKey
from fecbench.runners.field.connection import Place, context
from fecbench.runners.field.field_engine import FieldEngine
from fecbench.runners.implementations.finding import ours
from fecbench.runners.tasks.demand import Demand
from fecbench.runners.tasks.task import EndpointTask, PairTask, Task

SIZE_BYTES = 20_000
ARMS = ("A", "B")


def task(seed: int) -> Task:
    options = ours().find("noq-fec", "").with_defaults({"scheme": "none"})
    end = EndpointTask(implementation="noq-fec", options=options, fec=False)
    workload = {"name": "download", "size_bytes": SIZE_BYTES}
    pair = PairTask(client=end, server=end, workload=workload, demand=Demand(down_bytes=SIZE_BYTES))
    return Task(
        **{"topology": "field", "backend": "field", "links": {}, "seeds": {"content": seed}},
        **{"pairs": [pair], "completion": "dct_s", "timeout_s": 20.0},
    )


def main() -> None:
    place, papers, blocks = Place.of("HOST:PORT", sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    tls = context(papers, server=False)
    generator = random.Random(7)
    implementations = {"noq-fec": ours().find("noq-fec", "")}

    def tell(line: str) -> None:
        print(line, file=sys.stderr)

    with FieldEngine(place, tls, "hidden", implementations, tell, train_s=0.1) as engine:
        for block in range(blocks):
            keys = [TrialKey(arm, "download", 0, block) for arm in generator.sample(ARMS, 2)]
            times = dict[str, float]()
            for finished in engine.run((key, task(block)) for key in keys):
                client = finished.outcome.endpoints.get("client")
                metrics = (client.metrics if client else None) or {}
                times[finished.key.variant] = metrics.get("dct_s", math.nan)
            log = math.log(times["A"] / times["B"])
            print(log if math.isfinite(log) else "-", flush=True)


if __name__ == "__main__":
    main()
