#!/bin/bash
# Run in user-mode Linux, in the repository. Status 0: all held.
set -euo pipefail
prove() {
    PYTHONPATH=tests/kernels/netem .venv/bin/python -m pytest -q -p no_skips -p no:cacheprovider "$@"
}

# Before anything else has loaded IPv6.
prove -k test_ipv6_that_the_first_program tests/topologies/test_netem_link.py

.venv/bin/fecbench doctor | tee /run/scratch/doctor
grep --quiet '^good     netem: works' /run/scratch/doctor

prove -k '(test_netem_link or exactly_the_predicted) and not test_ipv6_that_the_first_program' \
    tests/topologies/test_netem_link.py tests/dropper/test_dropper_attachment.py
