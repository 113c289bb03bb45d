// Loads and stores vectors of all rows of a product's micro-kernel at once, where the rows are adjacent in memory and
// the lanes of a vector are not. An array of the micro-kernel then has a vector for each row, and is gathered before
// the loop over the rows, or scattered after it; C transposes it in registers.
//
//   local rows_y[14]: vectors
//   for r in 0..rows
//     ...; store y to rows_y + r * 16
//   p_y[..] + j * 784, with stride 784 = rows_y
#include "passes/costs/costs.h"
#include "passes/schedule/build/tree_passes.h"

// Transposing fewer rows than transposed_rows takes longer than loading or storing element by element.
static bool has_near_rows(const LoopTree *t, const LoopNode *n) {
  const Kernel *k = t->k;
  const Loop *loop = t->loop;
  const Access *a = &k->accesses[node_access(n)];
  const Address *at = n->kind == NODE_STORE ? &n->to : &n->from;
  const bool is_strided = n->kind == NODE_STORE
                              ? n->is_vector && node_is_strided(n)
                              : n->kind == NODE_LET && node_load(t, n) == LOAD_STRIDED && !k->exprs[n->expr].args[0];
  return is_strided && !n->has_fewer_lanes && loop_has(loop, LOOP_COLUMNS) && loop->rows >= k->costs->transposed_rows &&
         at->buffer == BUFFER_ROW && at->item && a->type == TYPE_F32 && !k->is_f64 &&
         a->stride[loop->axes[loop->nouter - 1]] == 1;
}

// Adds the arrays for loads and stores in the loop's body, and gathers those for loads.
static void add_arrays(TreeBuilder *b, const LoopTree *t, const LoopNode *n) {
  for (; n; n = n->next) {
    if (n->kind == NODE_IF) add_arrays(b, t, n->body);
    if (!has_near_rows(t, n)) continue;
    LoopNode node = {.kind = NODE_BUFFER, .to = {.buffer = BUFFER_COPY, .of = node_access(n)}};
    node.is_vector = true;
    node.count = t->loop->rows;
    tree_add(b, node);
    if (n->kind != NODE_LET) continue;
    tree_add(b, (LoopNode){.kind = NODE_MOVE, .to = node.to, .from = n->from, .step = n->step, .is_vector = true});
  }
}

// Replaces the addresses of loads and stores in the loop's body by vectors of the arrays, and scatters stored vectors.
// `test`: the condition around the nodes. A condition around a single store is needed for the scatter only.
static void use_arrays(TreeBuilder *b, const LoopTree *t, LoopNode **nodes, const Index *test) {
  for (LoopNode **at = nodes; *at; at = &(*at)->next) {
    LoopNode *n = *at, *only = n->kind == NODE_IF && n->body && !n->body->next ? n->body : NULL;
    const bool is_store = only && only->kind == NODE_STORE && has_near_rows(t, only);
    if (n->kind == NODE_IF) use_arrays(b, t, &n->body, n->test);
    if (is_store) {
      only->next = n->next;
      *at = only;
    }
    if (!has_near_rows(t, n)) continue;
    Address copy = {.buffer = BUFFER_COPY, .of = node_access(n)}, *own = n->kind == NODE_STORE ? &n->to : &n->from;
    if (n->kind == NODE_STORE)
      tree_add(b, (LoopNode){
                      .kind = NODE_MOVE, .to = n->to, .from = copy, .step = n->step, .test = test, .is_vector = true});
    n->step = NULL;
    copy.index = index_of(b, INDEX_MULTIPLY, index_var(b, VAR_ROW, 0), index_number(b, LANES, 0));
    *own = copy;
  }
}

// Rewrites each loop over rows, with arrays around it.
static void gather(TreeBuilder *b, const LoopTree *t, LoopNode **nodes) {
  for (LoopNode **at = nodes; *at && !b->out_of_memory; at = &(*at)->next) {
    LoopNode *n = *at;
    gather(b, t, &n->body);
    gather(b, t, &n->otherwise);
    if (n->kind != NODE_FOR || n->var.kind != VAR_ROW) continue;
    tree_open(b, at);
    add_arrays(b, t, n->body);
    tree_close(b);
    tree_open(b, &n->next);
    use_arrays(b, t, &n->body, NULL);
    tree_close(b);
    while (*at != n) at = &(*at)->next;
  }
}

void schedule_gather_rows(TreeBuilder *b, LoopTree *t) {
  gather(b, t, &t->step);
}
