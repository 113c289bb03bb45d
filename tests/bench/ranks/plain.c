// Times steps of two emitted training steps in turns: NAME's, whose leaves all ranks share and add up in the canonical
// tree, and that of `part`, which has as many leaves as one rank of two has of NAME, followed by MPI_Allreduce of as
// many bytes as NAME's gradients have. Prints the medians of rank 0 and their ratio.
#include <mpi.h>

#include "net.h"
#include "part.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 31, BYTES_OF_LEAVES = LEAVES * SAMPLES };

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *times) {
  qsort(times, ROUNDS, sizeof *times, compare);
  return times[ROUNDS / 2];
}

static void *memory(size_t nbytes) {
  void *block = aligned_alloc(64, (nbytes + 63) / 64 * 64);
  if (!block) MPI_Abort(MPI_COMM_WORLD, 1);
  return block;
}

int main(int argc, char **argv) {
  net_ranks ranks;
  MPI_Init(&argc, &argv);
  if (net_mpi_open(&ranks, MPI_COMM_WORLD)) MPI_Abort(MPI_COMM_WORLD, 1);
  uint8_t *x = memory((size_t)BYTES_OF_LEAVES * 784);
  int32_t *labels = memory((size_t)BYTES_OF_LEAVES * sizeof *labels);
  for (size_t i = 0; i < (size_t)BYTES_OF_LEAVES * 784; i++) x[i] = (uint8_t)(i * 37 % 251);
  for (size_t i = 0; i < (size_t)BYTES_OF_LEAVES; i++) labels[i] = (int32_t)(i * 5 % 10);
  void *parameters = memory(net_PARAMETERS_NBYTES), *optimizer = memory(net_OPTIMIZER_NBYTES);
  void *part_parameters = memory(part_PARAMETERS_NBYTES), *part_optimizer = memory(part_OPTIMIZER_NBYTES);
  const size_t nbytes = net_train_step_workspace_nbytes(&ranks), part_nbytes = part_train_step_workspace_nbytes(NULL);
  void *workspace = memory(nbytes), *part_workspace = memory(part_nbytes);
  const size_t nsummed = net_PARAMETERS_NBYTES / sizeof(float);
  float *gradients = memory(net_PARAMETERS_NBYTES), loss, accuracy;
  for (size_t i = 0; i < nsummed; i++) gradients[i] = 0;
  net_init(parameters, optimizer, 0);
  part_init(part_parameters, part_optimizer, 0);
  double own[ROUNDS], plain[ROUNDS];
  int failed = 0;
  for (int i = -2; i < ROUNDS && !failed; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    failed |=
        net_train_step(x, labels, &loss, &accuracy, parameters, optimizer, workspace, nbytes, net_ISA_BEST, &ranks);
    if (i >= 0) own[i] = MPI_Wtime() - start;
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    failed |= part_train_step(x, labels, &loss, &accuracy, part_parameters, part_optimizer, part_workspace, part_nbytes,
                              part_ISA_BEST, NULL);
    MPI_Allreduce(MPI_IN_PLACE, gradients, (int)nsummed, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    if (i >= 0) plain[i] = MPI_Wtime() - start;
  }
  if (ranks.rank == 0 && !failed) {
    const double ours = median(own), theirs = median(plain);
    printf("%d ranks, %d leaves of %d: %.3f ms, with plain MPI_Allreduce %.3f ms, ratio %.3f\n", (int)ranks.count,
           LEAVES, SAMPLES, ours * 1e3, theirs * 1e3, ours / theirs);
  }
  net_mpi_close(&ranks);
  MPI_Finalize();
  return failed;
}
