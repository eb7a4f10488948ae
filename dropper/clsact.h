/* The clsact qdisc of an interface, on which the filters of both directions hang; asked by rtnetlink. */
#ifndef CLSACT_H
#define CLSACT_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

/* True if that place is held by an `ingress` qdisc: it takes filters of both directions, and runs all at
 * ingress. */
bool has_ingress_qdisc(int ifindex);

/* True if the clsact qdisc of the interface has a chain of filters, or an empty one that another program
 * made. */
bool has_filter_chains(int ifindex);

/*
 * True if there is a filter of this priority and handle in chain 0; program_id is 0 if it is no BPF program.
 * (bpf_tc_query answers EINVAL both where nothing is attached and where it was asked wrongly.)
 */
bool find_filter(int ifindex, enum bpf_tc_attach_point direction, uint32_t priority, uint32_t handle,
                 uint32_t *program_id);

#endif
