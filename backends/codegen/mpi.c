// Loads the functions that exchange messages through the MPI whose mpirun started this process. MPI stays loaded until
// the process ends, because MPI must not be initialised twice.
#include "backends/codegen/codegen.h"

#include "backends/codegen/toolchain/toolchain.h"

#include <stdlib.h>

static const char compiler_variable[] = "NGRAD_MPICC";

MpiLauncher mpi_find_launcher(void) {
  static const char *const openmpi[] = {"mpicc.openmpi", "mpicc", NULL},
                           *const mpich[] = {"mpicc.mpich", "mpicc", NULL}, *const any[] = {"mpicc", NULL};
  static const struct {
    bool is_count; // the variable's value is the number of ranks
    MpiLauncher launcher;
  } rows[] = {
      {true, {"Open MPI", "OMPI_COMM_WORLD_SIZE", 0, openmpi, "openmpi-bin and libopenmpi-dev"}},
      {true, {"MPICH", "PMI_SIZE", 0, mpich, "mpich and libmpich-dev"}},
      {false, {"PMIx", "PMIX_RANK", 0, any, "openmpi-bin and libopenmpi-dev"}},
      {false, {compiler_variable, compiler_variable, 0, any, "mpich and libmpich-dev"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *value = getenv(rows[i].launcher.variable);
    if (!value || !*value) continue;
    MpiLauncher launcher = rows[i].launcher;
    const int64_t count = rows[i].is_count ? strtoll(value, NULL, 10) : 0;
    if (count > 0) launcher.nranks = count;
    return launcher;
  }
  return (MpiLauncher){0};
}

const void *codegen_load_mpi(const MpiLauncher *launcher, const Allocator *allocator, bool *compiler_failed,
                             Diagnostics *d) {
  enum { TIMEOUT_S = 60 };
  Text source, advice;
  Loaded loaded = {0};
  ToolchainTimes times;
  text_init(&source, allocator);
  text_init(&advice, allocator);
  emit_mpi_process("ngrad", &source);
  text_format(&advice, "install one (Debian: %s)", launcher->packages);
  const CompilerChoice compiler = {"MPI compiler", compiler_variable, launcher->compilers, text_string(&advice), ""};
  *compiler_failed = false;
  if (source.out_of_memory || advice.out_of_memory) error_out_of_memory(d);
  else toolchain_load(&source, "ngrad_mpi_functions", &compiler, TIMEOUT_S, &loaded, &times, compiler_failed, d);
  text_deinit(&source);
  text_deinit(&advice);
  return loaded.symbol;
}
