// Lowers and orders nodes as one kernel, to know what fusing them would cost, and whether their sums would change.
#include "passes/lower/fuse_trial.h"

#include "passes/lower/pieces.h"
#include "passes/schedule/order/traffic.h"

// Whether the nodes are a product and other nodes with sums, and no loop of the schedule has the columns of a product.
static bool loses_product(const NodeList *list, const Schedule *s) {
  const Sums sums = list_count_sums(list);
  bool has_loop = !sums.nproducts || !sums.nothers;
  for (size_t i = 0; i < s->nloops; i++) has_loop |= loop_has(&s->loops[i], LOOP_COLUMNS);
  return !has_loop;
}

// Adds the kernel of one piece of the nodes.
static void try_piece(FuseTrials *t, const NodeList *list, uint32_t piece, FuseTrial *trial) {
  PassContext *c = t->lowering.context;
  Arena arena;
  arena_init(&arena, c->allocator);
  const Schedule *s = lower_and_schedule(&t->lowering, &arena, list->nodes, list->count, NULL, piece);
  bool has_prologue = false;
  for (uint32_t i = 0; i < list->count; i++) has_prologue |= t->operand[list->nodes[i]->index] != 0;
  const bool is_sound = s && !(has_prologue && schedule_recomputes(s)) && !loses_product(list, s);
  const int64_t nbytes = is_sound ? schedule_traffic(s, t->costs->fusion_cache) : NO_KERNEL;
  trial->nbytes = nbytes < 0 ? NO_KERNEL : trial->nbytes + nbytes;
  if (is_sound) sum_forms_add(&trial->sums, s);
  if (s && s->kernel->out_of_memory) pass_out_of_memory(c);
  arena_deinit(&arena);
}

FuseTrial fuse_try(FuseTrials *t, const NodeList *list) {
  const uint32_t npieces = nodes_npieces(t->costs, list->nodes, list->count);
  FuseTrial trial = {.nbytes = 0};
  for (uint32_t piece = 0; piece < npieces && trial.nbytes >= 0; piece++) try_piece(t, list, piece, &trial);
  return trial;
}

bool fuse_keeps_orders(const FuseTrial *together, const FuseTrial *one, const FuseTrial *other) {
  SumForms separate = one->sums;
  sum_forms_add_all(&separate, &other->sums);
  return sum_forms_include(&separate, &together->sums) && sum_forms_include(&together->sums, &separate);
}

bool fuse_keeps_others(FuseTrials *t, const FuseTrial *together, const NodeList *all, const Node *sum,
                       const FuseTrial *other) {
  NodeList list = {.count = 0};
  for (uint32_t i = 0; i < all->count; i++)
    if (all->nodes[i] == sum || node_expands_into(all->nodes[i]) == sum) list.nodes[list.count++] = all->nodes[i];
  FuseTrial alone = fuse_try(t, &list);
  const bool has_sum = alone.nbytes >= 0 && sum_forms_include(&together->sums, &alone.sums);
  sum_forms_add_all(&alone.sums, &other->sums);
  return has_sum && sum_forms_include(&alone.sums, &together->sums);
}
