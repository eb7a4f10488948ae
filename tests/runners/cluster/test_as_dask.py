"""Processes that dask-jobqueue and Dask's Helm chart start are workers of fecbench."""

from fecbench.runners.cluster.as_dask import worker_arguments


def test_arguments_of_the_helm_chart() -> None:
    given = (
        "tls://s:8786 --nthreads 2 --memory-limit 2G --no-dashboard --dashboard-address 8790"
        " --certificates /papers"
    )
    assert worker_arguments(given.split()) == [
        *("worker", "tls://s:8786", "--jobs", "2", "--certificates", "/papers")
    ]
    assert worker_arguments(["s:8786", "--no-dashboard"])[:2] == ["worker", "tls://s:8786"]


def test_arguments_of_dask_jobqueue() -> None:
    given = (
        "tls://10.0.0.1:34567 --name SLURMCluster-0 --nthreads 4 --memory-limit 3.73GiB --death-timeout 60"
        " --certificates /home/ada/papers --protocol tls:// --tls-ca-file /a --tls-key /k --tls-cert /c"
    )
    assert worker_arguments(given.split()) == [
        *("worker", "tls://10.0.0.1:34567", "--jobs", "4", "--certificates", "/home/ada/papers")
    ]
