// Inference of StaticReshape: its list of extents, in which 0 may stand for an extent of src and -1 for what is left.
#include "ir/operators/movement.h"
#include "ir/operators/rules.h"

bool reshape_list(const Shape *from, const Shape *to, int64_t *items, bool *special_zero) {
  bool has_remaining = false, has_zero = false;
  *special_zero = false;
  for (int i = 0; i < to->rank; i++) {
    bool is_literal = extent_is_literal(to->extent[i]),
         is_same = i < from->rank && extent_equals(from->extent[i], to->extent[i]);
    if (!is_literal && !is_same && has_remaining) return false;
    items[i] = is_literal ? to->extent[i].value : is_same ? 0 : -1;
    has_remaining |= items[i] == -1;
    has_zero |= is_literal && items[i] == 0;
    *special_zero |= !is_literal && is_same;
  }
  return !(has_zero && *special_zero);
}

bool node_set_shape(Graph *g, Node *node, const Shape *from, const Shape *to) {
  int64_t items[MAX_RANK];
  bool special_zero;
  const bool is_plain = reshape_list(from, to, items, &special_zero);
  *node_attribute_slot(node, "special_zero") = (AttributeValue){.is_set = true, .boolean = is_plain && special_zero};
  return is_plain ? node_set_list(g, node, "shape", items, (size_t)to->rank)
                  : node_set_extents(g, node, "shape", to->extent, (size_t)to->rank);
}

// A product of extents: literals are multiplied, other extents listed.
typedef struct Product {
  int64_t number;
  Extent open[MAX_RANK]; // named or unknown
  int nopen;
} Product;

static bool product_times(Product *p, Extent e) {
  if (!extent_is_literal(e)) {
    p->open[p->nopen++] = e;
    return true;
  }
  if (e.value && p->number > (MAX_ELEMENTS - 1) / e.value) return false;
  p->number *= e.value;
  return true;
}

// Removes common named extents from both. Remaining named extents may still be equal, as dims may have the same value.
static void products_cancel(Product *a, Product *b) {
  for (int i = a->nopen; i-- > 0;) {
    for (int k = 0; k < b->nopen; k++) {
      if (!extent_equals(a->open[i], b->open[k])) continue;
      a->open[i] = a->open[--a->nopen];
      b->open[k] = b->open[--b->nopen];
      break;
    }
  }
}

static bool reshape_error(Inference *inf, const Node *node, const char *what) {
  char src[160];
  return infer_error(inf, "shape: %s, found %s of %s", what, node->inputs[0]->name,
                     shape_string(&node->inputs[0]->shape, src, sizeof src));
}

// Whether dst's axis i has src's extent, and -1 stands for another axis: what -1 stands for does not depend on that
// extent, which may be 0.
static bool is_kept_beside_remaining(const Node *node, int i) {
  const AttributeValue *shape = node_attribute(node, "shape");
  bool has_remaining = false;
  for (size_t k = 0; k < shape->list.count; k++)
    has_remaining |= shape->list.items[k] == -1 && !(shape->list.extents && shape->list.extents[k].dim);
  return has_remaining && (size_t)i < shape->list.count && shape->list.items[i] == 0 &&
         !(shape->list.extents && shape->list.extents[i].dim) && node_bool(node, "special_zero");
}

// The extent of dst's axis i by item i of `shape`. False: the item is invalid.
static bool reshaped_extent(const Node *node, size_t i, Extent *e) {
  const Shape *src = &node->inputs[0]->shape;
  const AttributeValue *shape = node_attribute(node, "shape");
  int64_t number = shape->list.items[i];
  if (shape->list.extents && shape->list.extents[i].dim) {
    *e = shape->list.extents[i];
    return true;
  }
  bool is_src_extent = number == 0 && node_bool(node, "special_zero");
  if (number < -1 || number >= MAX_ELEMENTS || (is_src_extent && i >= (size_t)src->rank)) return false;
  *e = is_src_extent ? src->extent[i] : EXTENT(number);
  return true;
}

static bool multiplied(Inference *inf, const Product *p, Extent *e) {
  *e = EXTENT(p->number);
  for (int i = 0; i < p->nopen; i++)
    if (!infer_product(inf, *e, p->open[i], e)) return false;
  return true;
}

// Infers the extent for -1: src's number of elements divided by the product of the other extents.
static bool infer_remaining(Inference *inf, const Node *node, int axis, Product *all, Product *others) {
  Extent whole, by, e;
  products_cancel(all, others);
  const bool are_numbers = !all->nopen && !others->nopen;
  if ((!others->nopen && !others->number) || (are_numbers && all->number % others->number))
    return reshape_error(inf, node, "expected a number of elements that the other extents divide");
  return multiplied(inf, all, &whole) && multiplied(inf, others, &by) && infer_quotient(inf, whole, by, &e) &&
         infer_computed_extent(inf, node->outputs[0], axis, e, node->inputs[0]);
}

bool infer_static_reshape(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const AttributeValue *shape = node_attribute(node, "shape");
  if (shape->list.count > MAX_RANK) return infer_error(inf, "shape: expected at most rank %d", MAX_RANK);
  int rank = (int)shape->list.count, remaining = -1;
  if (!infer_rank(inf, dst, rank)) return false;
  if (src->shape.rank < 0) return true;
  Product all = {.number = 1}, others = {.number = 1};
  bool ok = true;
  for (int i = 0; ok && i < src->shape.rank; i++)
    ok = is_kept_beside_remaining(node, i) || product_times(&all, src->shape.extent[i]);
  if (!ok) return true; // src has too many elements, which is reported later
  for (int i = 0; i < rank; i++) {
    Extent e;
    if (!reshaped_extent(node, (size_t)i, &e))
      return reshape_error(inf, node, "expected extents, -1, or with special_zero 0 on an axis that src has");
    if (e.dim || shape->list.items[i] != -1) {
      if (!is_kept_beside_remaining(node, i) && !product_times(&others, e))
        return reshape_error(inf, node, "expected as many elements as src");
      if (!infer_extent(inf, dst, i, e)) return false;
    } else if (remaining >= 0) {
      return reshape_error(inf, node, "expected -1 at most once");
    } else {
      remaining = i;
    }
  }
  if (remaining >= 0) return infer_remaining(inf, node, remaining, &all, &others);
  products_cancel(&all, &others);
  bool is_open = all.nopen || others.nopen;
  return is_open || all.number == others.number || reshape_error(inf, node, "expected as many elements as src");
}
