"""single-path: client - r1 - r2 - server, with the emulated link "internet" between the routers."""

from ipaddress import IPv4Interface

from fecbench.topologies.layout import Cable, EmulatedLink, Layout, Port

CLIENT = Port("client", "client-r1", IPv4Interface("10.0.1.2/24"), "02:00:00:00:01:02")
R1_CLIENT = Port("r1", "r1-client", IPv4Interface("10.0.1.1/24"), "02:00:00:00:01:01")
R1_R2 = Port("r1", "r1-r2", IPv4Interface("10.0.0.1/24"), "02:00:00:00:00:01")
R2_R1 = Port("r2", "r2-r1", IPv4Interface("10.0.0.2/24"), "02:00:00:00:00:02")
R2_SERVER = Port("r2", "r2-server", IPv4Interface("10.0.2.1/24"), "02:00:00:00:02:01")
SERVER = Port("server", "server-r2", IPv4Interface("10.0.2.2/24"), "02:00:00:00:02:02")

SINGLE_PATH = Layout(
    hosts=("client", "server"),
    routers=("r1", "r2"),
    cables=(Cable(CLIENT, R1_CLIENT), Cable(SERVER, R2_SERVER)),
    links=(EmulatedLink("internet", R1_R2, R2_R1),),
    routes={
        "client": (("default", "10.0.1.1"),),
        "r1": (("10.0.2.0/24", "10.0.0.2"),),
        "r2": (("10.0.1.0/24", "10.0.0.1"),),
        "server": (("default", "10.0.2.1"),),
    },
    pairs=(("client", "server"),),
)
