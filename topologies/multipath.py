"""multipath: a client with an address for each path, a router behind each, and a server with one address.

Client - r1 - r3 - server and client - r2 - r3 - server, with the emulated links "path1" and "path2" between
the routers: packets from the client's first address take path1, and so on; what is sent to that address comes
back over it.
"""

from ipaddress import IPv4Interface

from fecbench.topologies.layout import Cable, EmulatedLink, Layout, Port

CLIENT, SERVER = "client", "server"
SERVER_NETWORK = "10.0.100.0/24"


def multipath(paths: int) -> Layout:
    """The network of so many paths. The router before the server is the last one."""
    join = f"r{paths + 1}"
    numbers = range(1, paths + 1)
    return Layout(
        hosts=(CLIENT, SERVER),
        routers=(*(f"r{number}" for number in numbers), join),
        cables=(
            *(
                Cable(
                    _port(CLIENT, f"r{number}", f"10.0.{number}.2"),
                    _port(f"r{number}", CLIENT, f"10.0.{number}.1"),
                )
                for number in numbers
            ),
            Cable(_port(SERVER, join, "10.0.100.2"), _port(join, SERVER, "10.0.100.1")),
        ),
        links=tuple(
            EmulatedLink(
                f"path{number}",
                _port(f"r{number}", join, f"10.1.{number}.1"),
                _port(join, f"r{number}", f"10.1.{number}.2"),
            )
            for number in numbers
        ),
        routes={
            CLIENT: (("default", "10.0.1.1"),),
            **{f"r{number}": ((SERVER_NETWORK, f"10.1.{number}.2"),) for number in numbers},
            join: tuple((f"10.0.{number}.0/24", f"10.1.{number}.1") for number in numbers),
            SERVER: (("default", "10.0.100.1"),),
        },
        rules={
            CLIENT: {f"10.0.{number}.2": (("default", f"10.0.{number}.1"),) for number in numbers},
        },
        pairs=((CLIENT, SERVER),),
    )


def _port(node: str, peer: str, address: str) -> Port:
    interface = IPv4Interface(f"{address}/24")
    mac = "02:00:" + ":".join(f"{byte:02x}" for byte in interface.ip.packed)
    return Port(node, f"{node}-{peer}", interface, mac)
