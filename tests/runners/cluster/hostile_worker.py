"""Dask's worker whose answers run a program in whoever unpickles them: ADDRESS PAPERS KIND PROGRAM

KIND is `result` or `error`.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from fecbench.runners.cluster import address, dask_side

KIND, PROGRAM = sys.argv[3:]


class Result:
    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (PROGRAM, {})


class Desk:
    async def take_part(self, *_: str) -> Any:
        if KIND == "error":
            raise RuntimeError(Result())  # an error of its own would be pickled as Dask likes
        return Result()


async def serve() -> None:
    from distributed import Worker

    place = address.place(sys.argv[1], Path(sys.argv[2]), insecure=False)
    worker = await Worker(place.address, security=dask_side.security(place.papers), dashboard=False)
    print("connected", flush=True)
    await worker.finished()


dask_side.apply()
dask_side._desk = Desk()  # type: ignore[assignment]
asyncio.run(serve())
