// Ranks that train together: processes that mpirun started, each with its leaves of every batch.
#ifndef NGRAD_FRONTEND_CLI_FIT_RANKS_H
#define NGRAD_FRONTEND_CLI_FIT_RANKS_H

#include "frontend/cli/fit.h"

// Opens MPI, if --ranks is said and mpirun started several ranks; NG_USAGE if it did and --ranks is not said. What this
// rank is to do other than `own`, its copy of the settings, says is changed there: all but rank 0 are quiet.
ng_status ranks_open(Fit *f, Settings *own);

// Collective calls: all ranks make them in the same order. They return NG_OK at once where there is one rank.

// NG_WRONG on all ranks after rank 0 has told why: the graph has no leaves to share, or graphs, options, data, or
// states, which `when` names, differ between ranks.
ng_status ranks_begin(Fit *f);
ng_status ranks_compare_states(Fit *f, const char *when);

// Gives all ranks rank 0's bytes.
ng_status ranks_share(Fit *f, void *bytes, size_t count);

// The largest of each of the bytes over all ranks.
ng_status ranks_max(Fit *f, unsigned char *bytes, size_t count);

// Ends MPI when all ranks are through. Where this rank alone failed it ends all of them, and does not return.
void ranks_close(Fit *f, ng_status status);

// Ends all processes that mpirun started: for one that fails before ranks_open, for which others would wait there.
void ranks_end_unopened(void);

#endif
