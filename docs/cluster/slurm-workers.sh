#!/bin/sh
# sbatch slurm-workers.sh ADDRESS CERTIFICATES: a worker on each node, with as many trials at a time as it has CPUs.
#SBATCH --job-name=fecbench
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --signal=TERM@60
exec srun fecbench worker "$1" --certificates "$2" --jobs "$SLURM_CPUS_PER_TASK"
