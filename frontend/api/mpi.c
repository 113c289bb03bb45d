// Ranks that exchange messages by MPI. ng_mpi_open loads the MPI library.
#include "backends/codegen/codegen.h"
#include "frontend/api/handles.h"

#include <inttypes.h>

struct ngrad_mpi_functions { // as in ranks_process.in
  int (*begin)(ng_ranks *ranks, int64_t *nlocal);
  void (*end)(ng_ranks *ranks);
  void (*abort)(const ng_ranks *ranks, int status);
};
static const struct ngrad_mpi_functions *functions; // NULL: MPI is not initialised

static bool begin(ng_context *ctx, const MpiLauncher *launcher, ng_ranks *ranks, int64_t *nlocal) {
  Diagnostics *d = &ctx->diagnostics;
  const int error = functions->begin(ranks, nlocal);
  if (error) return error_at(d, (Position){0}, "MPI cannot be initialised: error %d", error);
  if (launcher->nranks && launcher->nranks != ranks->count)
    return error_at(d, (Position){0},
                    "mpirun is of %s and started %" PRId64 " ranks, but the MPI library knows of %" PRId64
                    "; set NGRAD_MPICC to the mpicc of the same MPI",
                    launcher->name, launcher->nranks, ranks->count);
  return true;
}

ng_status ng_mpi_open(ng_context *ctx, ng_ranks *ranks, int64_t *nlocal) {
  const MpiLauncher launcher = mpi_find_launcher();
  *ranks = (ng_ranks){.count = 1};
  *nlocal = 1;
  if (!launcher.name || launcher.nranks == 1) return NG_OK;
  if (functions) return argument_error(ctx, "expected to open MPI once in a process");
  Call call = call_begin(ctx);
  bool compiler_failed;
  functions = codegen_load_mpi(&launcher, &ctx->allocator, &compiler_failed, &ctx->diagnostics);
  const bool ok = functions && begin(ctx, &launcher, ranks, nlocal);
  const ng_status status = call_end(ctx, call);
  if (ok) return NG_OK;
  ng_mpi_close(ranks); // of another MPI than mpirun's, which would not see an abort by it
  if (launcher.nranks) ranks->count = launcher.nranks;
  return compiler_failed && status == NG_WRONG ? NG_COMPILER_FAILED : status;
}

int64_t ng_mpi_launched(const char **variable) {
  const MpiLauncher launcher = mpi_find_launcher();
  if (variable) *variable = launcher.variable;
  return launcher.nranks ? launcher.nranks : 1;
}

void ng_mpi_close(ng_ranks *ranks) {
  if (ranks->context) functions->end(ranks);
  *ranks = (ng_ranks){.count = 1};
}

void ng_mpi_abort(const ng_ranks *ranks, int status) {
  if (ranks->context) functions->abort(ranks, status);
}
