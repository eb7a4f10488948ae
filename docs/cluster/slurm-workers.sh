#!/bin/sh
# sbatch slurm-workers.sh ADDRESS CERTIFICATES: a worker on each node, with as many trials at a time as it has CPUs.
#SBATCH --job-name=fecbench
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --signal=TERM@60
# Since Slurm 22.05, srun has to be asked again for what sbatch was asked for.
exec srun --cpus-per-task="$SLURM_CPUS_PER_TASK" \
    fecbench worker "$1" --certificates "$2" --jobs "$SLURM_CPUS_PER_TASK"
