// Operators whose results have as many elements as the data say, so the data must be known when the model is read.
#include "frontend/onnx/translation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The elements of a constant of numbers; NULL after a message.
static double *elements_of(Onnx *x, Value *given, Value **known) {
  const Value *v = *known = given ? onnx_known(x, given) : NULL;
  if (!v) return NULL;
  if (!v->constant || onnx_has_extents(x, v)) return onnx_must_be_known(x, v), NULL;
  if (!onnx_has_numbers(x, v)) return NULL;
  const int64_t nelems = shape_nelems(&v->shape);
  if (!build_spend(&x->build, (nelems + 1) * (int64_t)sizeof(double))) return NULL;
  double *elements = ARENA_ARRAY(x->reading.arena, double, (size_t)nelems + 1);
  if (!elements) return error_out_of_memory(x->reading.d), NULL;
  for (int64_t i = 0; i < nelems; i++) {
    elements[i] = type_load(v->type, v->constant->data, v->constant->is_splat ? 0 : (size_t)i);
    if (v->type == TYPE_S64 && fabs(elements[i]) > 0x1p53)
      return build_error(&x->build, "integers beyond 2^53 are not supported"), NULL;
  }
  return elements;
}

static Value *vector(Onnx *x, const int64_t *numbers, int64_t count, int64_t ncolumns) {
  const Shape shape = {.rank = ncolumns ? 2 : 1, .extent = {EXTENT(count), EXTENT(ncolumns)}};
  Constant *constant;
  Value *v = build_constant(&x->build, TYPE_S64, &shape, &constant);
  if (v) memcpy(constant->data, numbers, (size_t)(ncolumns ? count * ncolumns : count) * sizeof *numbers);
  return v;
}

// Boxes

typedef struct Box {
  double from[2], to[2], score;
  int64_t index;
} Box;

// From the greatest score on; of equal ones, the first one.
static int compare_scores(const void *a, const void *b) {
  const Box *p = a, *q = b;
  if (p->score != q->score) return p->score < q->score ? 1 : -1;
  return (p->index > q->index) - (p->index < q->index);
}

static Box box_of(const double *at, bool has_centre) {
  Box box = {.score = 0};
  for (int i = 0; i < 2; i++) {
    box.from[i] = has_centre ? at[i] - at[i + 2] / 2 : fmin(at[i], at[i + 2]);
    box.to[i] = has_centre ? at[i] + at[i + 2] / 2 : fmax(at[i], at[i + 2]);
  }
  return box;
}

// The area of what both boxes share, divided by that of what either has.
static double overlap(const Box *a, const Box *b) {
  double shared = 1, areas[2] = {1, 1};
  for (int i = 0; i < 2; i++) {
    shared *= fmax(0, fmin(a->to[i], b->to[i]) - fmax(a->from[i], b->from[i]));
    areas[0] *= a->to[i] - a->from[i];
    areas[1] *= b->to[i] - b->from[i];
  }
  return shared > 0 ? shared / (areas[0] + areas[1] - shared) : 0;
}

// Moves the boxes that are kept to the front, and counts them; -1 after a message.
static int64_t suppress(Onnx *x, Box *boxes, int64_t count, int64_t most, double threshold) {
  int64_t nkept = 0;
  qsort(boxes, (size_t)count, sizeof *boxes, compare_scores);
  for (int64_t i = 0; i < count && nkept < most; i++) {
    bool is_kept = true;
    if (!build_spend(&x->build, nkept)) return -1;
    for (int64_t k = 0; k < nkept && is_kept; k++) is_kept = !(overlap(&boxes[i], &boxes[k]) > threshold);
    if (is_kept) boxes[nkept++] = boxes[i];
  }
  return nkept;
}

// Rows of an image, a class and a box.
bool onnx_suppress_boxes(Onnx *x) {
  Value *boxes, *scores;
  const double *at = elements_of(x, onnx_in(x, 0), &boxes), *score = at ? elements_of(x, onnx_in(x, 1), &scores) : NULL;
  double most = 0, overlapping = 0, least = -(double)INFINITY;
  if (!score || (onnx_in(x, 2) && !onnx_number(x, onnx_in(x, 2), &most)) ||
      (onnx_in(x, 3) && !onnx_number(x, onnx_in(x, 3), &overlapping)) ||
      (onnx_in(x, 4) && !onnx_number(x, onnx_in(x, 4), &least)))
    return false;
  const Extent *b = boxes->shape.extent, *s = scores->shape.extent;
  if (boxes->shape.rank != 3 || scores->shape.rank != 3 || b[2].value != 4 || b[0].value != s[0].value ||
      b[1].value != s[2].value)
    return build_error(&x->build, "expected boxes [images, boxes, 4] and scores [images, classes, boxes]");
  const int64_t n = b[1].value, nclasses = s[1].value, limit = most < (double)n ? most > 0 ? (int64_t)most : 0 : n;
  if (!build_spend(&x->build, n * (int64_t)sizeof(Box) + 3 * s[0].value * nclasses * limit * (int64_t)sizeof(int64_t)))
    return false;
  Box *own = ARENA_ARRAY(x->reading.arena, Box, (size_t)n + 1);
  int64_t *rows = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)(3 * s[0].value * nclasses * limit) + 1), count = 0;
  if (!own || !rows) return error_out_of_memory(x->reading.d);
  for (int64_t i = 0; i < s[0].value * nclasses; i++) {
    int64_t ncandidates = 0;
    for (int64_t k = 0; k < n; k++) {
      if (!(score[i * n + k] > least)) continue;
      own[ncandidates] = box_of(at + (i / nclasses * n + k) * 4, onnx_int(x, "center_point_box", 0) != 0);
      own[ncandidates].score = score[i * n + k];
      own[ncandidates++].index = k;
    }
    const int64_t nkept = suppress(x, own, ncandidates, limit, overlapping);
    for (int64_t k = 0; k < nkept; k++, count++)
      memcpy(rows + 3 * count, (int64_t[]){i / nclasses, i % nclasses, own[k].index}, 3 * sizeof *rows);
    if (nkept < 0) return false;
  }
  return onnx_out(x, 0, vector(x, rows, count, 3));
}

// Equal elements, or equal parts along an axis

typedef struct Part {
  const double *at;
  int64_t nelems, step, nblocks, index; // blocks of nelems elements, `step` apart
} Part;

// NaN is greater than all numbers.
static int compare_numbers(double a, double b) {
  if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
  return (a > b) - (a < b);
}

static int compare_elements(const Part *p, const Part *q) {
  for (int64_t i = 0; i < p->nblocks * p->nelems; i++) {
    const int64_t at = i / p->nelems * p->step + i % p->nelems;
    const int order = compare_numbers(p->at[at], q->at[at]);
    if (order) return order;
  }
  return 0;
}

static int compare_parts(const void *a, const void *b) {
  const Part *p = a, *q = b;
  const int order = compare_elements(p, q);
  return order ? order : (p->index > q->index) - (p->index < q->index);
}

static int compare_indices(const void *a, const void *b) {
  const int64_t p = *(const int64_t *)a, q = *(const int64_t *)b;
  return (p > q) - (p < q);
}

// The groups of equal parts, which are sorted: each one's first index, the group of each part, and how many it has.
static int64_t find_groups(const Part *parts, int64_t n, bool is_sorted, int64_t *first, int64_t *group,
                           int64_t *counts) {
  int64_t ngroups = 0;
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || compare_elements(&parts[i - 1], &parts[i]) != 0) first[ngroups++] = parts[i].index;
  for (int64_t i = 0, g = -1; i < n; i++)
    group[parts[i].index] = i && compare_elements(&parts[i - 1], &parts[i]) == 0 ? g : ++g;
  for (int64_t i = 0; i < n && !is_sorted; i++) group[i] = first[group[i]]; // for now, the first index
  if (!is_sorted) qsort(first, (size_t)ngroups, sizeof *first, compare_indices);
  for (int64_t i = 0; i < n && !is_sorted; i++)
    group[i] = (const int64_t *)bsearch(&group[i], first, (size_t)ngroups, sizeof *first, compare_indices) - first;
  for (int64_t i = 0; i < n; i++) counts[group[i]]++;
  return ngroups;
}

bool onnx_unique(Onnx *x) {
  Value *v;
  const double *at = elements_of(x, onnx_in(x, 0), &v);
  int axis = 0;
  if (!at) return false;
  if (onnx_has(x, "axis") && !onnx_axis(x, onnx_int(x, "axis", 0), v->shape.rank, &axis)) return false;
  if (!onnx_has(x, "axis") && !(v = onnx_flat(x, v))) return false;
  const int64_t n = v->shape.extent[axis].value;
  Part part = {.nelems = 1, .nblocks = 1};
  for (int i = 0; i < v->shape.rank; i++)
    if (i != axis) *(i < axis ? &part.nblocks : &part.nelems) *= v->shape.extent[i].value;
  part.step = n * part.nelems;
  if (!build_spend(&x->build, (n + 1) * (int64_t)(sizeof part + 3 * sizeof(int64_t)))) return false;
  Part *parts = ARENA_ARRAY(x->reading.arena, Part, (size_t)n + 1);
  int64_t *lists[3];
  for (int i = 0; i < 3; i++)
    if (!(lists[i] = ARENA_ARRAY(x->reading.arena, int64_t, (size_t)n + 1))) return error_out_of_memory(x->reading.d);
  if (!parts) return error_out_of_memory(x->reading.d);
  for (int64_t i = 0; i < n; i++) {
    parts[i] = part;
    parts[i].at = at + i * part.nelems;
    parts[i].index = i;
  }
  qsort(parts, (size_t)n, sizeof *parts, compare_parts);
  const int64_t count = find_groups(parts, n, onnx_int(x, "sorted", 1) != 0, lists[0], lists[1], lists[2]);
  return onnx_out(x, 0, onnx_take(x, v, lists[0], count, axis)) && onnx_out(x, 1, vector(x, lists[0], count, 0)) &&
         onnx_out(x, 2, vector(x, lists[1], n, 0)) && onnx_out(x, 3, vector(x, lists[2], count, 0));
}
