"""relay: client - r1 - r2 - r3 - server, with a relay at r2 and an emulated link on either side of it.

The client knows the relay alone, and the relay knows the server: the link "access" is between r1 and r2,
"backbone" between r2 and r3. Packets from the client to the server itself take both links.
"""

from ipaddress import IPv4Interface

from fecbench.topologies.layout import Cable, EmulatedLink, Layout, Port
from fecbench.topologies.single_path import CLIENT, R1_CLIENT

ACCESS, BACKBONE = "access", "backbone"


def _port(node: str, peer: str, network: int, host: int) -> Port:
    return Port(
        node,
        f"{node}-{peer}",
        IPv4Interface(f"10.0.{network}.{host}/24"),
        f"02:00:00:00:{network:02x}:{host:02x}",
    )


RELAY = Layout(
    hosts=("client", "relay", "server"),
    routers=("r1", "r2", "r3"),
    cables=(
        Cable(CLIENT, R1_CLIENT),
        Cable(_port("relay", "r2", 3, 2), _port("r2", "relay", 3, 1)),
        Cable(_port("server", "r3", 2, 2), _port("r3", "server", 2, 1)),
    ),
    links=(
        EmulatedLink(ACCESS, _port("r1", "r2", 0, 1), _port("r2", "r1", 0, 2)),
        EmulatedLink(BACKBONE, _port("r2", "r3", 4, 1), _port("r3", "r2", 4, 2)),
    ),
    routes={
        "client": (("default", "10.0.1.1"),),
        "r1": (("default", "10.0.0.2"),),
        "r2": (("10.0.1.0/24", "10.0.0.1"), ("10.0.2.0/24", "10.0.4.2")),
        "relay": (("default", "10.0.3.1"),),
        "r3": (("default", "10.0.4.1"),),
        "server": (("default", "10.0.2.1"),),
    },
    pairs=(("client", "server"),),
    relay="relay",
)
