"""Has dask-jobqueue start a scheduler here and workers of fecbench as jobs of Slurm, until it is ended.

Then it cancels the jobs. Partition, account and the like are those of ~/.config/dask/jobqueue.yaml.
"""

import argparse
import signal
from pathlib import Path
from types import FrameType

from fecbench.runners.cluster import address, dask_side
from fecbench.runners.refusal import Refusal

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, required=True, help="how many jobs")
    parser.add_argument("--cores", type=int, default=4, help="of a job: trials at a time")
    parser.add_argument("--walltime", default="04:00:00")
    parser.add_argument("--certificates", type=Path, required=True, help="fecbench cluster certificates DIR")
    asked = parser.parse_args()
    papers = asked.certificates.absolute()
    try:
        address.read(papers)
        # Dask's own settings would drop a worker that has run trials for five minutes.
        dask_side.apply()
    except Refusal as refusal:
        parser.error(str(refusal))
    # Modules of Dask read settings as they are loaded.
    from dask_jobqueue import SLURMCluster
    from distributed import Security

    pairs = {
        f"tls_{role}_{what}": str(papers / file)
        for role in ("client", "scheduler", "worker")
        for what, file in (("cert", "node.pem"), ("key", "node.key"))
    }
    for number in ENDINGS:
        signal.signal(number, _end)
    with SLURMCluster(
        cores=asked.cores,
        processes=1,
        memory="4GB",
        walltime=asked.walltime,
        job_name="fecbench",
        protocol="tls",
        security=Security(require_encryption=True, tls_ca_file=str(papers / "authority.pem"), **pairs),
        scheduler_options={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
        worker_command="fecbench.runners.cluster.as_dask",
        worker_extra_args=["--certificates", str(papers)],
    ) as cluster:
        cluster.scale(jobs=asked.jobs)
        print(cluster.scheduler_address, flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
