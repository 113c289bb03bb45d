// Times an emitted training step, net's, with inputs of 0 on all ranks: prints the number of ranks, the seconds of a
// message of 8 bytes from one rank to another, the bytes a second of one of 4 MiB, and the median of a step. The first
// two are 0 on one rank.
#include <mpi.h>

#include "net.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 21, SMALL = 8, LARGE = 4 << 20, NBYTES_OF_INPUT = 16 * 50 * 784 }; // of the largest input

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
  for (size_t i = 0; i < nbytes; i++) ((char *)block)[i] = 0;
  return block;
}

// The seconds that a message takes between ranks 0 and 1, which send it back and forth.
static double time_message(char *block, int nbytes, int rank) {
  enum { TIMES = 20 };
  double times[ROUNDS];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < ROUNDS && rank < 2; i++) {
    const double start = MPI_Wtime();
    for (int k = 0; k < TIMES; k++) {
      if (rank == k % 2) MPI_Send(block, nbytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
      else MPI_Recv(block, nbytes, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    times[i] = (MPI_Wtime() - start) / TIMES;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return rank < 2 ? median(times) : 0;
}

int main(int argc, char **argv) {
  net_ranks ranks;
  MPI_Init(&argc, &argv);
  if (net_mpi_open(&ranks, MPI_COMM_WORLD)) MPI_Abort(MPI_COMM_WORLD, 1);
  char *block = memory(LARGE);
  const double small = ranks.count > 1 ? time_message(block, SMALL, (int)ranks.rank) : 0;
  const double large = ranks.count > 1 ? time_message(block, LARGE, (int)ranks.rank) : 0;
  const size_t nbytes = net_train_step_workspace_nbytes(&ranks);
  void *parameters = memory(net_PARAMETERS_NBYTES), *optimizer = memory(net_OPTIMIZER_NBYTES);
  void *workspace = memory(nbytes), *x = memory(NBYTES_OF_INPUT), *labels = memory(NBYTES_OF_INPUT);
  float loss, accuracy;
  double times[ROUNDS];
  int failed = 0;
  (void)accuracy;
  net_init(parameters, optimizer, 0);
  for (int i = -2; i < ROUNDS && !failed; i++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    failed |= net_train_step(x, labels, METRICS, parameters, optimizer, workspace, nbytes, net_ISA_BEST, &ranks);
    if (i >= 0) times[i] = MPI_Wtime() - start;
  }
  if (ranks.rank == 0 && !failed)
    printf("%d %.9f %.0f %.9f\n", (int)ranks.count, small, large > 0 ? LARGE / large : 0, median(times));
  net_mpi_close(&ranks);
  MPI_Finalize();
  return failed;
}
