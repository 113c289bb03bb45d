// The ways from a graph to compiled code: passes that are left out, instruction sets, threads, machines, the compiler's
// optimisation level.
#include "tests/fuzz/program/trial.h"

#include "backends/codegen/codegen.h"
#include "ir/loops/prove.h"
#include "passes/pipeline.h"
#include "passes/schedule/overrides.h"
#include "tests/loops/execute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_DISABLED = 32, EFFORTS = 3 };

typedef struct Passes { // a group of ways with the same passes
  char name[160];
  const char *disabled[MOST_DISABLED];
  size_t ndisabled;
  bool no_fuse;
  const struct Passes *alike; // these give the same bits; NULL: none have to
  bool has_small_slice_groups;
  bool is_left_out;    // while a finding of another group is reduced
  bool is_interpreted; // the graph after the passes has been interpreted
  Tensor *bits;        // the executor's results for the first way's loop trees
  char first[96];      // the way's name
} Passes;

typedef struct Way {
  const Isa *isa;
  Target target;
  const char *machine; // how the target differs from this machine; "": it does not
  int effort;          // -O
  int threads;
} Way;

// A script that runs the compiler with another -O after the option of ngrad.
static void use_effort(const FuzzOptions *options, int effort) {
  static char user[4096];
  char path[4096 + 16];
  if (!user[0]) {
    const char *cc = getenv("CC");
    snprintf(user, sizeof user, "%s", cc && *cc ? cc : "cc");
  }
  snprintf(path, sizeof path, "%s/cc-O%d", options->folder, effort);
  struct stat status;
  if (stat(path, &status) != 0) {
    char made[4096 + 32];
    snprintf(made, sizeof made, "%s.new", path);
    FILE *f = fopen(made, "w");
    if (!f) abort();
    fprintf(f, "#!/bin/sh\nexec %s \"$@\" -O%d\n", user, effort);
    fclose(f);
    if (chmod(made, 0700) != 0 || rename(made, path) != 0) abort();
  }
  setenv("CC", path, 1);
}

static bool compare_bits(Trial *t, const Passes *p, const Tensor *got, const char *way, const char *kind) {
  for (size_t k = 0; k < t->graph->noutputs; k++) {
    const Tensor *a = &got[k], *b = &p->bits[k];
    if (memcmp(a->data, b->data, tensor_nbytes(a)) == 0) continue;
    for (int64_t i = 0; i < tensor_nelems(a); i++) {
      size_t at = (size_t)tensor_offset(a, i);
      double x = type_load(a->type, a->data, at), y = type_load(b->type, b->data, at);
      if ((isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y))) continue;
      report_finding(t->report, kind, "%s: %s[%lld] is %.17g in %s but %.17g in the loop trees of %s", p->name,
                     t->graph->outputs[k]->name, (long long)i, x, way, y, p->first);
      return false;
    }
  }
  return true;
}

static void keep_bits(Trial *t, Passes *p, const Tensor *got, const char *way) {
  p->bits = ARENA_ARRAY(&t->arena, Tensor, t->graph->noutputs + 1);
  for (size_t k = 0; k < t->graph->noutputs; k++) {
    p->bits[k] = got[k];
    p->bits[k].data = arena_alloc(&t->arena, tensor_nbytes(&got[k]) + 1);
    memcpy(p->bits[k].data, got[k].data, tensor_nbytes(&got[k]));
  }
  snprintf(p->first, sizeof p->first, "%.95s", way);
}

// Fills memory with bytes that show where nothing is stored. Tensors begin or end at a page boundary, at random.
static int clear_outputs(Trial *t) {
  const int side = (int)random_below(&t->random, 2);
  for (size_t i = 0; i < t->graph->noutputs; i++) memset(t->got[side][i].data, 0xA5, tensor_nbytes(&t->got[side][i]));
  return side;
}

// Proves the loop trees of what small kernels there are, with more steps than each build takes.
static void prove_trees(Trial *t, const Program *program, const char *name) {
  int64_t nsteps = 1 << 20;
  Text why;
  text_init(&why, &system_allocator);
  if (!program_prove(program, &nsteps, &why)) report_finding(t->report, "proof", "%s: %s", name, text_string(&why));
  text_deinit(&why);
}

// Executes the loop trees: they must be sound, agree with the interpreter, and give the bits of the first way.
static void run_trees(Trial *t, Passes *p, const Graph *lowered, const Program *program, const char *name) {
  const int side = clear_outputs(t);
  Text why;
  text_init(&why, &system_allocator);
  const bool ok = execute_program(program, t->inputs[side], t->got[side], NULL, &why);
  if (!ok) report_finding(t->report, "loops", "%s: %s", name, text_string(&why));
  text_deinit(&why);
  if (!ok) return;
  if (p->bits) {
    compare_bits(t, p, t->got[side], name, "loops-target");
    return;
  }
  trial_compare(t, lowered, t->got[side], "loops-values", name);
  if (p->alike && p->alike->bits) compare_bits(t, p->alike, t->got[side], name, "fusion-bits");
  keep_bits(t, p, t->got[side], name);
}

static void run_compiled(Trial *t, Passes *p, const Way *way, const Compiled *compiled, const char *name) {
  void *inputs[256], *outputs[256];
  if (t->graph->ninputs > 256 || t->graph->noutputs > 256) return;
  const int side = clear_outputs(t);
  for (size_t i = 0; i < t->graph->ninputs; i++) inputs[i] = t->inputs[side][i].data;
  for (size_t i = 0; i < t->graph->noutputs; i++) outputs[i] = t->got[side][i].data;
  if (!compiled_run(compiled, inputs, outputs, way->threads, NULL)) return;
  t->report->nways++;
  compare_bits(t, p, t->got[side], name, way->machine[0] ? "bits-target" : "bits");
}

// Runs passes, interpreter, executor and compiler. Loop trees depend neither on threads nor on the optimisation level.
static void run_way(Trial *t, Passes *p, const Way *way) {
  char name[256];
  Report *r = t->report;
  if (p->is_left_out) return;
  snprintf(name, sizeof name, "%s, %s%s, -O%d, %d thread%s", p->name, way->isa->name, way->machine, way->effort,
           way->threads, way->threads > 1 ? "s" : "");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = graph_clone(t->graph);
  Target target = way->target;
  target.isa = way->isa->name;
  ScheduleOverrides overrides = {0};
  overrides.key[SCHEDULE_SLICES].is_set = p->has_small_slice_groups;
  overrides.key[SCHEDULE_SLICES].value = 1;
  PassContext c = {.diagnostics = &d,
                   .allocator = &system_allocator,
                   .target = &target,
                   .overrides = &overrides,
                   .evaluate = interpret_node,
                   .disabled = p->disabled,
                   .ndisabled = p->ndisabled,
                   .no_fuse = p->no_fuse};
  report_stage(r, "passes");
  if (!pipeline_run(g, &c)) report_finding(r, "passes", "%s: %s", name, d.count ? d.items[0].message : "failed");
  report_stage(r, "interpret-passed");
  if (!p->is_interpreted && !r->kind[0] && trial_interpret(t, g, t->got[0]))
    trial_compare(t, t->graph, t->got[0], "passes", name);
  p->is_interpreted = true;
  report_stage(r, "lower");
  Program *program = r->kind[0] ? NULL : pipeline_lower(g, &c);
  const bool is_built = program && pipeline_build_trees(program, false);
  const char *unsound = program ? program->unsound : NULL;
  if (!is_built)
    report_finding(r, "lower", "%s: %s", name, d.count ? d.items[0].message : unsound ? unsound : "failed");
  report_stage(r, "execute");
  if (is_built && !p->bits) prove_trees(t, program, name);
  if (is_built && (!p->bits || (way->threads == 1 && way->effort == 0))) run_trees(t, p, g, program, name);
  CompileTimes times;
  bool compiler_failed;
  use_effort(t->options, way->effort);
  report_stage(r, "compile");
  const bool is_compiled = t->options->is_compiled && p->bits;
  Compiled *compiled = is_built && is_compiled
                           ? codegen_compile(program, way->isa, 0, &system_allocator, &times, &compiler_failed, &d)
                           : NULL;
  if (!compiled && is_compiled) report_finding(r, "compile", "%s: %s", name, d.count ? d.items[0].message : "failed");
  else if (compiled) r->ncompiled += !times.was_cached;
  report_stage(r, "run");
  if (compiled) run_compiled(t, p, way, compiled, name);
  compiled_free(compiled);
  program_free(program);
  graph_free(g);
  diagnostics_deinit(&d);
}

// The machine's own target, as a kernel for this processor has it.
static Target own_target(const Isa *isa) {
  Target target = target_of_any_machine();
  target.l2_nbytes = isa->l2_nbytes;
  target.vector_registers = isa->vector_registers;
  return target;
}

static Target random_target(uint64_t *random) {
  Target target = target_of_any_machine();
  target.l1_nbytes = (int64_t)16 << (10 + random_below(random, 4));
  target.l2_nbytes = (int64_t)64 << (10 + random_below(random, 9));
  target.llc_nbytes = (int64_t)1 << (20 + random_below(random, 8));
  target.threads = 1 << random_below(random, 7);
  return target;
}

static void run_group(Trial *t, Passes *p, unsigned percent) {
  const Isa *best = isa_best();
  uint64_t *random = &t->choices;
  const char *only = t->options->only_group;
  snprintf(t->report->group, sizeof t->report->group, "%s", p->name);
  p->is_left_out = only && *only && strcmp(only, p->name) != 0;
  Way way = {.isa = best, .target = own_target(best), .machine = "", .effort = 0, .threads = 1};
  run_way(t, p, &way);
  way.threads = 2 + (int)random_below(random, 2);
  if (!t->report->kind[0]) run_way(t, p, &way); // its kernel is in the cache
  way.threads = 1;
  for (size_t i = 0; i < nisas && !t->report->kind[0]; i++) {
    if (&isas[i] == best || !isas[i].is_available() || !random_chance(random, percent)) continue;
    Way other = way;
    other.isa = &isas[i];
    other.target = own_target(&isas[i]);
    run_way(t, p, &other);
  }
  Way other = way;
  do other.isa = &isas[random_below(random, nisas)];
  while (!other.isa->is_available());
  other.target = own_target(other.isa);
  other.effort = random_chance(random, 25) ? 1 : 2; // people have -O2
  if (t->options->is_quick) other.effort = 0;
  if (random_chance(random, percent) && !t->report->kind[0]) run_way(t, p, &other);
  other = way;
  other.target = random_target(random);
  other.target.vector_registers = random_chance(random, 50) ? 32 : own_target(best).vector_registers;
  other.machine = " with other caches";
  bool has_target = !t->options->no_targets && random_chance(random, percent);
  if (has_target && !t->report->kind[0]) run_way(t, p, &other);
}

static void choose_passes(Trial *t, Passes *p) {
  snprintf(p->name, sizeof p->name, "without");
  for (size_t i = 0; i < npasses && p->ndisabled < MOST_DISABLED; i++) {
    if (!random_chance(&t->choices, 30)) continue;
    p->disabled[p->ndisabled++] = passes[i].name;
    size_t used = strlen(p->name);
    snprintf(p->name + used, sizeof p->name - used, " %s", passes[i].name);
  }
}

void trial_run_ways(Trial *t) {
  enum { MOST_GROUPS = 4 };
  const bool is_compiled = t->options->is_compiled;
  Passes fused = {.name = "fused", .has_small_slice_groups = true},
         unfused = {.name = "not fused", .no_fuse = true, .alike = &fused};
  run_group(t, &fused, 35);
  if (!t->report->kind[0] && (!is_compiled || random_chance(&t->choices, 40))) run_group(t, &unfused, 15);
  int ngroups = is_compiled ? random_chance(&t->choices, 40) : MOST_GROUPS;
  for (int i = 0; i < ngroups && !t->report->kind[0]; i++) {
    Passes less = {.has_small_slice_groups = true};
    choose_passes(t, &less);
    run_group(t, &less, 15);
  }
}
