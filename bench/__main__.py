"""`python -m bench`: all tables but that of the soak. Run it on a machine that does nothing else."""

from bench import codec_cost, dropper_cost, link_cost, results_cost, rquic_cost

dropper_cost.run()
link_cost.run()
codec_cost.run()
rquic_cost.run()
results_cost.run()
