"""dumbbell: two clients - r1 - r2 - two servers, with the emulated link "internet" between the routers.

It is single-path with a second pair, which shares the link.
"""

from ipaddress import IPv4Interface

from fecbench.topologies.layout import Cable, Layout, Port
from fecbench.topologies.single_path import SINGLE_PATH

CLIENT2 = Port("client2", "client2-r1", IPv4Interface("10.0.3.2/24"), "02:00:00:00:03:02")
R1_CLIENT2 = Port("r1", "r1-client2", IPv4Interface("10.0.3.1/24"), "02:00:00:00:03:01")
R2_SERVER2 = Port("r2", "r2-server2", IPv4Interface("10.0.4.1/24"), "02:00:00:00:04:01")
SERVER2 = Port("server2", "server2-r2", IPv4Interface("10.0.4.2/24"), "02:00:00:00:04:02")

DUMBBELL = Layout(
    hosts=(*SINGLE_PATH.hosts, "client2", "server2"),
    routers=SINGLE_PATH.routers,
    cables=(*SINGLE_PATH.cables, Cable(CLIENT2, R1_CLIENT2), Cable(SERVER2, R2_SERVER2)),
    links=SINGLE_PATH.links,
    routes={
        **SINGLE_PATH.routes,
        "r1": (*SINGLE_PATH.routes["r1"], ("10.0.4.0/24", "10.0.0.2")),
        "r2": (*SINGLE_PATH.routes["r2"], ("10.0.3.0/24", "10.0.0.1")),
        "client2": (("default", "10.0.3.1"),),
        "server2": (("default", "10.0.4.1"),),
    },
    pairs=(*SINGLE_PATH.pairs, ("client2", "server2")),
)
