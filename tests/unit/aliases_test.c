// Aliases: which results of reshapes, transposes and slices need no memory. Reading through them changes no bits.
#include "passes/lower/aliases.h"
#include "tests/unit/loops_case.h"

typedef struct AliasCase {
  const char *name, *text;
  const char *aliases; // of the graph after the passes, in its order, as name=of+offset[strides]
} AliasCase;

#define X(shape) "inputs: [{name: x, type: f32, shape: " shape "}]\nnodes:\n- {op: Tanh, inputs: [x], outputs: [a]}\n"
#define SLICE(starts, ends, steps)                                                                                     \
  "- {op: Slice, inputs: [a], outputs: [b], attributes: {starts: " starts ", ends: " ends ", steps: " steps "}}\n"
#define RESHAPE(from, to, shape)                                                                                       \
  "- {op: StaticReshape, inputs: [" from "], outputs: [" to "], attributes: {shape: " shape ", special_zero: "         \
  "false}}\n"
#define TRANSPOSE(from, to, order)                                                                                     \
  "- {op: StaticTranspose, inputs: [" from "], outputs: [" to "], attributes: {order: " order "}}\n"
#define SUM(from) "- {op: ReduceSum, inputs: [" from "], outputs: [y], attributes: {axes: [0]}}\noutputs: [y]\n"
#define ABS(from) "- {op: Abs, inputs: [" from "], outputs: [y]}\noutputs: [y]\n"

static const AliasCase cases[] = {
    {"a reshape", X("[6, 20]") RESHAPE("a", "b", "[3, 40]") SUM("b"), "b=a+0[40 1]"},
    {"an output", X("[6, 20]") RESHAPE("a", "b", "[3, 40]") "outputs: [b]\n", ""},
    {"a slice along rows", X("[6, 40]") SLICE("[0, 8]", "[6, 28]", "[1, 1]") SUM("b"), "b=a+8[40 1]"},
    {"every second row", X("[6, 20]") SLICE("[1]", "[6]", "[2]") SUM("b"), "b=a+20[40 1]"},
    {"rows backwards", X("[6, 20]") SLICE("[5]", "[0]", "[-2]") SUM("b"), ""},
    {"every second element", X("[6, 40]") SLICE("[0, 0]", "[6, 40]", "[1, 2]") SUM("b"), ""},
    {"short rows", X("[6, 20]") SLICE("[0, 1]", "[6, 12]", "[1, 1]") SUM("b"), "b=a+1[20 1]"},
    {"rows that are columns", X("[30, 20]") TRANSPOSE("a", "b", "[1, 0]") SUM("b"), ""},
    {"heads of a part",
     X("[3, 5, 96]") SLICE("[0, 0, 32]", "[3, 5, 64]", "[1, 1, 1]") RESHAPE("b", "c", "[3, 5, 2, 16]")
         TRANSPOSE("c", "d", "[0, 2, 1, 3]") SUM("d"),
     "b=a+32[480 96 1] c=a+32[480 96 16 1] d=a+32[480 16 96 1]"},
    {"a reshape of columns that are apart",
     X("[3, 5, 96]") SLICE("[0, 0, 32]", "[3, 5, 64]", "[1, 1, 1]") RESHAPE("b", "c", "[3, 160]") SUM("c"),
     "c=b+0[160 1]"},
    {"a part whose rows are one axis",
     X("[3, 5, 96]") SLICE("[0, 0, 32]", "[3, 5, 64]", "[1, 1, 1]") RESHAPE("b", "c", "[15, 32]") SUM("c"),
     "b=a+32[480 96 1] c=a+32[96 1]"},
    {"what has a kernel of its own",
     X("[1, 2, 6, 20]") SLICE("[0, 1]", "[1, 2]", "[1, 1]") "- {op: MaxPool, inputs: [b], outputs: [y], attributes: "
                                                            "{kernel: [2, 2], strides: [1, 1], pads_begin: [0, 0], "
                                                            "pads_end: [0, 0], data_format: NCX}}\noutputs: [y]\n",
     ""},
    {"a product stored as its transpose",
     "inputs: [{name: x, type: f32, shape: [2, 3, 4, 5]}, {name: w, type: f32, shape: [5, 16]}]\nnodes:\n"
     "- {op: MatMul, inputs: [x, w], outputs: [a]}\n" TRANSPOSE("a", "b", "[0, 2, 1, 3]")
         RESHAPE("b", "c", "[2, 4, 48]") SUM("c"),
     "b=a+0[192 48 16 1] c=a+0[192 48 1]"},
    {"an input", "inputs: [{name: x, type: f32, shape: [6, 20]}]\nnodes:\n" RESHAPE("x", "b", "[3, 40]") SUM("b"),
     "b=x+0[40 1]"},
    {"an output of a part that has memory",
     X("[4, 6, 4]") SLICE("[0, 3]", "[4, 6]", "[1, 1]") RESHAPE("b", "c", "[48]") "outputs: [c]\n", ""},
    {"nothing", X("[6, 0]") RESHAPE("a", "b", "[0, 40]") ABS("b"), ""},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void init(LoopsCase *c, const AliasCase *a) {
  char text[2048];
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: aliases\n%s", a->text);
  Graph *g = yaml_read(&system_allocator, "aliases.yaml", text, (size_t)length, NULL, &d);
  if (!g) {
    fail_msg("%s: %s", a->name, d.items[0].message);
    abort(); // not reached, as no reader of the code can tell
  }
  diagnostics_deinit(&d);
  loops_case_init(c, a->name, g, 1);
}

static Lowered lower(const LoopsCase *c, bool has_aliases) {
  static const char *const disabled[] = {"aliases"};
  const Target target = target_of_any_machine();
  Lowered l = {graph_clone(c->graph), NULL};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  PassContext context = {.diagnostics = &d,
                         .allocator = &system_allocator,
                         .target = &target,
                         .disabled = disabled,
                         .ndisabled = !has_aliases,
                         .evaluate = interpret_node};
  if (l.graph && pipeline_run(l.graph, &context)) l.program = pipeline_lower(l.graph, &context);
  if (!l.program) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "out of memory");
  diagnostics_deinit(&d);
  return l;
}

static void list_aliases(const Graph *g, Text *out) {
  for (size_t i = 0; i < g->nnodes; i++) {
    if (!node_is_alias(g->nodes[i])) continue;
    const Value *v = g->nodes[i]->outputs[0];
    text_format(out, "%s%s=%s+%lld[", out->nbytes ? " " : "", v->name, v->alias->of->name, (long long)v->alias->offset);
    for (int axis = 0; axis < v->shape.rank; axis++)
      text_format(out, "%s%lld", axis ? " " : "", (long long)v->alias->stride[axis]);
    text_add_string(out, "]");
  }
}

static void aliases_are_found(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    LoopsCase c;
    Text text;
    init(&c, &cases[i]);
    text_init(&text, &system_allocator);
    Lowered l = lower(&c, true);
    list_aliases(l.graph, &text);
    if (strcmp(text_string(&text), cases[i].aliases) != 0) fail_msg("%s: %s", cases[i].name, text_string(&text));
    text_deinit(&text);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

static void aliases_have_the_bits_of_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    LoopsCase c;
    Tensor got[8] = {{0}}, expected[8] = {{0}};
    init(&c, &cases[i]);
    Lowered l = lower(&c, true), apart = lower(&c, false);
    loops_new_outputs(c.graph, got);
    loops_new_outputs(c.graph, expected);
    assert_true(loops_execute(&c, l.program, got, NULL, "with aliases"));
    assert_true(loops_execute(&c, apart.program, expected, NULL, "without"));
    assert_true(loops_have_same_bits(&c, got, expected, "without aliases"));
    loops_free_outputs(c.graph, got);
    loops_free_outputs(c.graph, expected);
    lowered_free(&l);
    lowered_free(&apart);
    loops_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(aliases_are_found),
      cmocka_unit_test(aliases_have_the_bits_of_copies),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
