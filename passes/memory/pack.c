// Packs the tenants. A result that overwrites an operand is packed together with the operand.
#include "passes/memory/pack.h"

#include "passes/memory/map.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TENANTS = 1 << 12, MOST_SEARCHED = 1 << 8, MOST_TRIES = 1 << 9 }; // packing takes quadratic time

typedef struct Group { // tenants at one place, which are packed together
  size_t first;        // the number of one of its tenants; the others are linked
  size_t offset, nbytes;
  double nkernels; // the number of kernels during which the group lives
} Group;

typedef struct Packing {
  MemoryMap map;
  size_t *root; // by tenant: a tenant of the same group, up to the group's root, whose root is itself
  size_t *next; // by tenant: the next tenant of the group, plus one; 0: none
  Group *groups, **placed;
  size_t ngroups, nplaced; // placed groups are sorted by offset
  size_t top;
} Packing;

static size_t find_root(Packing *k, size_t i) {
  while (k->root[i] != i) i = k->root[i] = k->root[k->root[i]];
  return i;
}

static bool lives_with(const Tenant *a, const Tenant *b) {
  return a->first <= b->last && b->first <= a->last;
}

static void join_tenants(Packing *k) {
  const Tenant *t = k->map.tenants;
  for (size_t i = 0; i < k->map.count; i++) k->root[i] = i;
  for (size_t i = 0; i < k->map.count; i++)
    for (size_t j = 0; j < i; j++) {
      if (t[i].offset == t[j].offset && lives_with(&t[i], &t[j])) k->root[find_root(k, i)] = find_root(k, j);
    }
}

// Makes a group of the tenants that share memory, as one overwrites the other.
static void make_groups(Packing *k) {
  for (size_t i = k->map.count; i-- > 0;) {
    const size_t root = find_root(k, i);
    if (root != i) {
      k->next[i] = k->next[root];
      k->next[root] = i + 1;
    } else {
      k->groups[k->ngroups++] = (Group){.first = i};
    }
  }
  for (size_t i = 0; i < k->ngroups; i++)
    for (size_t t = k->groups[i].first + 1; t; t = k->next[t - 1]) {
      const Tenant *tenant = &k->map.tenants[t - 1];
      if (tenant->nbytes > k->groups[i].nbytes) k->groups[i].nbytes = tenant->nbytes;
      k->groups[i].nkernels += tenant->last - tenant->first + 1;
    }
}

static int compare_numbers(double x, double y) {
  return (x < y) - (x > y); // the larger first
}

static int by_nbytes(const void *a, const void *b) {
  const Group *x = a, *y = b;
  const int order = compare_numbers((double)x->nbytes, (double)y->nbytes);
  return order ? order : (x->first > y->first) - (x->first < y->first);
}

static int by_area(const void *a, const void *b) {
  const Group *x = a, *y = b;
  const int order = compare_numbers((double)x->nbytes * x->nkernels, (double)y->nbytes * y->nkernels);
  return order ? order : by_nbytes(a, b);
}

static int by_life(const void *a, const void *b) {
  const Group *x = a, *y = b;
  const int order = compare_numbers(x->nkernels, y->nkernels);
  return order ? order : by_nbytes(a, b);
}

static int by_first(const void *a, const void *b) {
  const Group *x = a, *y = b;
  return (x->first > y->first) - (x->first < y->first);
}

static bool groups_live_together(const Packing *k, const Group *a, const Group *b) {
  for (size_t i = a->first + 1; i; i = k->next[i - 1])
    for (size_t j = b->first + 1; j; j = k->next[j - 1])
      if (lives_with(&k->map.tenants[i - 1], &k->map.tenants[j - 1])) return true;
  return false;
}

// Places the group at the lowest offset where no group that lives at the same time is.
static void place_group(Packing *k, Group *g) {
  size_t at = 0, offset = 0;
  for (size_t i = 0; i < k->nplaced; i++) {
    const Group *other = k->placed[i];
    if (other->offset + other->nbytes <= offset || !groups_live_together(k, g, other)) continue;
    if (offset + g->nbytes <= other->offset) break;
    offset = other->offset + other->nbytes;
  }
  g->offset = offset;
  if (offset + g->nbytes > k->top) k->top = offset + g->nbytes;
  for (at = k->nplaced++; at && k->placed[at - 1]->offset > offset; at--) k->placed[at] = k->placed[at - 1];
  k->placed[at] = g;
}

void schedule_move_temporaries(const Schedule *s, size_t by) {
  for (size_t i = 0; i < s->ntemporaries; i++) s->temporaries[i].offset += by;
}

void slice_group_move(Program *p, ProgramSliceGroup *slice_group, size_t by) {
  const SliceGroup *plan = slice_group->slices;
  slice_group->offset += by;
  for (size_t i = 0; i < plan->ntensors; i++)
    if (plan->tensors[i].is_private) p->value_offset[plan->tensors[i].value->index] += by;
  for (uint32_t i = slice_group->first; i < slice_group->end; i++) schedule_move_temporaries(p->schedules[i], by);
}

static void move_tenant(Program *p, const Tenant *t, size_t offset) {
  if (t->value) p->value_offset[t->value->index] = offset;
  for (uint32_t i = t->first; t->kind == TENANT_TEMPORARIES && i <= t->last; i++)
    schedule_move_temporaries(p->schedules[i], offset - t->offset);
  for (size_t i = 0; t->kind == TENANT_SLICES && i < p->nslice_groups; i++)
    if (p->slice_groups[i].first == t->first) slice_group_move(p, &p->slice_groups[i], offset - t->offset);
}

static bool packing_init(Packing *k, const Program *p, const MonomialArena *arena) {
  if (!memory_map_init(&k->map, p, arena)) return false;
  const size_t count = k->map.count + 1;
  k->root = ARENA_ARRAY(&k->map.arena, size_t, count);
  k->next = ARENA_ARRAY(&k->map.arena, size_t, count);
  k->groups = ARENA_ARRAY(&k->map.arena, Group, count);
  k->placed = ARENA_ARRAY(&k->map.arena, Group *, count);
  return k->root && k->next && k->groups && k->placed;
}

static void apply(const Packing *k, Program *p) {
  for (size_t i = 0; i < k->ngroups; i++)
    for (size_t t = k->groups[i].first + 1; t; t = k->next[t - 1])
      move_tenant(p, &k->map.tenants[t - 1], k->groups[i].offset);
}

static size_t place_in_order(Packing *k, Group *const *order) {
  k->top = k->nplaced = 0;
  for (size_t n = 0; n < k->ngroups; n++) place_group(k, order[n]);
  return k->top;
}

// Tries orders that have another group first, again and again, until nothing but what lives at the peak has a place.
// Keeps an order that is no worse. The numbers are drawn from a constant seed.
static bool search(Packing *k) {
  const size_t count = k->ngroups;
  Group **order = ARENA_ARRAY(&k->map.arena, Group *, count + 1);
  size_t *offsets = ARENA_ARRAY(&k->map.arena, size_t, count + 1);
  uint64_t drawn = 1;
  if (!order || !offsets || !count) return false;
  for (size_t n = 0; n < count; n++) order[n] = &k->groups[n];
  size_t best = place_in_order(k, order);
  for (size_t n = 0; n < count; n++) offsets[n] = k->groups[n].offset;
  for (int tries = 0; tries < MOST_TRIES && best > k->map.live[k->map.peak]; tries++) {
    drawn = drawn * 6364136223846793005 + 1442695040888963407;
    const size_t from = (size_t)(drawn >> 33) % count;
    Group *moved = order[from];
    memmove(order + 1, order, from * sizeof(Group *));
    order[0] = moved;
    if (place_in_order(k, order) <= best) {
      best = k->top;
      for (size_t n = 0; n < count; n++) offsets[n] = k->groups[n].offset;
    } else {
      memmove(order, order + 1, from * sizeof(Group *));
      order[from] = moved;
    }
  }
  for (size_t n = 0; n < count; n++) k->groups[n].offset = offsets[n];
  k->top = best;
  return true;
}

// Packs the arena, or (NULL) the workspace, of *nbytes.
static bool pack(Program *p, const MonomialArena *arena, size_t *nbytes) {
  static int (*const orders[])(const void *, const void *) = {by_area, by_life, by_first, by_nbytes};
  enum { NORDERS = sizeof orders / sizeof *orders };
  bool ok = true;
  for (int i = 0; ok && i < NORDERS; i++) {
    Packing k = {.top = 0};
    ok = packing_init(&k, p, arena);
    if (ok && k.map.count <= MOST_TENANTS && *nbytes > k.map.live[k.map.peak]) {
      join_tenants(&k);
      make_groups(&k);
      qsort(k.groups, k.ngroups, sizeof *k.groups, orders[i]);
      for (size_t n = 0; n < k.ngroups; n++) place_group(&k, &k.groups[n]);
      if (i + 1 == NORDERS && k.ngroups && k.ngroups <= MOST_SEARCHED) ok = search(&k);
      if (ok && k.top < *nbytes) {
        apply(&k, p);
        *nbytes = k.top;
      }
    }
    memory_map_deinit(&k.map);
  }
  return ok;
}

bool pack_workspace(Program *p) {
  return pack(p, NULL, &p->workspace_nbytes);
}

bool pack_arena(Program *p, MonomialArena *arena) {
  arena->free = ARENA_ARRAY(&p->arena, size_t, p->nkernels + 1);
  if (!arena->free || (!p->nslice_groups && !pack(p, arena, &arena->nbytes))) return false;
  for (uint32_t i = 0; i < p->nkernels; i++) arena->free[i] = p->nslice_groups ? arena->nbytes : 0;
  if (p->nslice_groups) return true; // whose chunks are in the arena, too
  MemoryMap map;
  const bool ok = memory_map_init(&map, p, arena);
  for (size_t i = 0; ok && i < map.count; i++) {
    const Tenant *t = &map.tenants[i];
    for (uint32_t kernel = t->first; kernel <= t->last; kernel++)
      if (t->offset + t->nbytes > arena->free[kernel]) arena->free[kernel] = t->offset + t->nbytes;
  }
  memory_map_deinit(&map);
  return ok;
}
