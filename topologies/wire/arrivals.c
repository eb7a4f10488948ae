// SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only
#include "arrivals.h"

#include <linux/bpf.h>
#include <linux/if_tun.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "system.h"

// More frames than can wait in a TAP at once; a power of two.
enum { PLACES = 1 << 14 };

struct arrival_log {
    uint64_t count;
    uint64_t came_ns[PLACES];
};

static int map_create(void) {
    union bpf_attr request = {
        .map_type = BPF_MAP_TYPE_ARRAY,
        .key_size = sizeof(uint32_t),
        .value_size = sizeof(struct arrival_log),
        .max_entries = 1,
        .map_flags = BPF_F_MMAPABLE,
    };
    return system_bpf(BPF_MAP_CREATE, &request, sizeof request, "make the map of arrivals");
}

static int program_load(int map) {
    const struct bpf_insn program[] = {
        // r6 = the log; r0 = now
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 6, .src_reg = BPF_PSEUDO_MAP_VALUE, .imm = map},
        {0},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns},
        // r1 = count++: frames may come on several CPUs at once
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = 1},
        {.code = BPF_STX | BPF_DW | BPF_ATOMIC, .dst_reg = 6, .src_reg = 1, .imm = BPF_ADD | BPF_FETCH},
        // came_ns[r1 % PLACES] = r0
        {.code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 1, .imm = PLACES - 1},
        {.code = BPF_ALU64 | BPF_LSH | BPF_K, .dst_reg = 1, .imm = 3},
        {.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = 6, .src_reg = 1},
        {.code = BPF_STX | BPF_DW | BPF_MEM,
         .dst_reg = 6,
         .src_reg = 0,
         .off = offsetof(struct arrival_log, came_ns)},
        // keep the whole frame
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = INT32_MAX},
        {.code = BPF_JMP | BPF_EXIT},
    };
    union bpf_attr request = {
        .prog_type = BPF_PROG_TYPE_SOCKET_FILTER,
        .insns = (uintptr_t)program,
        .insn_cnt = sizeof program / sizeof program[0],
        .license = (uintptr_t) "Dual BSD/GPL",
    };
    return system_bpf(BPF_PROG_LOAD, &request, sizeof request, "load the program that notes arrivals");
}

void arrivals_open(struct arrivals *arrivals, int tap_fd) {
    int map = map_create();
    *arrivals = (struct arrivals){.log = system_map(map, sizeof(struct arrival_log), "the map of arrivals")};
    int program = program_load(map);
    system_ioctl(tap_fd, TUNSETFILTEREBPF, &program, "have the TAP note arrivals");
    system_close(program);
    system_close(map);
}

static uint64_t came(const struct arrivals *arrivals) {
    return __atomic_load_n(&arrivals->log->count, __ATOMIC_ACQUIRE);
}

uint64_t arrivals_look(struct arrivals *arrivals) {
    arrivals->seen = came(arrivals);
    return arrivals->seen - arrivals->taken;
}

bool arrivals_unseen(const struct arrivals *arrivals) {
    return came(arrivals) != arrivals->seen;
}

uint64_t arrivals_take(struct arrivals *arrivals) {
    uint64_t came_ns = arrivals->log->came_ns[arrivals->taken++ % PLACES];
    if (came_ns > arrivals->last_ns)
        arrivals->last_ns = came_ns;
    return arrivals->last_ns;
}
