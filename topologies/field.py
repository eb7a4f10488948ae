"""field: a client and a server on two hosts, and a path between them that is not ours.

Nothing of it is emulated, so it has no links and no addresses that we choose.
"""

from fecbench.topologies.layout import Layout

NAME = "field"
FIELD = Layout(
    hosts=("client", "server"), routers=(), cables=(), links=(), routes={}, pairs=(("client", "server"),)
)
