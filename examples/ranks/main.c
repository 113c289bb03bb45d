// Trains on as many ranks as mpiexec starts, and prints a hash of the states: it is the same for every number of them.
#include <mpi.h>

#include "net.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAVES = 4, N = 8, WIDTH = 32, CLASSES = 10, STEPS = 50 };
static _Alignas(64) unsigned char parameters[net_PARAMETERS_NBYTES], optimizer[net_OPTIMIZER_NBYTES];
static float x[LEAVES * N * WIDTH];
static int32_t labels[LEAVES * N];

static uint64_t hash_of(const unsigned char *bytes, size_t n) { // FNV-1a
  uint64_t hash = 14695981039346656037U;
  for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * 1099511628211U;
  return hash;
}

int main(int argc, char **argv) {
  net_ranks ranks;
  float loss = 0;
  MPI_Init(&argc, &argv);
  if (net_mpi_open(&ranks, MPI_COMM_WORLD)) MPI_Abort(MPI_COMM_WORLD, 2);
  const size_t nbytes = net_train_step_workspace_nbytes(&ranks);
  void *workspace = aligned_alloc(64, nbytes);
  int status = workspace ? net_init(parameters, optimizer, 0) : 2;
  // The rank's own leaves of the batch: all have the same number here.
  const int own = LEAVES * N / (int)ranks.count, first = own * (int)ranks.rank;
  for (int step = 0; step < STEPS && !status; step++) {
    for (int i = 0; i < own; i++) {
      const int sample = step * LEAVES * N + first + i;
      labels[i] = sample % CLASSES;
      for (int k = 0; k < WIDTH; k++)
        x[i * WIDTH + k] = (float)(sample * 17 % 29) / 29 + (k % CLASSES == sample % CLASSES);
    }
    status = net_train_step(x, labels, &loss, parameters, optimizer, workspace, nbytes, net_ISA_BEST, &ranks);
  }
  if (status) MPI_Abort(MPI_COMM_WORLD, status); // others may wait for this one
  if (!ranks.rank)
    printf("states %016llx after %d steps, loss %.3g\n", (unsigned long long)hash_of(parameters, sizeof parameters),
           STEPS, (double)loss);
  net_mpi_close(&ranks);
  free(workspace);
  MPI_Finalize();
  return 0;
}
