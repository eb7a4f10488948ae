"""dumbbell: clients - r1 - r2 - their servers, with the emulated link "internet" between the routers.

It is single-path with further pairs, which share the link.
"""

from ipaddress import IPv4Interface

from fecbench.topologies.layout import Cable, Layout, Port
from fecbench.topologies.single_path import SINGLE_PATH


def dumbbell(pairs: int) -> Layout:
    """Return the network of so many pairs; the first is that of single-path."""
    numbers = range(2, pairs + 1)
    further = [_cables(number) for number in numbers]
    return Layout(
        hosts=(
            *SINGLE_PATH.hosts,
            *(f"{role}{number}" for number in numbers for role in ("client", "server")),
        ),
        routers=SINGLE_PATH.routers,
        cables=(*SINGLE_PATH.cables, *(cable for both in further for cable in both)),
        links=SINGLE_PATH.links,
        routes={
            **SINGLE_PATH.routes,
            "r1": (*SINGLE_PATH.routes["r1"], *((f"10.0.{2 * n}.0/24", "10.0.0.2") for n in numbers)),
            "r2": (*SINGLE_PATH.routes["r2"], *((f"10.0.{2 * n - 1}.0/24", "10.0.0.1") for n in numbers)),
            **{f"client{n}": (("default", f"10.0.{2 * n - 1}.1"),) for n in numbers},
            **{f"server{n}": (("default", f"10.0.{2 * n}.1"),) for n in numbers},
        },
        pairs=(*SINGLE_PATH.pairs, *((f"client{n}", f"server{n}") for n in numbers)),
    )


def _cables(number: int) -> tuple[Cable, Cable]:
    """Return the cables of a client and of its server, each to its router."""
    return _cable(f"client{number}", "r1", 2 * number - 1), _cable(f"server{number}", "r2", 2 * number)


def _cable(host: str, router: str, network: int) -> Cable:
    mac = f"02:00:00:00:{network:02x}"
    return Cable(
        Port(host, f"{host}-{router}", IPv4Interface(f"10.0.{network}.2/24"), f"{mac}:02"),
        Port(router, f"{router}-{host}", IPv4Interface(f"10.0.{network}.1/24"), f"{mac}:01"),
    )
