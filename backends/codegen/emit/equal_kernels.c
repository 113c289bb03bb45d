// Finds kernels with equal functions: prints each kernel's functions with numbers instead of names, operands in the
// order of the kernel's accesses, and compares the texts. The text is the whole computation, so that nothing else needs
// to be compared.
#include "backends/codegen/emit/emit.h"

#include <stdio.h>
#include <string.h>

typedef struct Class { // kernels with the same text
  const char *text;
  size_t nbytes;
  uint64_t hash;
  size_t first; // the first kernel with the text
} Class;

typedef struct Classes { // a hash table with open addressing, at most half full
  Class *slots;          // a slot is free if its text is NULL
  size_t nslots;
} Classes;

// Operands

static bool is_first_access(const Kernel *k, AccessId access) {
  for (AccessId i = 0; i < access; i++)
    if (k->accesses[i].value == k->accesses[access].value) return false;
  return true;
}

typedef enum Form { DECLARATIONS, VALUES } Form;

static void add_size(const Form form, const char *member, size_t *count, Text *out) {
  if (form == DECLARATIONS) text_format(out, "  size_t %s;\n", member);
  else text_format(out, "%sa->%s", (*count)++ ? ", " : "", member);
}

static void add_loop_sizes(const Printer *p, size_t kernel, Form form, size_t *count, Text *out) {
  const Schedule *s = p->program->schedules[kernel];
  const size_t number = p->is_canonical ? 0 : kernel;
  char member[64];
  for (size_t l = 0; l < s->nloops; l++) {
    snprintf(member, sizeof member, "k%zu_loop%zu_block", number, l);
    if (loop_has_open_length(s->kernel, &s->loops[l])) add_size(form, member, count, out);
    snprintf(member, sizeof member, "k%zu_loop%zu_blocks", number, l);
    if (loop_has_open_cut_blocks(s->kernel, &s->loops[l])) add_size(form, member, count, out);
  }
}

// Adds the members, in the order of the kernel's own struct.
static void add_members(const Printer *p, size_t kernel, Form form, Text *out) {
  const Schedule *s = p->program->schedules[kernel];
  const Kernel *k = s->kernel;
  size_t count = 0;
  for (size_t i = 0; i < p->program->graph->ndims; i++) add_size(form, p->dim_member[i], &count, out);
  add_loop_sizes(p, kernel, form, &count, out);
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Value *v = k->accesses[i].value;
    const char *member = v ? p->value_member[v->index] : NULL;
    if (!member || !is_first_access(k, i)) continue;
    if (form == VALUES) text_format(out, "%sa->%s", count++ ? ", " : "", member);
    else
      text_format(out, "  %s%s *%s;\n", kernel_stores_value(k, v) ? "" : "const ", element_types[v->type].name, member);
  }
  for (size_t t = 0; t < s->ntemporaries; t++) {
    const char *member = *temporary_member(p, kernel, t);
    if (s->temporaries[t].is_own) continue;
    if (form == VALUES) text_format(out, "%sa->%s", count++ ? ", " : "", member);
    else text_format(out, "  %s *%s;\n", element_types[s->temporaries[t].type].name, member);
  }
}

void print_own_struct(Printer *p, size_t kernel, Text *out) {
  part_begin_named(p->parts, out, "%s_kernel%zu_args", p->identifier, kernel);
  text_format(out, "struct %s_kernel%zu_args {\n", p->identifier, kernel);
  add_members(p, kernel, DECLARATIONS, out);
  text_add_string(out, "};\n\n");
}

void print_own_members(Printer *p, size_t kernel, Text *out) {
  add_members(p, kernel, VALUES, out);
}

// Texts

// Replaces the names of the kernel's values by numbers; with is_removed, removes them.
static void number_values(Printer *canonical, const Printer *p, const Kernel *k, bool is_removed) {
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Value *v = k->accesses[i].value;
    if (!v || !p->value_member[v->index] || (canonical->value_member[v->index] && !is_removed)) continue;
    canonical->value_member[v->index] =
        is_removed ? NULL : checked(canonical, arena_format(canonical->scratch, "v%u", (unsigned)i));
  }
}

// Prints the kernel with canonical names: equal texts are equal code.
static void print_text(Printer *canonical, const Printer *p, size_t kernel) {
  const Schedule *s = p->program->schedules[kernel];
  number_values(canonical, p, s->kernel, false);
  canonical->out->nbytes = 0;
  add_members(canonical, kernel, DECLARATIONS, canonical->out);
  for (size_t l = 0; l < s->nloops; l++) {
    text_format(canonical->out, "loop %zu:\n", l);
    if (!loop_is_idle(s->kernel, &s->loops[l])) print_loop_functions(canonical, kernel, l);
  }
  number_values(canonical, p, s->kernel, true);
}

// Returns the first kernel with this text: `kernel` if no earlier kernel has it.
static size_t find_first(Classes *classes, Arena *arena, const Text *text, size_t kernel) {
  const uint64_t hash = bytes_hash(text_string(text), text->nbytes);
  size_t at = (size_t)hash & (classes->nslots - 1);
  for (; classes->slots[at].text; at = (at + 1) & (classes->nslots - 1)) {
    const Class *c = &classes->slots[at];
    if (c->hash == hash && c->nbytes == text->nbytes && memcmp(c->text, text_string(text), text->nbytes) == 0)
      return c->first;
  }
  char *copy = ARENA_ARRAY(arena, char, text->nbytes + 1);
  if (!copy) return SIZE_MAX;
  memcpy(copy, text_string(text), text->nbytes);
  classes->slots[at] = (Class){copy, text->nbytes, hash, kernel};
  return kernel;
}

// A printer that names values and temporaries by their numbers.
static bool canonical_init(Printer *canonical, const Printer *p, Arena *arena, Text *text) {
  const Program *program = p->program;
  size_t most = 0;
  *canonical = *p;
  canonical->is_canonical = true;
  canonical->parts = NULL;
  canonical->scratch = arena;
  canonical->out = text;
  canonical->value_member = ARENA_ARRAY(arena, const char *, program->graph->nvalues + 1);
  for (size_t i = 0; i < program->nkernels; i++) most += program->schedules[i]->ntemporaries;
  canonical->temporary_member = ARENA_ARRAY(arena, const char *, most + 1);
  if (!canonical->value_member || !canonical->temporary_member) return false;
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t t = 0; t < program->schedules[i]->ntemporaries; t++)
      *temporary_member(canonical, i, t) = checked(canonical, arena_format(arena, "t%zu", t));
  return true;
}

bool find_alike(Printer *p) {
  const size_t nkernels = p->program->nkernels;
  Arena arena;
  Text text;
  Printer canonical;
  Classes classes = {.nslots = 16};
  arena_init(&arena, p->scratch->allocator);
  text_init(&text, p->scratch->allocator);
  while (classes.nslots < 2 * nkernels) classes.nslots *= 2;
  classes.slots = ARENA_ARRAY(&arena, Class, classes.nslots);
  p->first_alike = ARENA_ARRAY(p->scratch, size_t, nkernels + 1);
  p->is_shared = ARENA_ARRAY(p->scratch, bool, nkernels + 1);
  bool ok = classes.slots && p->first_alike && p->is_shared && canonical_init(&canonical, p, &arena, &text);
  for (size_t i = 0; ok && i < nkernels; i++) {
    print_text(&canonical, p, i);
    p->first_alike[i] = find_first(&classes, &arena, &text, i);
    ok = !canonical.out_of_memory && !text.out_of_memory && p->first_alike[i] != SIZE_MAX;
    if (ok && p->first_alike[i] != i) p->is_shared[i] = p->is_shared[p->first_alike[i]] = true;
  }
  text_deinit(&text);
  arena_deinit(&arena);
  return ok;
}
