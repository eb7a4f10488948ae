/* What an interface has where filters of its two directions hang, asked by rtnetlink: libbpf has no such
 * questions. */
#ifndef CLSACT_H
#define CLSACT_H

#include <stdbool.h>

/* True if that place is held by an `ingress` qdisc: it takes filters of both directions, and runs all at
 * ingress. */
bool has_ingress_qdisc(int ifindex);

/* True if the clsact qdisc of the interface has a chain of filters, or an empty one that somebody made. */
bool has_filter_chains(int ifindex);

#endif
