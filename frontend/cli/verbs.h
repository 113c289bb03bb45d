// The verbs: each takes its settings, does its work, and returns the exit status.
#ifndef NGRAD_FRONTEND_CLI_VERBS_H
#define NGRAD_FRONTEND_CLI_VERBS_H

#include "frontend/cli/options.h"

int verb_check(const Settings *s);
int verb_run(const Settings *s);
int verb_emit(const Settings *s);
int verb_show(const Settings *s);
int verb_report(const Settings *s);
int verb_bench(const Settings *s);
int verb_convert(const Settings *s);
int verb_grad(const Settings *s);
int verb_gradcheck(const Settings *s);
int verb_fit(const Settings *s);
int verb_scale(const Settings *s);
int verb_train(const Settings *s);
int verb_ops(const Settings *s);
int verb_passes(const Settings *s);

#endif
