// The gradient by data of a strided convolution has a piece for each residue of the stride; the pieces read the same
// windows at different taps. Lowering sets the same Bound.reach_begin and reach_end in all pieces, so that their copies
// are equal.
#include "passes/schedule/tune/tune.h"

// Two loops of different kernels, whose axes correspond by their positions in Loop.axes.
typedef struct Pair {
  const Schedule *s[2];
  const Loop *loop[2];
  int naxes;
} Pair;

static bool has_temporaries(const Schedule *s) {
  for (size_t i = 0; i < s->ntemporaries; i++)
    if (!s->temporaries[i].is_own) return true;
  return false;
}

// The access that the loop copies to a temporary; NULL: the loop does anything else.
static const Access *copied_access(const Schedule *s, const Loop *loop) {
  const Kernel *k = s->kernel;
  if (!loop->is_producer || loop->nroots != 1 || loop->roots[0].kind != ROOT_STORE) return NULL;
  if (k->accesses[loop->roots[0].access].value) return NULL;
  const Expr *e = &k->exprs[loop->roots[0].expr];
  return e->op == EXPR_LOAD && !e->args[0] && k->accesses[e->access].value ? &k->accesses[e->access] : NULL;
}

static bool are_numbers_equal(const Pair *p, const int64_t *a, const int64_t *b) {
  for (int i = 0; i < p->naxes; i++)
    if (a[p->loop[0]->axes[i]] != b[p->loop[1]->axes[i]]) return false;
  return true;
}

static bool are_axes_equal(const Pair *p) {
  if (p->loop[0]->nouter != p->loop[1]->nouter || p->loop[0]->ninner != p->loop[1]->ninner) return false;
  for (int i = 0; i < p->naxes; i++) {
    const Axis *a = &p->s[0]->kernel->axes[p->loop[0]->axes[i]], *b = &p->s[1]->kernel->axes[p->loop[1]->axes[i]];
    if (a->extent != b->extent || a->monomial || b->monomial) return false;
  }
  return true;
}

static bool are_accesses_equal(const Pair *p, const Access *a, const Access *b) {
  if (a->value != b->value || a->type != b->type || a->offset != b->offset || a->outside != b->outside ||
      a->panel_axis || b->panel_axis || a->nbounds != b->nbounds || !are_numbers_equal(p, a->stride, b->stride))
    return false;
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *x = &a->bounds[i], *y = &b->bounds[i];
    if (x->offset != y->offset || x->extent != y->extent || x->stride != y->stride ||
        !are_numbers_equal(p, x->factor, y->factor))
      return false;
  }
  return true;
}

// Whether the second loop makes the same copy as the first one.
static bool is_same_copy(const Pair *p) {
  const Access *from = copied_access(p->s[0], p->loop[0]), *other = copied_access(p->s[1], p->loop[1]);
  if (!from || !other || !are_axes_equal(p)) return false;
  const Access *to = &p->s[0]->kernel->accesses[p->loop[0]->roots[0].access];
  const Access *other_to = &p->s[1]->kernel->accesses[p->loop[1]->roots[0].access];
  const Temporary *t = &p->s[0]->temporaries[to->temporary], *other_t = &p->s[1]->temporaries[other_to->temporary];
  return t->offset == other_t->offset && t->nelems == other_t->nelems && are_accesses_equal(p, from, other) &&
         are_accesses_equal(p, to, other_to);
}

static void reuse_copies(const Schedule *before, Schedule *s) {
  for (size_t i = 0; i < s->nloops; i++)
    for (size_t j = 0; j < before->nloops; j++) {
      Loop *loop = &s->loops[i];
      const Pair p = {{before, s}, {&before->loops[j], loop}, loop->nouter + loop->ninner};
      if (!is_same_copy(&p)) continue;
      loop->is_reused = true;
      s->temporaries[s->kernel->accesses[loop->roots[0].access].temporary].is_reused = true;
    }
}

void schedule_reuse_copies(Schedule *const *pieces, size_t count) {
  const Schedule *before = NULL; // the last piece with temporaries
  for (size_t i = 0; i < count; i++) {
    if (before && has_temporaries(pieces[i])) reuse_copies(before, pieces[i]);
    if (has_temporaries(pieces[i])) before = pieces[i];
  }
}
