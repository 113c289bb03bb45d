// Ranks that train together: processes started by mpirun, each with its leaves of every batch.
#ifndef NGRAD_FRONTEND_CLI_FIT_RANKS_H
#define NGRAD_FRONTEND_CLI_FIT_RANKS_H

#include "frontend/cli/fit.h"

// Opens MPI if --ranks is given and mpirun started several ranks; NG_USAGE if mpirun did but --ranks is missing.
// Changes `own`, this rank's copy of the settings: ranks other than 0 are quiet.
ng_status ranks_open(Fit *f, Settings *own);

// Collective calls: all ranks make them in the same order. With one rank they return NG_OK at once.

// NG_WRONG on all ranks after rank 0 has reported the reason: the graph has no leaves, or graphs, options, data, or
// states (named by `when`) differ between ranks.
ng_status ranks_begin(Fit *f);
ng_status ranks_compare_states(Fit *f, const char *when);

// Copies rank 0's bytes to all ranks.
ng_status ranks_share(Fit *f, void *bytes, size_t count);

// Sets each byte to its maximum over all ranks.
ng_status ranks_max(Fit *f, unsigned char *bytes, size_t count);

// Ends MPI when all ranks have finished. If only this rank failed, it ends all ranks and does not return.
void ranks_close(Fit *f, ng_status status);

// Ends all processes of mpirun. For a rank that fails before ranks_open, where the others would wait for it.
void ranks_end_unopened(void);

#endif
