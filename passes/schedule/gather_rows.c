// Loads and stores vectors of all rows of a product's step at once, where the rows are adjacent in memory and the lanes
// of a vector are not. An array of the step then has a vector for each row, and is gathered before the loop over the
// rows, or scattered after it; C transposes it in registers.
//
//   local rows_y[14]: vectors
//   for r in 0..rows
//     ...; store y to rows_y + r * 16
//   p_y[..] + j * 784, with stride 784 = rows_y
#include "passes/costs/costs.h"
#include "passes/schedule/tree_passes.h"

// Transposing fewer rows than transposed_rows takes longer than loading or storing element by element.
static bool has_near_rows(const Kernel *k, const Loop *loop, const LoopNode *n) {
  const Access *a = &k->accesses[n->access];
  const bool is_strided = n->kind == NODE_STORE
                              ? n->is_vector && node_is_strided(n)
                              : n->kind == NODE_LET && n->load == LOAD_STRIDED && !k->exprs[n->expr].args[0];
  return is_strided && !n->has_fewer_lanes && loop_has(loop, LOOP_COLUMNS) && loop->rows >= k->costs->transposed_rows &&
         n->address.base == BASE_POINTER && n->address.is_row && a->type == TYPE_F32 && !k->is_f64 &&
         a->stride[loop->axes[loop->nouter - 1]] == 1;
}

// Adds the arrays for loads and stores in the loop's body, and gathers those for loads.
static void add_arrays(TreeBuilder *b, const Kernel *k, const Loop *loop, const LoopNode *n) {
  for (; n; n = n->next) {
    if (n->kind == NODE_IF) add_arrays(b, k, loop, n->body);
    if (!has_near_rows(k, loop, n)) continue;
    tree_add(b, (LoopNode){.kind = NODE_LOCAL, .local = LOCAL_ROWS, .access = n->access, .nelems = loop->rows});
    if (n->kind == NODE_LET)
      tree_add(b, (LoopNode){.kind = NODE_GATHER_ROWS, .access = n->access, .address = n->address, .step = n->step});
  }
}

// Replaces the addresses of loads and stores in the loop's body by vectors of the arrays, and scatters stored vectors.
// `flag`: the condition around the nodes. A condition around a single store is needed for the scatter only.
static void use_arrays(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes, Flag flag) {
  for (LoopNode **at = nodes; *at; at = &(*at)->next) {
    LoopNode *n = *at, *only = n->kind == NODE_IF && n->body && !n->body->next ? n->body : NULL;
    const bool is_store = only && only->kind == NODE_STORE && has_near_rows(k, loop, only);
    if (n->kind == NODE_IF) use_arrays(b, k, loop, &n->body, n->flag);
    if (is_store) {
      only->next = n->next;
      *at = only;
    }
    if (!has_near_rows(k, loop, n)) continue;
    if (n->kind == NODE_STORE)
      tree_add(
          b, (LoopNode){
                 .kind = NODE_SCATTER_ROWS, .access = n->access, .address = n->address, .step = n->step, .flag = flag});
    else n->load = LOAD_COPIED;
    n->step = NULL;
    n->address = (Address){.base = BASE_ROWS,
                           .access = n->access,
                           .index = index_of(b, INDEX_MULTIPLY, index_var(b, VAR_ROW, 0), index_number(b, LANES, 0))};
  }
}

static void gather(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes) {
  for (LoopNode **at = nodes; *at && !b->out_of_memory; at = &(*at)->next) {
    LoopNode *n = *at;
    gather(b, k, loop, &n->body);
    gather(b, k, loop, &n->otherwise);
    if (n->kind != NODE_FOR || n->var.kind != VAR_ROW) continue;
    tree_open(b, at);
    add_arrays(b, k, loop, n->body);
    tree_close(b);
    tree_open(b, &n->next);
    use_arrays(b, k, loop, &n->body, FLAG_NONE);
    tree_close(b);
    while (*at != n) at = &(*at)->next;
  }
}

void schedule_gather_rows(TreeBuilder *b, LoopTree *t) {
  gather(b, t->k, t->loop, &t->step);
}
