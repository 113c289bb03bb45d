// Draws by integer arithmetic, products and square roots, which IEEE 754 defines exactly: a seed gives the same shapes
// on every machine.
#include "tests/bench/random_norm.h"

#include "ir/support/splitmix.h"

#include <math.h>
#include <stdio.h>

static const NormForm forms[] = {
    {"ln_backward", LAYOUT_ROWS, false, false},           {"bn_backward_ncx", LAYOUT_NCX, false, false},
    {"bn_backward_nxc", LAYOUT_NXC, false, false},        {"relu_bn_backward_ncx", LAYOUT_NCX, true, false},
    {"relu_bn_backward_nxc", LAYOUT_NXC, true, false},    {"ln_backward_add", LAYOUT_ROWS, false, true},
    {"relu_bn_add_backward_ncx", LAYOUT_NCX, true, true}, {"relu_bn_add_backward_nxc", LAYOUT_NXC, true, true},
};
enum { NFORMS = sizeof forms / sizeof *forms };

// Numbers

static uint32_t draw_bits(uint64_t *state) {
  *state += SPLITMIX_STEP;
  return (uint32_t)(splitmix64(*state) >> 32);
}

// 2 to the power of fraction / 2^32. The last bits of exp2 differ between libraries.
static double power_of_two(uint32_t fraction) {
  double power = 1, root = 2;
  for (uint32_t bit = UINT32_C(1) << 31; bit; bit >>= 1) {
    root = sqrt(root);
    if (fraction & bit) power *= root;
  }
  return power;
}

// Log-uniform in [least, most]: draws from whole octaves until a number is in the range.
static int64_t draw(uint64_t *state, int64_t least, int64_t most) {
  uint64_t noctaves = 1;
  while (least << noctaves <= most) noctaves++;
  for (;;) {
    int64_t octave = (int64_t)(draw_bits(state) * noctaves >> 32);
    int64_t number = (int64_t)((double)(least << octave) * power_of_two(draw_bits(state)));
    if (number <= most) return number;
  }
}

// Shapes

static int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void set_extents(RandomNorm *n, int64_t nelems, int64_t row, uint64_t *state) {
  enum { MOST_CHANNELS = 4096, MOST_IMAGES = 256 }; // unless they are drawn above
  const int64_t nrows = nelems / row;
  const bool is_last = n->form->layout == LAYOUT_NXC;
  if (n->form->layout == LAYOUT_ROWS) {
    n->rank = 2;
    n->extent[0] = nrows;
    n->extent[1] = row;
    return;
  }
  int64_t channels = is_last ? row : draw(state, 3, least_of(nrows, MOST_CHANNELS));
  int64_t images = is_last ? draw(state, 1, least_of(nrows, MOST_IMAGES)) : nrows / channels;
  int64_t pixels = is_last ? nrows / images : row;
  int64_t width = (int64_t)sqrt((double)pixels), height = pixels / width;
  n->rank = 4;
  n->extent[0] = images;
  n->extent[1] = is_last ? height : channels;
  n->extent[2] = is_last ? width : height;
  n->extent[3] = is_last ? channels : width;
}

RandomNorm random_norm_draw(uint64_t seed, uint64_t i) {
  const int64_t least_nbytes = 10000, most_nbytes = 1000000000, least_row = 3, most_row = 20000;
  uint64_t state = splitmix64(splitmix64(seed) + i);
  RandomNorm n = {.form = &forms[i % NFORMS], .is_bf16 = i / NFORMS % 2};
  const int64_t nelems = draw(&state, least_nbytes, most_nbytes) / (n.is_bf16 ? 2 : 4);
  set_extents(&n, nelems, draw(&state, least_row, least_of(nelems / 3, most_row)), &state);
  int length = snprintf(n.name, sizeof n.name, "%s_%s_", n.form->name, n.is_bf16 ? "bf16" : "f32");
  for (int axis = 0; axis < n.rank; axis++)
    length +=
        snprintf(n.name + length, sizeof n.name - (size_t)length, "%s%lld", axis ? "x" : "", (long long)n.extent[axis]);
  return n;
}

uint64_t random_norm_nbytes(const RandomNorm *n) {
  uint64_t nbytes = n->is_bf16 ? 2 : 4;
  for (int axis = 0; axis < n->rank; axis++) nbytes *= (uint64_t)n->extent[axis];
  return nbytes;
}

// A ReLU's mask can be saved as bits, so its result need not be read again.
uint64_t random_norm_nread_twice(const RandomNorm *n, uint64_t cache_nbytes) {
  const uint64_t nbytes = 2 * random_norm_nbytes(n); // of src and diff_dst
  if (n->form->layout == LAYOUT_ROWS) return 0;
  const uint64_t needed = n->form->layout == LAYOUT_NXC ? nbytes : nbytes / (uint64_t)n->extent[1];
  return needed > cache_nbytes ? nbytes : 0;
}

// Text

static void print_data(FILE *out, const RandomNorm *n, const char *name) {
  fprintf(out, "  - {name: %s, type: %s, shape: [", name, n->is_bf16 ? "bf16" : "f32");
  for (int axis = 0; axis < n->rank; axis++) fprintf(out, "%s%lld", axis ? ", " : "", (long long)n->extent[axis]);
  fputs("]}\n", out);
}

static void print_vector(FILE *out, const char *name, int64_t extent) {
  fprintf(out, "  - {name: %s, type: f32, shape: [%lld]}\n", name, (long long)extent);
}

static void print_nodes(FILE *out, const NormForm *form) {
  if (form->has_relu)
    fputs("  - {op: ReLUBackward, inputs: [y, dy], outputs: [dz], attributes: {use_dst: true}}\n", out);
  fprintf(out,
          "  - op: %s\n"
          "    inputs: {src: x, diff_dst: %s, mean: mean, variance: var, gamma: gamma}\n"
          "    outputs: {diff_src: %s, diff_gamma: dgamma, diff_beta: dbeta}\n"
          "    attributes: {epsilon: 1.0e-5%s}\n",
          form->layout == LAYOUT_ROWS ? "LayerNormBackward" : "BatchNormTrainingBackward", form->has_relu ? "dz" : "dy",
          form->has_add ? "dbranch" : "dx",
          form->layout == LAYOUT_ROWS  ? ""
          : form->layout == LAYOUT_NCX ? ", data_format: NCX"
                                       : ", data_format: NXC");
  if (form->has_add) fputs("  - {op: Add, inputs: [dbranch, dskip], outputs: [dx]}\n", out);
}

char *random_norm_graph(const RandomNorm *n) {
  const int64_t channels = n->extent[n->form->layout == LAYOUT_NCX ? 1 : n->rank - 1];
  const int64_t nstatistics = n->form->layout == LAYOUT_ROWS ? n->extent[0] : channels;
  char *text = NULL;
  size_t nbytes = 0;
  FILE *out = open_memstream(&text, &nbytes);
  if (!out) return NULL;
  fprintf(out, "format: ngrad/1\nname: %s\ninputs:\n", n->name);
  print_data(out, n, "x");
  if (n->form->has_relu) print_data(out, n, "y");
  print_data(out, n, "dy");
  print_vector(out, "mean", nstatistics);
  print_vector(out, "var", nstatistics);
  print_vector(out, "gamma", channels);
  if (n->form->has_add) print_data(out, n, "dskip");
  fputs("nodes:\n", out);
  print_nodes(out, n->form);
  fputs("outputs: [dx, dgamma, dbeta]\n", out);
  fclose(out);
  return text;
}
