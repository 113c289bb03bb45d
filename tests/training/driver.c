// Uses an emitted training pair of mlp.yaml:
//   train N FILE       the first values for the seed 5, N steps on made-up data, saved
//   resume N OLD FILE  loads OLD, N steps, saved
//   load FILE          prints the status, and whether the blocks are as before
//   fuzz FILE STEP     each STEPth truncation and many changed bits: refused, or the states are those of FILE
//   abandoned FILE     saves where savers that were killed have left files
//   counts FILE        saves counts of steps that are impossible, and loads them
//   links FILE         saves where links have the names of the new file
//   together FILE      two processes save to FILE, while this one loads it
#define _POSIX_C_SOURCE 200809L
#include "mlp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NX = 20 * 13, NLABELS = 20, MOST_NBYTES = 1 << 16 };

static _Alignas(64) unsigned char parameters[mlp_PARAMETERS_NBYTES];
static _Alignas(64) unsigned char optimizer[mlp_OPTIMIZER_NBYTES];
static _Alignas(64) unsigned char workspace[mlp_WORKSPACE_NBYTES];
static unsigned char before[sizeof parameters + sizeof optimizer], bytes[MOST_NBYTES];

static void keep(void) {
  memcpy(before, parameters, sizeof parameters);
  memcpy(before + sizeof parameters, optimizer, sizeof optimizer);
}

static int is_kept(void) {
  return memcmp(before, parameters, sizeof parameters) == 0 &&
         memcmp(before + sizeof parameters, optimizer, sizeof optimizer) == 0;
}

static int run(int nsteps) {
  float x[NX], loss = 0;
  int64_t labels[NLABELS];
  for (int i = 0; i < NX; i++) x[i] = (float)(i * 37 % 101 - 50) / 64;
  for (int i = 0; i < NLABELS; i++) labels[i] = i * 5 % 7;
  int status = mlp_OK;
  for (int i = 0; i < nsteps && status == mlp_OK; i++)
    status = mlp_train_step(x, labels, &loss, parameters, optimizer, workspace, sizeof workspace, mlp_ISA_BEST);
  printf("status %d loss %.9g\n", status, (double)loss);
  return status;
}

static int load_bytes(const char *path, size_t n) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, n, file) != n || fclose(file) != 0) return -1;
  return mlp_load(parameters, optimizer, path);
}

static int fuzz(const char *path, size_t step) {
  FILE *file = fopen(path, "rb");
  const size_t n = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  int counts[32] = {0}, failures = 0;
  if (file) fclose(file);
  if (!n || n == sizeof bytes || mlp_load(parameters, optimizer, path) != mlp_OK) return 1;
  keep();
  for (size_t k = 0; k < n; k += step) {
    const int status = load_bytes("spoilt.npz", k);
    failures += status == mlp_OK || status < 0 || !is_kept();
  }
  unsigned random = 1;
  for (size_t k = 0; k < 2 * n; k += step) {
    random = random * 1664525U + 1013904223U;
    const unsigned bit = 1U << (random >> 29);
    const size_t at = k % n;
    bytes[at] ^= (unsigned char)bit;
    const int status = load_bytes("spoilt.npz", n);
    bytes[at] ^= (unsigned char)bit;
    failures += status < 0 || !is_kept();
    counts[status < 0 ? 31 : status]++;
  }
  for (int s = 0; s < 32; s++)
    if (counts[s]) printf("status %d: %d times\n", s, counts[s]);
  remove("spoilt.npz");
  return failures > 0;
}

// Links with the names that the new file would have are left alone, and so is what they name.
static int save_beside_links(const char *path) {
  enum { NLINKS = 4 };
  char names[NLINKS][64];
  int ok = 1;
  for (int i = 0; i < NLINKS; i++) {
    if (i) snprintf(names[i], sizeof names[i], "%s.%ld-%d.tmp", path, (long)getpid(), i - 1);
    else snprintf(names[i], sizeof names[i], "%s.tmp", path);
    ok &= symlink("victim", names[i]) == 0;
  }
  ok &= mlp_save(parameters, optimizer, path) == mlp_OK && mlp_load(parameters, optimizer, path) == mlp_OK;
  ok &= access("victim", F_OK) != 0;
  for (int i = 0; i < NLINKS; i++) ok &= unlink(names[i]) == 0;
  return !ok;
}

// Files of savers that were killed are removed; those of living ones, and other files, are not.
static int save_beside_abandoned(const char *path) {
  enum { DEAD, OF_PARENT, OF_OTHER_PATH, OTHER_END, NFILES };
  char names[NFILES][64];
  int ok = 1, status;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ok &= child > 0 && waitpid(child, &status, 0) == child;
  snprintf(names[DEAD], sizeof names[DEAD], "%s.%ld-0.tmp", path, (long)child);
  snprintf(names[OF_PARENT], sizeof names[OF_PARENT], "%s.%ld-7.tmp", path, (long)getppid());
  snprintf(names[OF_OTHER_PATH], sizeof names[OF_OTHER_PATH], "%s.x.%ld-0.tmp", path, (long)child);
  snprintf(names[OTHER_END], sizeof names[OTHER_END], "%s.%ld-0.tmp.x", path, (long)child);
  for (int i = 0; i < NFILES; i++) {
    FILE *file = fopen(names[i], "wb");
    ok &= file && fclose(file) == 0;
  }
  // A saver in another container has a lock.
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  const int fd = open(names[DEAD], O_RDWR);
  ok &= fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
  const pid_t other = fork();
  if (other == 0) _exit(mlp_save(parameters, optimizer, path) != mlp_OK || access(names[DEAD], F_OK) != 0);
  ok &= other > 0 && waitpid(other, &status, 0) == other && status == 0;
  close(fd);
  ok &= mlp_save(parameters, optimizer, path) == mlp_OK && access(names[DEAD], F_OK) != 0;
  for (int i = DEAD + 1; i < NFILES; i++) ok &= unlink(names[i]) == 0;
  return !ok;
}

// A count of steps that further steps would wrap around, or that is none, is damage, and nothing is read.
static int load_counts(const char *path) {
#ifdef mlp_step_OFFSET
  static const int64_t steps[] = {INT64_MAX, INT64_MAX / 2 + 1, -1, INT64_MIN};
  int64_t *step = (int64_t *)(optimizer + mlp_step_OFFSET);
  int failures = 0;
  for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
    *step = steps[i];
    failures += mlp_save(parameters, optimizer, path) != mlp_OK;
    *step = 3;
    keep();
    failures += mlp_load(parameters, optimizer, path) != mlp_DAMAGED || !is_kept();
  }
  failures += mlp_save(parameters, optimizer, path) != mlp_OK || mlp_load(parameters, optimizer, path) != mlp_OK;
  return failures > 0;
#else
  (void)path;
  return 1;
#endif
}

static int save_often(uint64_t seed, const char *path) {
  enum { NSAVES = 200 };
  int failures = mlp_init(parameters, optimizer, seed) != mlp_OK;
  for (int i = 0; i < NSAVES; i++) failures += mlp_save(parameters, optimizer, path) != mlp_OK;
  return failures > 0;
}

// Each file that this process finds is whole: its checksums are right.
static int save_together(const char *path) {
  int failures = mlp_save(parameters, optimizer, path) != mlp_OK, nchildren = 0, status;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    const pid_t child = fork();
    if (child == 0) _exit(save_often(seed, path));
    nchildren += child > 0;
  }
  failures += nchildren != 2;
  while (nchildren) {
    failures += mlp_load(parameters, optimizer, path) != mlp_OK;
    if (waitpid(-1, &status, WNOHANG) <= 0) continue;
    failures += status != 0;
    nchildren--;
  }
  return failures > 0;
}

int main(int argc, char **argv) {
  const char *verb = argc > 2 ? argv[1] : "";
  if (strcmp(verb, "fuzz") == 0 && argc > 3) return fuzz(argv[2], (size_t)strtol(argv[3], NULL, 10));
  if (mlp_init(parameters, optimizer, 5) != mlp_OK) return 1;
  if (strcmp(verb, "links") == 0) return save_beside_links(argv[2]);
  if (strcmp(verb, "abandoned") == 0) return save_beside_abandoned(argv[2]);
  if (strcmp(verb, "counts") == 0) return load_counts(argv[2]);
  if (strcmp(verb, "together") == 0) return save_together(argv[2]);
  if (strcmp(verb, "load") == 0) {
    keep();
    const int status = mlp_load(parameters, optimizer, argv[2]);
    printf("status %d, %s\n", status, is_kept() ? "kept" : "changed");
    return status != mlp_OK && !is_kept();
  }
  if (strcmp(verb, "resume") == 0 && argc > 4 && mlp_load(parameters, optimizer, argv[3]) != mlp_OK) return 1;
  const int status = run((int)strtol(argv[2], NULL, 10));
  return status != mlp_OK || mlp_save(parameters, optimizer, argv[argc - 1]) != mlp_OK;
}
