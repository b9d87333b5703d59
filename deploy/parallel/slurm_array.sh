#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the parts as an array of Slurm: one task for each list in shared/lists. Submit it
# in the directory that has build_part.sh and shared/, which all nodes see.
#
#   jid=$(sbatch --parsable --array=0-$(($(ls shared/lists | wc -l) - 1)) slurm_array.sh)
#   sbatch --dependency=afterok:"$jid" --wrap \
#     'quired join -o shared/all.quire shared/parts/*.quire'
#SBATCH --job-name=quire-parts
#SBATCH --cpus-per-task=16
#SBATCH --mem=8G
#SBATCH --requeue
set -eu
export QUIRE_PART_OPTIONS="--threads $SLURM_CPUS_PER_TASK"
list=shared/lists/$(printf %04d "$SLURM_ARRAY_TASK_ID")
exec ./build_part.sh shared/like.quire "$list" shared/parts
