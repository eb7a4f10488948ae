#!/bin/bash
# Run in virtual time, in the repository, where load fails no test. Status 0: all held.
set -euo pipefail
tests/kernels/netem/prove.sh -k 'not test_ipv6_that_the_first_program' tests/topologies/test_netem_link.py
tests/kernels/netem/prove.sh -k 'timed_by_the_harness and netem' tests/runners/trial/test_interop_trial.py
.venv/bin/python -m tests.kernels.netem.comparison
