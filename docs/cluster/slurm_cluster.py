"""Has dask-jobqueue start a scheduler here and workers of fecbench as jobs of Slurm, until it is ended."""

import argparse
import signal
from pathlib import Path

from dask_jobqueue import SLURMCluster
from distributed import Security

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--jobs", type=int, required=True, help="how many jobs")
parser.add_argument("--cores", type=int, default=4, help="of a job: trials at a time")
parser.add_argument("--walltime", default="04:00:00")
parser.add_argument("--certificates", type=Path, required=True, help="fecbench cluster certificates DIR")
asked = parser.parse_args()

papers = asked.certificates.absolute()
pairs = {
    f"tls_{role}_{what}": str(papers / file)
    for role in ("client", "scheduler", "worker")
    for what, file in (("cert", "node.pem"), ("key", "node.key"))
}
cluster = SLURMCluster(
    cores=asked.cores,
    processes=1,
    memory="4GB",
    walltime=asked.walltime,
    protocol="tls",
    security=Security(require_encryption=True, tls_ca_file=str(papers / "authority.pem"), **pairs),
    scheduler_options={"dashboard": False},
    worker_command="runners.cluster.as_dask",
    worker_extra_args=["--certificates", str(papers)],
)
cluster.scale(jobs=asked.jobs)
print(cluster.scheduler_address, flush=True)
signal.pause()
