// Prints the functions of a loop tree: the step, a second step for the last rows in lanes if the tree has one, and the
// block. Out-of-line versions of long vocabulary functions come first, if the tree calls these functions often.
#include "backends/codegen/print/tree_printer.h"
#include "ir/support/escape.h"

#include <string.h>

// Prints a function's body. The body goes to a separate text first, because the open dims that it uses are declared
// before it.
static void print_function_body(TreePrinter *l, const LoopNode *nodes, Var parameter) {
  Text body, *function = l->out;
  text_init(&body, l->own->p->scratch->allocator);
  memset(l->own->mentions_dim, 0, sizeof l->own->mentions_dim);
  l->own->mentions_args = false;
  l->out = &body;
  l->indent++;
  if (!nodes_mention(nodes, parameter)) {
    tree_begin_line(l);
    tree_printf(l, "(void)%s;\n", var_info[parameter.kind].prefix);
  }
  print_nodes(l, nodes);
  l->out = function;
  for (size_t i = 0; i < MAX_OPEN_DIMS; i++) {
    if (!l->own->mentions_dim[i]) continue;
    tree_printf(l, "  const size_t %s = a->%s;\n", l->expr_name[l->k->nexprs + i], l->own->p->dim_member[i]);
  }
  text_add(l->out, text_string(&body), body.nbytes);
  if (!l->own->mentions_args) tree_printf(l, "  (void)a; // the tensors have no elements\n");
  l->indent--;
  tree_printf(l, "}\n\n");
  l->out->out_of_memory |= body.out_of_memory;
  text_deinit(&body);
}

static void print_order(TreePrinter *l) {
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_order(l->k, l->t->loop, &words);
  tree_printf(l, "// One step of the loop ");
  text_add_user_string(l->out, SINK_COMMENT, text_string(&words));
  l->own->p->out_of_memory |= words.out_of_memory;
  text_deinit(&words);
  tree_printf(l, "\n");
}

static bool is_shared(const TreePrinter *l) {
  return !l->own->p->is_canonical && l->own->p->is_shared[l->own->kernel_index];
}

// The name of the argument struct: the kernel's own if other kernels call its functions, too.
static const char *struct_name(const TreePrinter *l) {
  return checked(l->own->p, is_shared(l) ? arena_format(l->own->p->scratch, "%s_kernel%zu_args", l->own->identifier,
                                                        l->own->kernel_index)
                                         : arena_format(l->own->p->scratch, "%s_args", l->own->identifier));
}

static void print_step(TreePrinter *l, bool is_tail) {
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(l->t, is_tail, parameters);
  part_begin_named(l->own->p->parts, l->out, "%s_kernel%zu_%s%zu", l->own->identifier, l->own->number,
                   is_tail ? "rest" : "step", l->own->loop_index);
  if (!l->own->p->is_canonical) print_order(l);
  part_end_comment(l->own->p->parts);
  tree_printf(l, l->t->loop->by_element ? "static void " : "static inline ALWAYS_INLINE void ");
  print_step_name(l, is_tail);
  tree_printf(l, "(\n    const struct %s *a", struct_name(l));
  print_partial_parameters(l, false);
  for (int i = 0; i < count; i++)
    tree_printf(l, ", %s%s %s", parameters[i].kind == VAR_ROWS ? "const " : "", var_type(parameters[i]),
                var_info[parameters[i].kind].prefix);
  tree_printf(l, ") {\n");
  print_function_body(l, is_tail ? l->t->tail_step : l->t->step, parameters[0]);
}

// Prints the block function. If several kernels call it, it is not inlined, as inlining would copy it for each kernel.
static void print_block(TreePrinter *l) {
  const char *name = checked(l->own->p, arena_format(l->own->p->scratch, "%s_kernel%zu_loop%zu", l->own->identifier,
                                                     l->own->number, l->own->loop_index));
  const char *of = struct_name(l);
  const bool is_external = l->own->p->has_cuts && !l->own->p->is_canonical;
  part_begin_named(l->own->p->parts, l->out, "%s", name);
  if (is_external) text_format(l->own->p->plain, "void %s(const void *args, size_t block);\n\n", name);
  tree_printf(l,
              "%s%svoid %s(const void *args, size_t block) {\n"
              "  const struct %s *a = (const struct %s *)args;\n",
              is_external ? "" : "static ", is_shared(l) ? "V_FAR " : "", name, of, of);
  print_function_body(l, l->t->block, loop_var(VAR_BLOCK));
}

// Prints a vocabulary function as a noinline function that takes its vectors through memory, because compilers differ
// in how they pass vectors in registers; and an inline wrapper that takes and returns vectors.
static void print_callable(TreePrinter *l, const LoopNode *n) {
  const char *id = l->own->identifier, *name = expr_info[expr_of(l, n)->op].name;
  part_begin_named(l->own->p->parts, l->out, "%s_far_%c_%s", id, *l->own->prefix, name);
  tree_say(l, n,
           "static V_FAR void {file}_far_{prefix}_{operator}({vec} *a{b_pointer}) {\n"
           "  *a = {prefix}_{operator}(*a{b_loaded});\n}\n\n");
  part_begin_named(l->own->p->parts, l->out, "%s_call_%c_%s", id, *l->own->prefix, name);
  tree_say(l, n,
           "static inline ALWAYS_INLINE {vec} {file}_call_{prefix}_{operator}({vec} a{b_vector}) {\n"
           "  {file}_far_{prefix}_{operator}(&a{b_address});\n  return a;\n}\n\n");
}

// The same for loops by element, with scalars.
static void print_scalar_callable(TreePrinter *l, const LoopNode *n) {
  const ExprOp op = expr_of(l, n)->op;
  part_begin_named(l->own->p->parts, l->out, "%s_one_%c_%s", l->own->identifier, *l->own->prefix, expr_info[op].name);
  tree_say(l, n, "static V_FAR {scalar} {file}_one_{prefix}_{operator}({scalar} a{b_scalar}) {\n  return ");
  l->own->is_callable = true;
  tree_say(l, n, element_formulas[op][l->k->is_f64]);
  l->own->is_callable = false;
  tree_add_text(l, ";\n}\n\n");
}

static void print_callables(TreePrinter *l) {
  const bool is_scalar = l->t->loop->by_element;
  ExprId used[EXPR_OP_COUNT] = {0}; // an expression with the operation
  Text *own = l->out;
  if (l->own->p->has_cuts) l->out = l->own->p->plain;
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (l->t->is_made[id]) used[l->k->exprs[id].op] = id;
  for (int op = 0; (l->t->calls_long || is_scalar) && op < EXPR_OP_COUNT; op++) {
    if (!used[op] || !expr_is_long((ExprOp)op) || (is_scalar && !element_formulas[op][l->k->is_f64])) continue;
    bool *is_callable = &l->own->p->is_callable[op][l->k->is_f64][is_scalar];
    if (!*is_callable) (is_scalar ? print_scalar_callable : print_callable)(l, &(LoopNode){.expr = used[op]});
    *is_callable = true;
  }
  l->out = own;
}

// Names

// Names an access after its tensor or temporary, with a number if the loop has several accesses to the same.
static void name_access(TreePrinter *l, AccessId id, NameSet *taken) {
  const Access *a = &l->k->accesses[id];
  const char *own = a->value                  ? l->own->p->value_member[a->value->index]
                    : a->type == TYPE_NONE    ? "place"
                    : l->own->p->is_canonical ? *temporary_member(l->own->p, l->own->kernel_index, a->temporary)
                                              : l->t->schedule->temporaries[a->temporary].name;
  if (!l->access_name[id]) l->access_name[id] = print_local_name(l->own->p, own, taken, id);
}

static bool name_all(TreePrinter *l) {
  Arena *scratch = l->own->p->scratch;
  const Loop *loop = l->t->loop;
  const size_t n = l->k->nexprs;
  NameSet taken = {0}, taken_by_accesses = {0};
  l->expr_name = ARENA_ARRAY(scratch, const char *, n + MAX_OPEN_DIMS);
  l->access_name = ARENA_ARRAY(scratch, const char *, l->k->naccesses + 1);
  if (!l->expr_name || !l->access_name) return false;
  for (ExprId id = 1; id < n; id++)
    if (l->t->is_made[id])
      l->expr_name[id] =
          print_local_name(l->own->p, l->own->p->is_canonical ? NULL : l->k->exprs[id].label, &taken, id);
  for (ExprId id = 1; id < n; id++)
    if (l->t->is_made[id] && expr_has_access(&l->k->exprs[id]))
      name_access(l, l->k->exprs[id].access, &taken_by_accesses);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) name_access(l, loop->roots[i].access, &taken_by_accesses);
  for (size_t i = 0; l->k->graph && i < l->k->graph->ndims; i++)
    l->expr_name[n + i] = print_local_name(l->own->p, l->k->graph->dims[i]->name, &taken, i);
  return true;
}

// Uses its own scratch arena, because no name or text outlives the loop.
void print_loop_functions(Printer *printer, size_t kernel, size_t loop) {
  const Kernel *k = printer->program->schedules[kernel]->kernel;
  Arena scratch;
  Printer own = *printer, *p = &own;
  arena_init(&scratch, printer->scratch->allocator);
  own.scratch = &scratch;
  LanguageState state = k->is_s64 ? (LanguageState){.vec = "lvec", .scalar = "int64_t", .mask = "dmask", .prefix = "l"}
                        : k->is_f64 ? (LanguageState){.vec = "dvec", .scalar = "double", .mask = "dmask", .prefix = "d"}
                                    : (LanguageState){.vec = "vec", .scalar = "float", .mask = "mask", .prefix = "v"};
  state.p = p;
  state.identifier = p->identifier;
  state.kernel_index = kernel;
  state.number = p->is_canonical ? 0 : kernel;
  state.loop_index = loop;
  TreePrinter l;
  tree_printer_init(&l, &c_language, program_tree(p->program, kernel, loop), p->out);
  l.own = &state;
  const bool ok = name_all(&l);
  if (ok && !p->is_canonical) print_callables(&l);
  if (ok && l.t->step) print_step(&l, false);
  if (ok && l.t->tail_step) print_step(&l, true);
  if (ok) print_block(&l);
  printer->out_of_memory |= !ok || own.out_of_memory;
  memcpy(printer->is_callable, own.is_callable, sizeof own.is_callable);
  arena_deinit(&scratch);
}
