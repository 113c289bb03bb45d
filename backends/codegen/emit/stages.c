#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/template.h"
#include "backends/codegen/leaves/leaves.h"

extern const char stages_text[];

bool stages_is_leaf(const EmittedStages *s, uint32_t function) {
  for (size_t i = 0; i < s->step->nstages; i++)
    if (s->step->stages[i].leaf && s->step->stages[i].leaf->number == function) return true;
  return false;
}

size_t stages_workspace(const FilePrinter *f) {
  struct ngrad_step step = *f->function->stages->step;
  step.scratch_nbytes = f->scratch_nbytes;
  return step_nbytes(&step, NULL);
}

// Tables

bool name_tensors(FilePrinter *f) {
  const Graph *g = f->graph;
  NameSet taken = {0};
  Printer p = {.scratch = f->scratch, .prefix = f->prefix};
  f->member = ARENA_ARRAY(f->scratch, const char *, g->nvalues + 1);
  for (size_t i = 0; f->member && i < g->nvalues; i++)
    if (g->values[i]->is_input || g->values[i]->is_output)
      f->member[i] = print_member_name(&p, g->values[i]->name, &taken, i);
  return f->member && !p.out_of_memory;
}

static void print_places(const FilePrinter *f, const char *what, const struct ngrad_function *function,
                         const struct ngrad_place *places, size_t count, Text *out) {
  if (!count) return;
  text_format(out, "static const struct %s_leaves_place %s_%s_%u[] = {\n", f->prefix, f->function->name, what,
              function->number);
  for (size_t i = 0; i < count; i++)
    text_format(out, "  {%d, %u, %zu, %zu},\n", places[i].kind, places[i].number, places[i].offset, places[i].nbytes);
  text_add_string(out, "};\n");
}

static void print_function(const FilePrinter *f, const struct ngrad_function *function, Text *out) {
  const char *name = f->function->name;
  if (!function) return;
  print_places(f, "given", function, function->inputs, function->ninputs, out);
  print_places(f, "taken", function, function->outputs, function->noutputs, out);
  text_format(out, "static const struct %s_leaves_function %s_function_%u = {%u, ", f->prefix, name, function->number,
              function->number);
  if (function->ninputs) text_format(out, "%s_given_%u, ", name, function->number);
  else text_add_string(out, "NULL, ");
  if (function->noutputs) text_format(out, "%s_taken_%u, ", name, function->number);
  else text_add_string(out, "NULL, ");
  text_format(out, "%zu, %zu};\n", function->ninputs, function->noutputs);
}

static void print_shared(const FilePrinter *f, size_t stage, Text *out) {
  const struct ngrad_stage *s = &f->function->stages->step->stages[stage];
  if (!s->nbuckets) return;
  text_format(out, "static const struct %s_leaves_shared %s_shared_%zu[] = {\n", f->prefix, f->function->name, stage);
  for (uint32_t i = 0; i < s->buckets[s->nbuckets - 1].end; i++)
    text_format(out, "  {%zu, %zu, %d, %d},\n", s->shared[i].offset, s->shared[i].nelems, s->shared[i].element,
                s->shared[i].reduction);
  text_add_string(out, "};\n");
}

// Prints the constants with a row for each leaf.
static void print_numbers(const FilePrinter *f, size_t count, Text *out) {
  const char *name = f->function->name;
  for (size_t i = 0; i < count; i++) {
    const char *array = arena_format(f->scratch, "%s_numbers_%zu", name, i);
    if (array) print_array(f->function->stages->numbers[i], array, out);
    else out->out_of_memory = true;
  }
  if (!count) return;
  text_format(out, "static const void *const %s_numbers[] = {", name);
  for (size_t i = 0; i < count; i++) text_format(out, "%s%s_numbers_%zu", i ? ", " : "", name, i);
  text_add_string(out, "};\n");
}

// Prints an instruction set's tables. Stages are the same for all instruction sets; functions, and the parts after
// which buckets are complete, are not.
static void print_tables_of(const FilePrinter *f, size_t isa, Text *out) {
  const EmittedStages *stages = f->function->stages;
  const struct ngrad_step *step = stages->step;
  const char *name = f->function->name, *p = f->prefix, *isa_name = f->file->isas[isa]->name;
  for (size_t i = 0; i < step->nstages; i++) {
    const struct ngrad_stage *s = &step->stages[i];
    if (!s->nbuckets) continue;
    size_t *parts = ARENA_ARRAY(f->scratch, size_t, s->nbuckets);
    out->out_of_memory |= !parts;
    if (!parts) return;
    step_find_parts(s, stages->programs[s->leaf->number][isa], parts);
    text_format(out, "static const struct %s_leaves_bucket %s_%s_buckets_%zu[] = {\n", p, name, isa_name, i);
    for (size_t b = 0; b < s->nbuckets; b++) {
      text_format(out, "  {%u, %u, %zu, %zu, ", s->buckets[b].first, s->buckets[b].end, s->buckets[b].offset,
                  s->buckets[b].nbytes);
      if (parts[b] == SIZE_MAX) text_add_string(out, "SIZE_MAX},\n");
      else text_format(out, "%zu},\n", parts[b]);
    }
    text_add_string(out, "};\n");
  }
  text_format(out, "static const struct %s_leaves_stage %s_%s_stages[] = {\n", p, name, isa_name);
  for (size_t i = 0; i < step->nstages; i++) {
    const struct ngrad_stage *s = &step->stages[i];
    text_add_string(out, "  {");
    if (s->common) text_format(out, "&%s_function_%u, ", name, s->common->number);
    else text_add_string(out, "NULL, ");
    if (s->leaf) text_format(out, "&%s_function_%u, ", name, s->leaf->number);
    else text_add_string(out, "NULL, ");
    if (s->nbuckets) text_format(out, "%s_shared_%zu, %s_%s_buckets_%zu, ", name, i, name, isa_name, i);
    else text_add_string(out, "NULL, NULL, ");
    text_format(out, "%zu, %zu},\n", s->nbuckets, s->shared_nbytes);
  }
  text_format(out,
              "};\nstatic void (*const %s_%s_functions[])(const void *const *, void *const *, unsigned char *,\n"
              "    const struct %s_pool *) = {\n",
              name, isa_name, p);
  for (size_t i = 0; i < stages->nfunctions; i++) text_format(out, "  %s_%s_%zu_run,\n", name, isa_name, i);
  text_add_string(out, "};\n");
}

static void print_step_of(const FilePrinter *f, size_t isa, Text *out) {
  add_isa_case(f, isa, out);
  text_format(out, "step.stages = %s_%s_stages; break;\n", f->function->name, f->file->isas[isa]->name);
}

static void print_call_of(const FilePrinter *f, size_t isa, Text *out) {
  add_isa_case(f, isa, out);
  text_format(out, "%s_%s_functions[function](inputs, outputs, (unsigned char *)scratch, &pool); break;\n",
              f->function->name, f->file->isas[isa]->name);
}

// The number of constants with a row for each leaf: the largest number in places, plus one.
static size_t count_numbers(const struct ngrad_step *step) {
  size_t count = 0;
  for (size_t i = 0; i < step->nstages; i++) {
    const struct ngrad_function *f = step->stages[i].leaf;
    for (size_t k = 0; f && k < f->ninputs; k++)
      if (f->inputs[k].kind == ngrad_PLACE_NUMBERS && f->inputs[k].number >= count) count = f->inputs[k].number + 1;
  }
  return count;
}

static void add_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  const struct ngrad_step *step = f->function->stages->step;
  if (is_part(name, "SIZES"))
    text_format(out, "%zu, %zu, %zu, %zu, %zu", step->nstages, step->common_nbytes, step->own_nbytes, f->scratch_nbytes,
                step->most_operands);
  else if (is_part(name, "NUMBERS") && !count_numbers(step)) text_add_string(out, "NULL");
  else if (is_part(name, "NUMBERS")) text_format(out, "%s_numbers", f->function->name);
  else if (is_part(name, "STEPS")) print_for_isas(f, true, print_step_of, out);
  else if (is_part(name, "CALLS")) print_for_isas(f, true, print_call_of, out);
  else add_file_part(f, name, out);
}

void print_stages(const FilePrinter *f, Text *out) {
  const struct ngrad_step *step = f->function->stages->step;
  print_numbers(f, count_numbers(step), out);
  for (size_t i = 0; i < step->nstages; i++) {
    print_function(f, step->stages[i].common, out);
    print_function(f, step->stages[i].leaf, out);
    print_shared(f, i, out);
  }
  print_for_isas(f, false, print_tables_of, out);
  text_add_string(out, "\n");
  print_file_template(f, stages_text, add_part, out);
}
