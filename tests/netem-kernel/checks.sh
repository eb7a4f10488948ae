#!/bin/bash
# What the guest runs, in the repository. Status 0: all held.
set -euo pipefail

.venv/bin/fecbench doctor | tee /run/scratch/doctor
grep --quiet '^good     netem: works' /run/scratch/doctor

PYTHONPATH=tests/netem-kernel .venv/bin/python -m pytest -q -p no_skips -p no:cacheprovider \
    -k 'test_netem_link or exactly_the_predicted' \
    tests/topologies/test_netem_link.py tests/dropper/test_dropper_attachment.py
