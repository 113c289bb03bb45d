// The results of a bench: a JSON object for each graph, from which tables and files are made.
#ifndef NGRAD_FRONTEND_CLI_BENCH_REPORT_H
#define NGRAD_FRONTEND_CLI_BENCH_REPORT_H

#include "frontend/cli/session.h"
#include "frontend/cli/table.h"

json_t *times_json(const ng_graph *g, const ng_kernel_info *info, int threads, const ng_bench_result *r);
json_t *profile_json(const ng_profile *p, int threads); // of a run on so many threads

// Joins the objects of several turns: sums of counts, medians of medians, the least and the greatest.
json_t *times_join(json_t *const *turns, size_t count);
// Sets b's `ratio`: how many times as long b takes as a, from parallel turns, and the interval that holds the ratio's
// median with a probability of at least 95 %. There must be at least LEAST_TURNS turns. `a_name` names a in the output.
enum { LEAST_TURNS = 6 };
void times_compare(json_t *b, json_t *const *a_turns, json_t *const *b_turns, size_t count, const char *a_name);

// Sets each object's `speedup` and `efficiency`, beside the first object of the same graph and extent.
void times_compare_threads(json_t *document);

Table times_table(json_t *document); // an array of objects
void times_tell(json_t *document);   // prints limits by blocks, outliers and ratios as sentences
void add_profile(Table *table, const ng_graph *g, const ng_profile *p, uint64_t nbytes);

// Whether the file's name ends in the name of a format that times_export writes. False after an error message.
bool export_is_known(const char *path, bool is_sweep);
// Writes an array of objects to a file, by the ending of its name: as .csv, .md, .json, or the .svg of a sweep. False
// after an error message.
bool times_export(json_t *document, const char *path);

#endif
