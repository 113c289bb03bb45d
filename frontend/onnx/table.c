// Looks up rows of the table of ONNX operators.
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/translation.h"

#include <string.h>

static const OnnxRow rows[] = {
#define PLAIN(name, since, op, ...) {#name, since, NULL, op, "", {__VA_ARGS__}, false},
#define OPERATOR(name, since, translate, op, known) {#name, since, onnx_##translate, op, known, {{0}}, false},
#define SEQUENCES(name, since, translate, op, known) {#name, since, onnx_##translate, op, known, {{0}}, true},
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

bool onnx_knows(const OnnxRow *row, int64_t opset, Bytes name) {
  const char *list = row->known ? row->known : onnx_body_attributes(row->name, opset);
  for (const OnnxAttributeRow *a = row->attributes; a->onnx; a++)
    if (bytes_are(name, a->onnx)) return true;
  for (size_t nbytes; *list; list += nbytes + strcspn(list + nbytes, " ")) {
    list += *list == ' ';
    nbytes = strcspn(list, " :");
    if (nbytes == name.count && memcmp(list, name.at, nbytes) == 0) return true;
  }
  return false;
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
