#!/bin/bash
# Runs tests in a guest, in the repository, where none may be skipped.
PYTHONPATH=tests/kernels/netem exec .venv/bin/python -m pytest -q -p no_skips -p no:cacheprovider "$@"
