// What a model declares: inputs, outputs and initializers, whose names, types and shapes must not contradict each
// other.
#include "frontend/onnx/fields.h"
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

Value *onnx_find_value(const Onnx *x, const char *name) {
  Value *v = NULL;
  for (const OnnxScope *scope = x->scope; scope && !v; scope = scope->outer) v = names_find(&scope->values, name);
  return v;
}

// What a message of the graph is found at, for onnx_tell.
static OnnxReading reading_at(const Onnx *x, const OnnxPlace *place) {
  OnnxReading r = x->reading;
  r.place = place;
  return r;
}

static bool has_declared_type(const OnnxInfo *info, const Value *v) {
  return !info->type || onnx_type(info->type) == v->type;
}

// Whether a value has the shape that the model declares; named and unknown extents are any.
static bool has_declared_shape(const OnnxInfo *info, const Value *v) {
  bool ok = info->rank < 0 || info->rank == v->shape.rank;
  for (int axis = 0; ok && axis < info->rank; axis++) {
    const Extent declared = info->extent[axis], found = v->shape.extent[axis];
    ok = !extent_is_literal(declared) || !extent_is_literal(found) || declared.value == found.value;
  }
  return ok;
}

// Unknown extents of an input become the numbers that the settings give.
static void give_numbers(Onnx *x, const OnnxInfo *info, Shape *shape) {
  Ints given;
  if (!onnx_given_shape(x, info, &given)) return;
  if (shape->rank < 0)
    for (shape->rank = 0; shape->rank < (int)given.count; shape->rank++) shape->extent[shape->rank] = EXTENT_UNKNOWN;
  for (int axis = 0; axis < shape->rank; axis++)
    if (extent_is_unknown(shape->extent[axis]) && given.items[axis] >= 0)
      shape->extent[axis] = EXTENT(given.items[axis]);
}

// A wrong shape of an output, which exporters write, is a warning.
static bool check_declared(const Onnx *x, const OnnxInfo *info, bool is_input, size_t i, const Value *v) {
  char declared[128], found[128], what[320];
  Shape shape = {.rank = info->rank};
  const bool has_type = has_declared_type(info, v);
  if (v == &x->failed || (has_type && has_declared_shape(info, v))) return true; // a failed value has been reported
  for (int axis = 0; axis < info->rank; axis++) shape.extent[axis] = info->extent[axis];
  const OnnxReading r =
      reading_at(x, &(OnnxPlace){NULL, is_input ? "input" : "output", i, info->message, INFO_NAME, 0});
  snprintf(what, sizeof what, "declared as %s %s, but its elements are %s %s", onnx_type_name(info->type),
           info->rank < 0 ? "of any shape" : shape_string(&shape, declared, sizeof declared),
           onnx_type_name(onnx_type_number(v->type)), shape_string(&v->shape, found, sizeof found));
  if (is_input || !has_type) return onnx_tell(&r, info->message.at, "%s", what);
  return onnx_warn(&r, info->message.at, what), true;
}

bool onnx_take_input(Onnx *x, const OnnxInfo *info, size_t i, Names *inputs) {
  const char *name = onnx_text_of(x, info->name), *given;
  const OnnxReading r = reading_at(x, &(OnnxPlace){NULL, "input", i, info->message, INFO_NAME, 0});
  Shape shape = {.rank = -1};
  if (!name) return false;
  if (names_find(inputs, name)) onnx_tell(&r, info->message.at, "another input has this name");
  if (!names_set(inputs, name, (void *)info)) return error_out_of_memory(x->reading.d);
  Value *v = names_find(&x->scope->values, name);
  if (v) { // an initializer replaces the input
    check_declared(x, info, true, i, v);
    return !x->reading.d->out_of_memory;
  }
  v = &x->failed;
  const Type type = onnx_type(info->type);
  if (type == TYPE_NONE) {
    build_error(&x->build, "input %s: %s is not supported", onnx_is_name(name) ? name : "?",
                info->type ? onnx_type_name(info->type) : "a value that is no tensor");
  } else if (!onnx_set_extents(x, info, &shape)) {
    return false;
  } else if (give_numbers(x, info, &shape), (given = onnx_given(x, name)) != NULL) {
    v = onnx_tensor_file(x, given, name, type, &shape);
    if (!v) v = &x->failed;
  } else {
    const char *own = onnx_own_name(x, name);
    v = own ? graph_add_input(x->build.graph, own, type, shape.rank < 0 ? NULL : &shape) : NULL;
    if (!v) return error_out_of_memory(x->reading.d);
    if (!build_fits(&x->build, v)) v = &x->failed;
  }
  return names_set(&x->scope->values, name, v) || error_out_of_memory(x->reading.d);
}

// A value gets the name of the output. A value that already has another name is copied: inputs, constants and
// other outputs.
bool onnx_give_output(Onnx *x, const OnnxInfo *info, size_t i) {
  Builder *b = &x->build;
  const char *name = onnx_text_of(x, info->name);
  Value *v = name ? onnx_find_value(x, name) : NULL;
  if (!name) return false;
  if (!v) return build_error(b, "output %s: no node makes it", onnx_is_name(name) ? name : "?");
  if (v == &x->failed) return true; // already reported
  if (onnx_is_sequence(v))
    return build_error(b, "output %s: a sequence is not supported", onnx_is_name(name) ? name : "?");
  if (onnx_has_extents(x, v))
    return build_error(b, "output %s: a shape with a name in it: give it a number, as in --dim NAME=1",
                       onnx_is_name(name) ? name : "?");
  if (!check_declared(x, info, false, i, v)) return !x->reading.d->out_of_memory;
  const char *own = onnx_own_name(x, name);
  if (!own) return false;
  const bool has_name = strcmp(v->name, own) == 0;
  if (v->is_output || (!has_name && !v->producer)) v = build_copy(b, v);
  if (v && !has_name) v->name = arena_copy_text(&b->graph->arena, own, strlen(own));
  if (!v || !v->name) return false;
  return graph_add_output(b->graph, v) || error_out_of_memory(x->reading.d);
}

// Names that exporters invent for the numbers of formulas, as patterns of fnmatch. PyTorch names a parameter by the
// path of its module (blocks.0.gamma); TensorFlow's variables are read by ReadVariableOp.
static const char *const variables[] = {"*ReadVariableOp", "*ReadVariableOp:[0-9]*"};
static const char *const numbers[] = {
    "*[!A-Za-z0-9_.]*", // onnx::Mul_12, /attn/Constant_output_0, mul/y:0
    "[0-9]*",           "val_[0-9]*", "*scalar_tensor*", "[Cc]onst*", "*[._][Cc]onst*", "*cst", "*cst[0-9]*",
    "lifted_tensor*",   "*eps",       "*epsilon"};

static bool matches(const char *name, const char *const *patterns, size_t count) {
  bool any = false;
  for (size_t i = 0; i < count; i++) any |= fnmatch(patterns[i], name, 0) == 0;
  return any;
}

// Whether an initializer without axes is a number of a formula, such as an epsilon, and not a parameter. A step in f32
// would not change a number of 2^24 or more, such as a mask's -1e9.
static bool is_number(const Value *v, const char *name) {
  if (v->shape.rank || !type_is_float(v->type)) return false;
  if (!(fabs(type_load(v->type, v->constant->data, 0)) < 16777216.0)) return true;
  return matches(name, numbers, sizeof numbers / sizeof *numbers) &&
         !matches(name, variables, sizeof variables / sizeof *variables);
}

bool onnx_take_initializers(Onnx *x, const OnnxGraph *g) {
  for (size_t i = 0; i < g->ninitializers; i++) {
    const OnnxTensor *tensor = &g->initializers[i];
    const char *name = onnx_text_of(x, tensor->name);
    if (name && names_find(&x->scope->values, name)) {
      const OnnxReading r = reading_at(x, &(OnnxPlace){NULL, "initializer", i, tensor->message, TENSOR_NAME, 0});
      onnx_tell(&r, tensor->message.at, "another initializer has this name");
    }
    Value *v = name ? onnx_weight(x, tensor, onnx_is_name(name) ? name : "?", name) : NULL;
    if (x->reading.d->out_of_memory || !name) return false;
    if (v && is_number(v, name)) v->constant->is_initializer = false;
    x->has_weights |= v && v->shape.rank && type_is_float(v->type);
    if (!names_set(&x->scope->values, name, v ? v : &x->failed)) return error_out_of_memory(x->reading.d);
  }
  return true;
}
