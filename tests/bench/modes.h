// The modes of ngrad_bench_peers. Each prints a table, row by row if possible, puts its results into the document under
// its name, and returns an exit status: NG_DIFFERENT if results are wrong.
#ifndef NGRAD_TESTS_BENCH_MODES_H
#define NGRAD_TESTS_BENCH_MODES_H

#include "frontend/cli/table.h"
#include "tests/bench/settings.h"

#include <jansson.h>

int mode_suite(const Settings *s, json_t *document);
int mode_accuracy(const Settings *s, json_t *document);
int mode_busy(const Settings *s, json_t *document);
int mode_sweep(const Settings *s, json_t *document);
int mode_random(const Settings *s, json_t *document);
int mode_beside(const Settings *s, json_t *document);
int mode_emitted(const Settings *s, json_t *document);

// Shows the current work on stderr, if it is a terminal; NULL erases the text.
void progress_show(const char *what);

// Prints the rows that were added to the table since the last call, because a suite takes long.
void rows_show(Table *t);
// Makes the first column as wide as the settings' graphs need.
void rows_fit_graphs(Table *t, const Settings *s);

// "-" for NAN. The text is valid until the third call from now.
const char *cell(const char *format, double value) __attribute__((format(printf, 1, 0)));

#endif
