// Einsum: gives operands an axis for each label, multiplies them, and sums over the labels that the output lacks.
// Passes recognise matrix products in this form.
#include "frontend/onnx/translation.h"

#include <string.h>

enum { NLABELS = 128 }; // ASCII; labels 0 to 7 are the axes of an ellipsis

typedef struct Labels {
  int at[MAX_RANK], rank;
} Labels;

typedef struct Equation {
  Labels operands[MAX_VARIADIC], output;
  size_t noperands;
  int axis[NLABELS]; // of the product, outputs first; -1: unused
  int rank;
} Equation;

static bool is_letter(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Parses the labels of a term up to `,`, `->` or the end. An ellipsis stands for the last nellipsis of MAX_RANK labels.
static bool parse_term(Onnx *x, const char **text, int nellipsis, Labels *labels) {
  const char *c = *text;
  for (; *c && *c != ',' && *c != '-'; c++) {
    if (*c == ' ') continue;
    if (strncmp(c, "...", 3) == 0) {
      c += 2;
      for (int i = MAX_RANK - nellipsis; i < MAX_RANK; i++) {
        if (labels->rank == MAX_RANK) return build_error(&x->build, "equation: expected at most %d axes", MAX_RANK);
        labels->at[labels->rank++] = i;
      }
    } else if (!is_letter(*c) || labels->rank == MAX_RANK) {
      return build_error(&x->build, "equation: expected letters, for at most %d axes", MAX_RANK);
    } else {
      labels->at[labels->rank++] = (unsigned char)*c;
    }
  }
  *text = c;
  return true;
}

static int count_letters(const char *text) {
  int count = 0;
  for (; *text && *text != ',' && *text != '-'; text++) count += is_letter(*text);
  return count;
}

// Without an explicit output: the ellipsis' axes, then the labels that occur once, in alphabetical order.
static bool imply_output(Onnx *x, Equation *e) {
  int counts[NLABELS] = {0};
  for (size_t i = 0; i < e->noperands; i++)
    for (int k = 0; k < e->operands[i].rank; k++) counts[e->operands[i].at[k]]++;
  for (int label = 0; label < NLABELS; label++) {
    if (counts[label] == 0 || (label >= MAX_RANK && counts[label] > 1)) continue;
    if (e->output.rank == MAX_RANK) return build_error(&x->build, "equation: expected at most %d axes", MAX_RANK);
    e->output.at[e->output.rank++] = label;
  }
  return true;
}

static bool parse(Onnx *x, Equation *e) {
  Builder *b = &x->build;
  const char *text = onnx_text_of(x, onnx_text(x, "equation"));
  int nellipsis = 0;
  if (!text) return false;
  for (;; text++) {
    const Value *v = onnx_in(x, e->noperands);
    if (!v || e->noperands == MAX_VARIADIC) return build_error(b, "equation: expected a term for each input");
    const int more = v->shape.rank - count_letters(text);
    Labels *own = &e->operands[e->noperands++];
    if (!parse_term(x, &text, more > 0 ? more : 0, own)) return false;
    if (more > nellipsis) nellipsis = more;
    if (own->rank != v->shape.rank)
      return build_error(b, "equation: expected as many labels as input %zu has axes", e->noperands - 1);
    if (*text != ',') break;
  }
  if (e->noperands != x->node->ninputs) return build_error(b, "equation: expected a term for each input");
  if (!*text) return imply_output(x, e);
  if (strncmp(text, "->", 2) != 0) return build_error(b, "equation: expected ->");
  text += 2;
  return parse_term(x, &text, nellipsis, &e->output) && (!*text || build_error(b, "equation: expected its end"));
}

static bool number_axes(Onnx *x, Equation *e) {
  for (int i = 0; i < NLABELS; i++) e->axis[i] = -1;
  for (int i = 0; i < e->output.rank; i++) {
    if (e->axis[e->output.at[i]] >= 0) return build_error(&x->build, "equation: a label is there twice in the output");
    e->axis[e->output.at[i]] = e->rank++;
  }
  for (size_t i = 0; i < e->noperands; i++)
    for (int k = 0; k < e->operands[i].rank; k++) {
      int *axis = &e->axis[e->operands[i].at[k]];
      if (*axis < 0 && e->rank == MAX_RANK)
        return build_error(&x->build, "equation: expected at most %d labels", MAX_RANK);
      if (*axis < 0) *axis = e->rank++;
    }
  return true;
}

static Value *diagonal(Onnx *x, Value *v, int first, int second) {
  Builder *b = &x->build;
  if (!extent_equals(v->shape.extent[first], v->shape.extent[second]))
    return build_error(b, "equation: a label has two extents"), NULL;
  Node *node = build_node(b, OP_Diagonal, 1, &v);
  if (!node) return NULL;
  build_set(node, "axis1")->s64 = first;
  build_set(node, "axis2")->s64 = second;
  return build_one(b, node);
}

// Joins axes with the same label to their diagonal, which becomes the last axis.
static Value *join_labels(Onnx *x, Value *v, Labels *labels) {
  for (int i = 0, k; v && i < labels->rank;) {
    const int label = labels->at[i];
    for (k = i + 1; k < labels->rank && labels->at[k] != label;) k++;
    if (k == labels->rank) {
      i++;
      continue;
    }
    v = diagonal(x, v, i, k);
    int n = 0;
    for (int axis = 0; axis < labels->rank; axis++)
      if (axis != i && axis != k) labels->at[n++] = labels->at[axis];
    labels->at[n++] = label;
    labels->rank = n;
  }
  return v;
}

// Gives the operand the product's axes, in their order, with extent 1 where the operand lacks them.
static Value *align(Onnx *x, const Equation *e, Value *v, Labels labels) {
  int64_t order[MAX_RANK];
  Shape to = {.rank = e->rank};
  v = join_labels(x, v, &labels);
  if (!v) return NULL;
  int n = 0;
  for (int axis = 0; axis < e->rank; axis++) {
    to.extent[axis] = EXTENT(1);
    for (int k = 0; k < labels.rank; k++) {
      if (e->axis[labels.at[k]] != axis) continue;
      to.extent[axis] = v->shape.extent[k];
      order[n++] = k;
    }
  }
  return onnx_reshape_extents(x, n ? build_transpose(&x->build, v, order, n) : v, &to);
}

bool onnx_einsum(Onnx *x) {
  Builder *b = &x->build;
  Equation e = {.noperands = 0};
  Value *product = NULL;
  if (!parse(x, &e) || !number_axes(x, &e)) return false;
  const Type type = onnx_in(x, 0)->type, wide = type_is_float(type) ? type : TYPE_F64;
  for (size_t i = 0; i < e.noperands; i++) {
    Value *v = align(x, &e, build_cast(b, onnx_in(x, i), wide), e.operands[i]);
    if (!v) return false;
    product = product ? build_binary(b, OP_Multiply, product, v) : v;
  }
  int64_t axes[MAX_RANK];
  size_t count = 0;
  for (int axis = e.output.rank; axis < e.rank; axis++) axes[count++] = axis;
  if (count) product = build_reduce(b, OP_ReduceSum, product, axes, count, false);
  return onnx_out(x, 0, build_cast(b, product, type));
}
