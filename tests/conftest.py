"""For all tests: laws are tried without a time limit of their own.

Hypothesis calls an example that takes 200 ms a failure, and data that are slow to make another. On a busy
machine that says nothing about the law; pytest's timeout catches what hangs.
"""

from hypothesis import HealthCheck, settings

settings.register_profile("fecbench", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("fecbench")
