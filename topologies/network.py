"""Makes a Layout real with Mininet: namespaces, cables, addresses, routes.

Mininet makes the nodes, and its command line works on the result. Interfaces are configured by one `ip
-batch` per node and step, not by Mininet's command at a time, which takes longer than all the rest. Nothing
is made in the namespace of the caller, so networks with the same names never meet; and Mininet's own start
is left out, since it overwrites sysctls of the machine.
"""

import logging
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from functools import partial

import mininet.net
from mininet.link import Intf
from mininet.net import Mininet
from mininet.node import Host as MininetHost

from fecbench.topologies import tcp
from fecbench.topologies.carrier import ensure_carrier
from fecbench.topologies.layout import Layout, Port
from fecbench.topologies.link import MTU
from fecbench.topologies.namespace import (
    run_in_new,
    run_in_parallel,
    run_inside,
    run_inside_each,
    run_tool,
)
from fecbench.topologies.offloads import switch_off_merging
from fecbench.topologies.sysctls import (
    IPV6_FORWARDING,
    QUIET_SYSCTLS,
    ROUTER_SYSCTLS,
    ipv6_sysctls,
    write_sysctls,
)

# Mininet makes its logger the class of all later loggers, which print on standard error by themselves.
logging.setLoggerClass(logging.Logger)
# Mininet runs grep for each network.
mininet.net.numCores = os.cpu_count


# An interface of IPv6 that resolves no neighbours joins no group for them, and one without multicast none of
# routers: it has nothing to report, which would be frames that no endpoint sent (addrconf_join_solict,
# dev_forward_change of the kernel).
_SILENT = "arp off multicast off "


class _Node(MininetHost):  # type: ignore[misc]
    """A node whose namespace is held by a process that does nothing. Mininet's own is a shell, which takes
    much longer to start: here it comes when it is asked for."""

    def __init__(self, name: str, sysctls: Mapping[str, str], **of_mininet: object) -> None:
        self._sysctls = sysctls
        super().__init__(name, **of_mininet)

    def startShell(self, _: None = None) -> None:  # called by the constructor
        self._holder = run_in_new(self._hold)
        self.pid = self._holder.pid

    def _hold(self) -> "subprocess.Popen[bytes]":
        write_sysctls(self._sysctls)
        return subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)

    def open_shell(self) -> None:
        """Open the shell for Mininet's command line. Idempotent."""
        if self.shell is None:
            self.inNamespace = False  # else the shell makes one more
            super().startShell(f"-cda{self.pid}")

    def cleanup(self) -> None:
        self._holder.kill()
        self._holder.communicate()
        super().cleanup()


class _ConfiguredInterface(Intf):  # type: ignore[misc]
    """Lets Mininet know of an interface that exists and is configured."""

    def __init__(self, port: Port, node: MininetHost) -> None:
        super().__init__(port.interface, node=node, mac=port.mac, moveIntfFn=lambda *_: None)
        self.ip, self.prefixLen = str(port.address.ip), str(port.address.network.prefixlen)

    def config(self, **_: object) -> dict[str, object]:
        return {}

    def updateIP(self) -> str:  # else by running ifconfig
        return str(self.ip)


class Network:
    """The nodes of a layout. The constructor starts them; the caller makes the emulated links, calls
    lay_cables() and, when all interfaces exist, configure()."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        Mininet.inited = True  # else it writes net.ipv4.tcp_rmem and others of the whole machine
        self.mininet = Mininet(controller=None, build=False)
        MininetHost.isSetup = True  # else each node looks up mnexec and ifconfig in the PATH
        try:
            run_in_parallel(partial(self._start, node) for node in layout.nodes)
        except BaseException:
            self.close()
            raise

    def open_shells(self) -> None:
        """A shell in each node, for Mininet's command line. Idempotent."""
        for node in self.mininet.hosts:
            node.open_shell()

    def pid(self, node: str) -> int:
        return int(self.mininet[node].pid)

    def netns_path(self, node: str) -> str:
        return f"/proc/{self.pid(node)}/ns/net"

    def lay_cables(self) -> None:
        first, *_ = self.layout.nodes  # any node: each end is made where it belongs
        self._ip(first, [self._cable(cable.near, cable.far) for cable in self.layout.cables])

    def _cable(self, near: Port, far: Port) -> str:
        return (
            f"link add {near.interface} address {near.mac} mtu {MTU} netns {self.pid(near.node)} type veth"
            f" peer name {far.interface} address {far.mac} mtu {MTU} netns {self.pid(far.node)}"
        )

    def configure(self) -> None:
        """Addresses, permanent neighbours, routes, rules, offloads; afterwards every interface carries
        frames."""
        nodes = self.layout.nodes
        run_inside_each((self.netns_path(node), partial(self._configure, node)) for node in nodes)
        run_inside_each(
            (self.netns_path(node), partial(ensure_carrier, self.layout.interfaces(node))) for node in nodes
        )
        for node in nodes:
            for port, _ in self.layout.ports(node):
                _ConfiguredInterface(port, self.mininet[node])

    def set_congestion_control(self, node: str, controller: str) -> None:
        """Set the controller of TCP connections that a node makes and accepts from now on."""
        self._ip(node, tcp.controlled(self._routes(node), controller))

    def set_subflows(self, node: str, subflows: int) -> None:
        """Set how many subflows Multipath TCP makes or accepts besides the first: from the addresses of so
        many ports after the first."""
        ports = [own for own, _ in self.layout.ports(node)]
        others = [(str(own.address.ip), own.interface) for own in ports[1 : 1 + subflows]]
        self._ip(node, tcp.subflows(others, subflows))

    def close(self) -> None:
        """Ends the nodes; the kernel then removes their namespaces and the interfaces in them. Idempotent."""
        nodes = list(self.mininet.hosts)
        for node in nodes:
            os.killpg(node.pid, signal.SIGKILL)
        for node in nodes:
            node.cleanup()
        self.mininet.hosts.clear()

    def _routes(self, node: str) -> Iterator[str]:
        """The routes of a node, as ip has them. Tables of the kernel's numbers 1 to 252 are free."""
        for network, hop in self.layout.routes.get(node, ()):
            yield f"{network} via {hop}"
        for table, routes in enumerate(self.layout.rules.get(node, {}).values(), start=1):
            for network, hop in routes:
                yield f"{network} via {hop} table {table}"

    def _start(self, node: str) -> None:
        sysctls = ROUTER_SYSCTLS if node in self.layout.routers else QUIET_SYSCTLS
        self.mininet.addHost(node, cls=_Node, ip=None, sysctls=sysctls)

    def _ip(self, node: str, commands: list[str]) -> None:
        run_inside(self.netns_path(node), partial(self._run_ip, commands))

    def _configure(self, node: str) -> None:
        """Configure a node, in the namespace of the calling thread, which is the node's."""
        ports, interfaces = self.layout.ports(node), self.layout.interfaces(node)
        silent = _SILENT if self.layout.is_ipv6 else ""
        commands = [
            "link set lo up",
            *(f"link set {own.interface} address {own.mac} {silent}up" for own, _ in ports),
        ]
        if self.layout.is_ipv6:
            self._run_ip(commands)
            write_sysctls(ipv6_sysctls(interfaces))
            commands = []
        for own, peer in ports:
            commands += [
                f"address add {own.address} dev {own.interface}{' nodad' if self.layout.is_ipv6 else ''}",
                f"neighbour add {peer.address.ip} lladdr {peer.mac} dev {own.interface} nud permanent",
            ]
        sources = enumerate(self.layout.rules.get(node, {}), start=1)
        commands += [f"rule add from {source} lookup {table}" for table, source in sources]
        commands += [f"route add {route}" for route in self._routes(node)]
        self._run_ip(commands)
        if self.layout.is_ipv6 and node in self.layout.routers:
            write_sysctls(IPV6_FORWARDING)  # last: a router that may send to groups reports that it does
        switch_off_merging(interfaces)

    def _run_ip(self, commands: list[str]) -> None:
        """Run commands of `ip` in the namespace of the calling thread."""
        run_tool(["ip", "-6" if self.layout.is_ipv6 else "-4", "-batch", "-"], commands)
