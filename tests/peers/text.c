// A drawn operator as a graph file.
#include "tests/peers/draw.h"

#include <stdio.h>
#include <string.h>

static void print_list(FILE *out, const int64_t *numbers, int count) {
  for (int i = 0; i < count; i++) fprintf(out, "%s%lld", i ? ", " : "[", (long long)numbers[i]);
  fputs(count ? "]" : "[]", out);
}

static void print_input(FILE *out, const char *name, const char *type, const int64_t *extents, int rank) {
  fprintf(out, "  - {name: %s, type: %s, shape: ", name, type);
  print_list(out, extents, rank);
  fputs("}\n", out);
}

static void print_product(FILE *out, const Drawn *d, const char *type) {
  fputs("inputs:\n", out);
  print_input(out, "src", type, d->src.extent, d->src.rank);
  print_input(out, "weights", type, d->weights.extent, d->weights.rank);
  if (d->has_bias) print_input(out, "bias", type, d->bias.extent, d->bias.rank);
  fprintf(out, "nodes:\n  - {op: MatMul, inputs: [src, weights%s], outputs: [{name: y, type: %s}], attributes: {",
          d->has_bias ? ", bias" : "", type == d->type ? d->dst_type : type);
  fprintf(out, "transpose_a: %s, transpose_b: %s}}\n", d->transpose_a ? "true" : "false",
          d->transpose_b ? "true" : "false");
}

// The numbers of a field of all windows.
#define PRINT_WINDOWS(out, d, field)                                                                                   \
  do {                                                                                                                 \
    int64_t numbers[MOST_SPATIAL_AXES];                                                                                \
    for (int i = 0; i < (d)->nspatial; i++) numbers[i] = (d)->window[i].field;                                         \
    print_list(out, numbers, (d)->nspatial);                                                                           \
  } while (0)

typedef struct Tensor {
  int64_t extent[MOST_SPATIAL_AXES + 2];
} Tensor;

static Tensor side_of(const Drawn *d, bool is_large) {
  Tensor t;
  const int channels = d->is_nxc ? d->nspatial + 1 : 1, first = d->is_nxc ? 1 : 2;
  t.extent[0] = d->batch;
  t.extent[channels] = is_large ? d->large_channels : d->small_channels;
  for (int i = 0; i < d->nspatial; i++) t.extent[first + i] = is_large ? d->window[i].large : d->window[i].small;
  return t;
}

static bool is_transposed(const Drawn *d) {
  return strncmp(d->op, "ConvTranspose", strlen("ConvTranspose")) == 0;
}

// OIX and XIO of a convolution, IOX and XOI of a transposed one: the small side's channels are O of the former, I of
// the latter, and so both kinds have the same extents.
static Tensor weights_of(const Drawn *d) {
  Tensor t;
  const int small = d->is_last_format ? d->nspatial + 1 : 0, large = d->is_last_format ? d->nspatial : 1;
  const int first = d->is_last_format ? 0 : 2;
  t.extent[small] = d->small_channels;
  t.extent[large] = d->large_channels / d->groups;
  for (int i = 0; i < d->nspatial; i++) t.extent[first + i] = d->window[i].kernel;
  return t;
}

static void print_windows(FILE *out, const Drawn *d) {
  static const char *const auto_pads[] = {"None", "SAME_UPPER", "SAME_LOWER", "VALID"};
  fputs("strides: ", out);
  PRINT_WINDOWS(out, d, stride);
  fputs(", pads_begin: ", out);
  PRINT_WINDOWS(out, d, pad_begin);
  fputs(", pads_end: ", out);
  PRINT_WINDOWS(out, d, pad_end);
  fprintf(out, ", auto_pad: %s, data_format: %s", auto_pads[d->auto_pad], d->is_nxc ? "NXC" : "NCX");
}

static void print_dilations(FILE *out, const Drawn *d) {
  fputs(", dilations: ", out);
  PRINT_WINDOWS(out, d, dilation);
}

static void print_shape(FILE *out, const char *name, const Tensor *t, int rank) {
  fprintf(out, ", %s: ", name);
  print_list(out, t->extent, rank);
}

static void print_convolution(FILE *out, const Drawn *d, const char *type) {
  const int rank = d->nspatial + 2;
  const bool is_last = is_transposed(d), by_weights = strstr(d->op, "BackwardWeights");
  // What an operator and the gradients of the other kind read and write is on the same sides.
  const bool reads_large = strcmp(d->op, "Convolution") == 0 || strcmp(d->op, "ConvTransposeBackwardData") == 0;
  const Tensor large = side_of(d, true), small = side_of(d, false), weights = weights_of(d);
  const char *const formats[2][2] = {{"OIX", "XIO"}, {"IOX", "XOI"}};
  fputs("inputs:\n", out);
  if (by_weights) {
    print_input(out, "src", type, is_last ? small.extent : large.extent, rank);
    print_input(out, "diff_dst", type, is_last ? large.extent : small.extent, rank);
  } else {
    print_input(out, "src", type, reads_large ? large.extent : small.extent, rank);
    print_input(out, "weights", type, weights.extent, rank);
  }
  const int64_t nbias = is_last ? d->large_channels : d->small_channels;
  if (d->has_bias) print_input(out, "bias", type, &nbias, 1);
  fprintf(out, "nodes:\n  - {op: %s, inputs: [src, %s%s], outputs: [y], attributes: {", d->op,
          by_weights ? "diff_dst" : "weights", d->has_bias ? ", bias" : "");
  print_windows(out, d);
  print_dilations(out, d);
  fprintf(out, ", groups: %lld, weights_format: %s", (long long)d->groups, formats[is_last][d->is_last_format]);
  if (by_weights) print_shape(out, "weights_shape", &weights, rank);
  if (strcmp(d->op, "ConvolutionBackwardData") == 0) print_shape(out, "dst_shape", &large, rank);
  if (strcmp(d->op, "ConvTranspose") == 0) {
    fputs(", output_padding: ", out);
    PRINT_WINDOWS(out, d, output_padding);
  }
  fputs("}}\n", out);
}

static void print_pool(FILE *out, const Drawn *d, const char *type) {
  const int rank = d->nspatial + 2;
  const bool is_average = strncmp(d->op, "Avg", 3) == 0, is_backward = strstr(d->op, "Backward");
  const Tensor large = side_of(d, true), small = side_of(d, false);
  fputs("inputs:\n", out);
  if (!is_average || !is_backward) print_input(out, "src", type, large.extent, rank);
  if (is_backward) print_input(out, "diff_dst", type, small.extent, rank);
  fprintf(out, "nodes:\n  - {op: %s, inputs: [%s], outputs: [y], attributes: {", d->op,
          !is_backward ? "src"
          : is_average ? "diff_dst"
                       : "src, diff_dst");
  print_windows(out, d);
  fputs(", kernel: ", out);
  PRINT_WINDOWS(out, d, kernel);
  if (!is_backward) fprintf(out, ", rounding_type: %s", d->rounds_up ? "ceil" : "floor");
  if (!is_average) print_dilations(out, d);
  if (is_average) fprintf(out, ", exclude_pad: %s", d->excludes_pad ? "true" : "false");
  if (is_average && is_backward) print_shape(out, "src_shape", &large, rank);
  fputs("}}\n", out);
}

char *drawn_graph(const Drawn *d, const char *type) {
  char *text = NULL;
  size_t nbytes = 0;
  FILE *out = open_memstream(&text, &nbytes);
  if (!out) return NULL;
  if (!type) type = d->type;
  fputs("format: ngrad/1\nname: drawn\n", out);
  if (strcmp(d->op, "MatMul") == 0) print_product(out, d, type);
  else if (strncmp(d->op, "Conv", 4) == 0) print_convolution(out, d, type);
  else print_pool(out, d, type);
  fputs("outputs: [y]\n", out);
  fclose(out);
  return text;
}
