// What a bench measured: a JSON object a graph, which tables and files are made of.
#ifndef NGRAD_FRONTEND_CLI_BENCH_REPORT_H
#define NGRAD_FRONTEND_CLI_BENCH_REPORT_H

#include "frontend/cli/session.h"
#include "frontend/cli/table.h"

json_t *times_json(const ng_graph *g, const ng_kernel_info *info, int threads, const ng_bench_result *r);
json_t *profile_json(const ng_profile *p);

// One object of those of several turns: sums of counts, medians of medians, the least and the greatest.
json_t *times_join(json_t *const *turns, size_t count);
// Sets `ratio` of b: how many times as long b takes as a, whose turns are parallel, and the interval that holds the
// median of that with a probability of 95 % or more. At least LEAST_TURNS. `a_name` is what b is compared with.
enum { LEAST_TURNS = 6 };
void times_compare(json_t *b, json_t *const *a_turns, json_t *const *b_turns, size_t count, const char *a_name);

Table times_table(json_t *document); // an array of objects
void times_tell(json_t *document);   // outliers and ratios, as sentences
void add_profile(Table *table, const ng_graph *g, const ng_profile *p, uint64_t nbytes);

// Whether a file's name says how times are written to it; false after telling that it does not.
bool export_is_known(const char *path);
bool times_export(json_t *document, const char *path); // false after telling why it cannot be written

#endif
