#!/bin/bash
# Run in user-mode Linux, in the repository. Status 0: all held.
set -euo pipefail
here=tests/kernels/netem

# Before anything else has loaded IPv6.
$here/prove.sh -k test_ipv6_that_the_first_program tests/topologies/test_netem_link.py

.venv/bin/fecbench doctor | tee /run/scratch/doctor
grep --quiet '^good     netem: works' /run/scratch/doctor

$here/prove.sh -k exactly_the_predicted tests/dropper/test_dropper_attachment.py

$here/prove.sh tests/kernels/netem/test_backlog.py

# DualPI2 came with Linux 6.17.
$here/prove.sh -k 'not dualpi2' tests/kernels/netem/test_queues.py
