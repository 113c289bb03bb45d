// Looks up rows of the table of ONNX operators.
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/translation.h"

#include <string.h>

static const OnnxRow rows[] = {
#define PLAIN(name, since, op, ...) {#name, since, NULL, op, {__VA_ARGS__}, false},
#define OPERATOR(name, since, translate, op) {#name, since, onnx_##translate, op, {{0}}, false},
#define SEQUENCES(name, since, translate, op) {#name, since, onnx_##translate, op, {{0}}, true},
#include "frontend/onnx/operators.def"
#undef PLAIN
#undef OPERATOR
#undef SEQUENCES
};

const OnnxRow *onnx_find_row(Bytes name, int64_t opset) {
  const OnnxRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].since <= opset && bytes_are(name, rows[i].name)) found = &rows[i];
  return found;
}

const OnnxRow *onnx_find_plain(OperatorId op, int64_t opset) {
  const OnnxRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].since <= opset && !rows[i].translate && rows[i].op == op) found = &rows[i];
  return found;
}

size_t onnx_form_count(void) {
  return sizeof rows / sizeof *rows;
}

ForeignForm onnx_form_at(size_t i) {
  const bool has_later = i + 1 < onnx_form_count() && strcmp(rows[i].name, rows[i + 1].name) == 0;
  return (ForeignForm){rows[i].name, rows[i].op, rows[i].since, has_later ? rows[i + 1].since - 1 : 0};
}
