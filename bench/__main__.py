"""`python -m bench`: all tables but that of the soak; ends with 1 if a bound was missed. Run it on a machine
that does nothing else."""

import sys

from bench import codec_cost, dropper_cost, link_cost, results_cost, rquic_cost, simulator_cost

dropper_cost.run()
link_cost.run()
missed = codec_cost.run()
rquic_cost.run()
simulator_cost.run()
results_cost.run()
sys.exit("\n".join(missed) or 0)
