// Prints names, integers and addresses. Variables and pointers have the same names as in the emitted C.
#include "ir/loops/loop_text.h"

#include "ir/graph/open_dims.h"
#include "ir/support/escape.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void loop_text_add(LoopText *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_format_list(p->out, format, args);
  va_end(args);
}

void loop_text_name(LoopText *p, const char *name) {
  text_add_user_string(p->out, SINK_TERMINAL, name);
}

// Integers

void loop_text_number(LoopText *p, int64_t number, Monomial monomial) {
  if (!monomial) {
    loop_text_add(p, "%lld", (long long)number);
    return;
  }
  const Graph *g = p->k->graph;
  const int64_t factor = open_factor(g, number, monomial);
  int nfactors = factor != 1;
  if (nfactors) loop_text_add(p, "%lld", (long long)factor);
  for (size_t i = 0; i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) {
      if (nfactors++) loop_text_add(p, " * ");
      loop_text_name(p, g->dims[i]->name);
    }
}

void loop_text_var(LoopText *p, Var v) {
  const VarInfo *info = &var_info[v.kind];
  text_add_string(p->out, info->prefix);
  if (info->owner == OWNER_AXIS) loop_text_add(p, "%s", v.of < (uint32_t)p->k->naxes ? p->k->axes[v.of].name : "?");
  if (info->owner == OWNER_ACCESS) loop_text_name(p, v.of < p->k->naccesses ? p->access_name[v.of] : "?");
  text_add_string(p->out, info->suffix);
}

static void add_index(LoopText *p, const Index *i, int precedence) {
  if (!i) {
    loop_text_add(p, "nothing");
    return;
  }
  const int own = i->monomial ? PRECEDENCE_PRODUCT : index_operators[i->op].precedence;
  if (own < precedence) loop_text_add(p, "(");
  switch (i->op) {
  case INDEX_NUMBER: loop_text_number(p, i->number, i->monomial); break;
  case INDEX_VAR: loop_text_var(p, i->var); break;
  case INDEX_BLOCK_LENGTH: loop_text_add(p, "block_length(loop %u)", (unsigned)i->loop); break;
  case INDEX_NCUT_BLOCKS: loop_text_add(p, "chunks(loop %u)", (unsigned)i->loop); break;
  case INDEX_SIGNED: add_index(p, i->args[0], precedence); break;
  case INDEX_EXISTS:
    loop_text_buffer(p, i->address);
    loop_text_add(p, " is not NULL");
    break;
  case INDEX_IS_AT_LINE:
    loop_text_address(p, i->address);
    loop_text_add(p, " begins a cache line");
    break;
  case INDEX_TO_LINE:
    loop_text_add(p, "elements from ");
    loop_text_address(p, i->address);
    loop_text_add(p, " to the next cache line");
    break;
  case INDEX_CHOOSE:
    add_index(p, i->args[0], own + 1);
    loop_text_add(p, " ? ");
    add_index(p, i->args[1], own);
    loop_text_add(p, " : ");
    add_index(p, i->args[2], own);
    break;
  default:
    add_index(p, i->args[0], own);
    text_add_string(p->out, index_operators[i->op].text);
    add_index(p, i->args[1], own + 1);
  }
  if (own < precedence) loop_text_add(p, ")");
}

void loop_text_index(LoopText *p, const Index *i) {
  add_index(p, i, 0);
}

// Addresses

static const char *memory_name(const Schedule *s, AccessId id) {
  const Access *a = &s->kernel->accesses[id];
  return a->value ? a->value->name : a->type == TYPE_NONE ? "place" : s->temporaries[a->temporary].name;
}

// Prints a tensor's name in the graph; a temporary's number and name.
void loop_text_memory(LoopText *p, AccessId id) {
  const Access *a = &p->k->accesses[id];
  if (!a->value && a->type != TYPE_NONE) loop_text_add(p, "temporary%u_", (unsigned)a->temporary);
  loop_text_name(p, memory_name(p->t->schedule, id));
}

static void add_item(LoopText *p, const Index *index) {
  loop_text_add(p, "[");
  if (index) add_index(p, index, 0);
  else loop_text_add(p, "0");
  loop_text_add(p, "]");
}

void loop_text_buffer(LoopText *p, const Address *at) {
  const BufferInfo *info = &buffer_info[at->buffer];
  text_add_string(p->out, info->prefix);
  if (at->buffer == BUFFER_TENSOR) loop_text_memory(p, at->of);
  else loop_text_name(p, info->is_of_expr ? p->expr_name[at->of] : p->access_name[at->of]);
  if (at->item) add_item(p, at->item);
}

void loop_text_address(LoopText *p, const Address *at) {
  loop_text_buffer(p, at);
  if (!at->index) return;
  loop_text_add(p, " + ");
  add_index(p, at->index, PRECEDENCE_SUM);
}

void loop_text_element(LoopText *p, const Address *at) {
  loop_text_buffer(p, at);
  add_item(p, at->index);
}

// Names

typedef struct Named {
  const char *name;
  uint32_t id;
} Named;

static int compare_names(const void *a, const void *b) {
  const Named *x = a, *y = b;
  const int order = strcmp(x->name, y->name);
  return order ? order : (x->id > y->id) - (x->id < y->id);
}

// Makes names unique: if several are equal, all but the first get their number appended.
static bool give_names(Arena *arena, Named *named, size_t count, const char **names) {
  if (count) qsort(named, count, sizeof *named, compare_names);
  for (size_t i = 0; i < count; i++) {
    const bool is_first = !i || strcmp(named[i - 1].name, named[i].name) != 0;
    names[named[i].id] = is_first ? named[i].name : arena_format(arena, "%s%u", named[i].name, (unsigned)named[i].id);
    if (!names[named[i].id]) return false;
  }
  return true;
}

// Makes the names of the accesses that the loop uses unique.
static bool name_accesses(LoopText *p, Arena *arena, Named *named) {
  const Kernel *k = p->k;
  size_t count = 0;
  bool *is_had = ARENA_ARRAY(arena, bool, k->naccesses + 1);
  if (!is_had) return false;
  for (AccessId id = 0; id < k->naccesses; id++) p->access_name[id] = memory_name(p->t->schedule, id);
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (p->t->is_made[id] && expr_has_access(e)) is_had[e->access] = true;
  }
  for (size_t i = 0; i < p->t->loop->nroots; i++) {
    const Root *root = &p->t->loop->roots[i];
    if (root->kind != ROOT_REDUCE_INNER) is_had[root->access] = true;
  }
  for (AccessId id = 0; id < k->naccesses; id++)
    if (is_had[id]) named[count++] = (Named){p->access_name[id], id};
  return give_names(arena, named, count, p->access_name);
}

bool loop_text_name_all(LoopText *p, Arena *arena) {
  const Kernel *k = p->k;
  const size_t most = k->nexprs > k->naccesses ? k->nexprs : k->naccesses;
  Named *named = ARENA_ARRAY(arena, Named, most + 1);
  p->expr_name = ARENA_ARRAY(arena, const char *, k->nexprs + 1);
  p->access_name = ARENA_ARRAY(arena, const char *, k->naccesses + 1);
  if (!named || !p->expr_name || !p->access_name) return false;
  size_t count = 0;
  p->expr_name[0] = "?";
  for (ExprId id = 1; id < k->nexprs; id++) {
    if (k->exprs[id].label && p->t->is_made[id]) named[count++] = (Named){k->exprs[id].label, id};
    else if (!(p->expr_name[id] = arena_format(arena, "t%u", (unsigned)id))) return false;
  }
  if (!give_names(arena, named, count, p->expr_name)) return false;
  return name_accesses(p, arena, named);
}
