// Trains the emitted step of the network in run.sh on samples that are made here, and saves the states. USES_MPI: as
// one of several ranks.
#ifdef USES_MPI
#include <mpi.h>
#endif

#include "net.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAVES = 8, SAMPLES = 5, FEATURES = 6, CLASSES = 3, STEPS = 20, ALIGNMENT = 64 };

static float x[LEAVES][SAMPLES][FEATURES];
static int32_t labels[LEAVES][SAMPLES];
static _Alignas(ALIGNMENT) unsigned char parameters[net_PARAMETERS_NBYTES], optimizer[net_OPTIMIZER_NBYTES];

static void make_leaf(uint32_t step, uint32_t leaf) {
  uint32_t word = step * LEAVES + leaf + 1;
  for (int s = 0; s < SAMPLES; s++) {
    for (int f = 0; f < FEATURES; f++) {
      word = word * 1664525U + 1013904223U;
      x[leaf][s][f] = (float)(word >> 16) / 32768.0f - 1.0f;
    }
    labels[leaf][s] = (int32_t)(x[leaf][s][0] + x[leaf][s][1] < 0.0f ? 0 : x[leaf][s][2] < 0.0f ? 1 : CLASSES - 1);
  }
}

static int train(const net_ranks *ranks) {
  const int64_t rank = ranks ? ranks->rank : 0, count = ranks ? ranks->count : 1;
  const int64_t begin = LEAVES * rank / count, end = LEAVES * (rank + 1) / count;
  const size_t nbytes = net_train_step_workspace_nbytes(ranks);
  void *workspace = aligned_alloc(ALIGNMENT, (nbytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
  int status = workspace ? net_init(parameters, optimizer, 1) : net_WORKSPACE_TOO_SMALL;
  float loss = 0;
  for (uint32_t step = 0; step < STEPS && status == net_OK; step++) {
    for (int64_t leaf = begin; leaf < end; leaf++) make_leaf(step, (uint32_t)leaf);
    status = net_train_step(begin < end ? &x[begin][0][0] : NULL, begin < end ? &labels[begin][0] : NULL, &loss,
                            parameters, optimizer, workspace, nbytes, rank % 2 ? net_ISA_SCALAR : net_ISA_BEST, ranks);
  }
  free(workspace);
  return status;
}

// Whether a rank that cannot be is refused before anything is computed.
static int refuses_ranks(int64_t rank, int64_t count) {
  static _Alignas(ALIGNMENT) unsigned char workspace[net_train_step_WORKSPACE_NBYTES];
  const net_ranks ranks = {.rank = rank, .count = count};
  return net_train_step(&x[0][0][0], &labels[0][0], NULL, parameters, optimizer, workspace, sizeof workspace,
                        net_ISA_BEST, &ranks) == net_RANKS_FAILED;
}

int main(int argc, char **argv) {
  int status;
  if (!refuses_ranks(0, 0) || !refuses_ranks(-1, 2) || !refuses_ranks(2, 2)) return 1;
#ifdef USES_MPI
  net_ranks ranks;
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS || net_mpi_open(&ranks, MPI_COMM_WORLD) != MPI_SUCCESS) return 1;
  status = train(&ranks);
  if (ranks.rank == 0 && status == net_OK) status = net_save(parameters, optimizer, argv[argc - 1]);
  if (status != net_OK) MPI_Abort(MPI_COMM_WORLD, status);
  net_mpi_close(&ranks);
  MPI_Finalize();
#else
  status = train(NULL);
  if (status == net_OK) status = net_save(parameters, optimizer, argv[argc - 1]);
#endif
  printf("%d\n", status);
  return status != net_OK;
}
