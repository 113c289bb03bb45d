// The installed API: what its header promises about graphs, texts, the catalogue and timing.
#include "tests/unit/api_case.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

// Graphs

static void describes_what_it_read(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_string_equal(ng_graph_name(g), "layer norm");
  assert_int_equal(ng_graph_input_count(g), NINPUTS);
  assert_int_equal(ng_graph_output_count(g), NOUTPUTS);
  assert_int_equal(ng_graph_node_count(g), 1);
  ng_tensor_info dx = ng_graph_output(g, 0);
  assert_string_equal(dx.name, "dx");
  assert_int_equal(dx.type, NG_F32);
  assert_int_equal(dx.rank, 2);
  assert_int_equal(dx.extent[0], 5);
  assert_string_equal(dx.dim[0], "N");
  assert_int_equal(dx.extent[1], 24);
  assert_null(dx.dim[1]);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void tells_where_a_graph_is_wrong(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(read_text(ctx, "format: ngrad/1\ninputs:\n  - {name: x, type: f33, shape: []}\noutputs: [x]\n"));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  ng_message m = ng_message_at(ctx, 0);
  assert_true(m.is_error);
  assert_string_equal(m.file, "test.yaml");
  assert_int_equal(m.line, 3);
  const char *text = ng_messages_text(ctx, 0);
  assert_non_null(strstr(text, "test.yaml:3:"));
  assert_null(strchr(text, '\033'));
  assert_non_null(strchr(ng_messages_text(ctx, 1), '\033'));
  ng_context_free(ctx);
}

static void tells_of_a_file_that_is_not_there(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(ng_graph_read_file(ctx, "/no/such/graph.yaml"));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_true(ng_message_count(ctx) > 0);
  ng_context_free(ctx);
}

static void messages_add_up_until_they_are_cleared(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  assert_null(read_text(ctx, "format: ngrad/1\n"));
  size_t first = ng_message_count(ctx);
  assert_null(read_text(ctx, "format: ngrad/1\n"));
  assert_int_equal(ng_message_count(ctx), 2 * first);
  ng_messages_clear(ctx);
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_message_count(ctx), 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Extents

// Open dims are arguments of the function; dims with a number are literals in the text.
static void emitting_leaves_dims_open_and_binds_none(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char *source = NULL, *header = NULL;
  for (int way = 0; way < 3; way++) {
    ng_graph *g = must_read(ctx, layer_norm);
    if (way == 1) assert_int_equal(ng_graph_set_dim(g, "N", 7), NG_OK);
    if (way == 2) assert_int_equal(ng_graph_bind(g), NG_OK);
    assert_int_equal(ng_emit(g, NULL, &source, &header), NG_OK);
    assert_int_equal(strstr(header, "int64_t N,") != NULL, way == 0);
    assert_int_equal(strstr(header, "_WORKSPACE_NBYTES ((size_t)") != NULL, way != 0);
    assert_int_equal(ng_graph_dim_count(g), way != 2);
    assert_int_equal(ng_graph_bind(g), NG_OK); // as before
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
    ng_graph_free(g);
  }
  ng_context_free(ctx);
}

static void what_keeps_a_dim_from_staying_open_is_named(void **state) {
  (void)state;
  static const char *const rows[][2] = {
      {"format: ngrad/1\ndims: {C: 4}\ninputs: [{name: x, type: f32, shape: [2, C, 6]}]\nnodes:\n"
       "  - {op: Tanh, inputs: [x], outputs: [t]}\n" // in one kernel with it
       "  - {op: GroupNorm, inputs: [t], outputs: [y], attributes:\n"
       "      {groups: 1, data_format: NCX, use_affine: false, keep_stats: false}}\n"
       "outputs: [y]\n",
       "GroupNorm (line 6): C cannot stay open here; --dim C=4 bakes it in"},
      {"format: ngrad/1\ndims: {B: 12, E: 40, G: 20}\n" // whose places are no number times one product of dims
       "inputs: [{name: x, type: f32, shape: [B, E, G, 64]}]\nnodes:\n\n"
       "  - {op: Slice, inputs: [x], outputs: [y], attributes: {axes: [0, 1, 3], starts: [1, 2, 1], ends: [3, -1, "
       "64],\n"
       "      steps: [1, 1, 1]}}\noutputs: [y]\n",
       "Slice (line 6): B cannot stay open here; --dim B=12 bakes it in"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, rows[i][0]);
    char *source = NULL, *header = NULL;
    assert_int_equal(ng_emit(g, NULL, &source, &header), NG_WRONG);
    assert_int_equal(ng_message_at(ctx, 0).line, 6);
    must_have_said(ctx, rows[i][1]);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static void dims_take_other_values_until_bound(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_dim(g, "M", 3), NG_USAGE);
  must_have_said(ctx, "unknown dim M, expected N");
  assert_int_equal(ng_graph_set_dim(g, "N", -1), NG_USAGE);
  must_have_said(ctx, "N: expected 0 or more and fewer than 2^47, found -1");
  assert_int_equal(ng_graph_set_dim(g, "N", 3), NG_OK);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 3);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_null(ng_graph_output(g, 0).dim[0]);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 3);
  assert_int_equal(ng_graph_set_dim(g, "N", 4), NG_USAGE);
  must_have_said(ctx, "N: the graph is bound already");
  assert_int_equal(ng_graph_bind(g), NG_OK);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char open_shapes[] = "format: ngrad/1\n"
                                  "dims: {N: ~}\n"
                                  "inputs:\n"
                                  "  - {name: a, type: f32, shape: [N, _]}\n"
                                  "  - {name: b, type: f32, shape: [_, 3]}\n"
                                  "nodes:\n"
                                  "  - {op: Add, inputs: [a, b], outputs: [c]}\n"
                                  "outputs: [c]\n";

static void input_shapes_bind_open_extents(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, open_shapes);
  assert_int_equal(ng_graph_input(g, 0).extent[0], -1);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (int64_t[]){4, 3}), NG_OK);
  assert_int_equal(ng_graph_input(g, 0).extent[0], 4);
  assert_int_equal(ng_graph_set_input_shape(g, 1, 2, (int64_t[]){1, 3}), NG_OK);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 4);
  assert_int_equal(ng_graph_output(g, 0).extent[1], 3);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void data_overrules_the_values_of_dims(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_input(g, 0).extent[0], 5);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (int64_t[]){6, 24}), NG_OK);
  assert_int_equal(ng_graph_input(g, 1).extent[0], 6);
  assert_int_equal(ng_graph_set_input_shape(g, 1, 2, (int64_t[]){5, 24}), NG_WRONG);
  must_have_said(ctx, "dy: expected shape [N, 24], N = 6 by --dim or other data, found [5, 24]");
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_int_equal(ng_graph_output(g, 0).extent[0], 6);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_contradicting_input_shape_is_told(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  assert_int_equal(ng_graph_set_dim(g, "N", 5), NG_OK);
  assert_int_equal(ng_graph_set_input_shape(g, 0, 2, (int64_t[]){6, 24}), NG_WRONG);
  must_have_said(ctx, "x: expected shape [N, 24], N = 5 by --dim or other data, found [6, 24]");
  assert_int_equal(ng_graph_set_input_shape(g, 4, 2, (int64_t[]){6, 24}), NG_WRONG);
  must_have_said(ctx, "gamma: expected shape [24], found [6, 24]");
  assert_int_equal(ng_graph_set_input_shape(g, 4, 1, (int64_t[]){-1}), NG_USAGE);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void extents_that_stay_open_cannot_be_bound(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, open_shapes);
  assert_int_equal(ng_graph_bind(g), NG_WRONG);
  must_have_said(ctx, "N has no value, expected one in dims or by --dim N=NUMBER");
  assert_int_equal(ng_graph_set_dim(g, "N", 2), NG_OK);
  assert_int_equal(ng_graph_bind(g), NG_WRONG);
  assert_true(ng_message_count(ctx) > 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Texts

static void shows_every_form(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  char *text = ng_graph_show(g, "yaml", NULL);
  assert_non_null(strstr(text, "[N, 24]"));
  ng_graph *again = must_read(ctx, text);
  char *same = ng_graph_show(again, "yaml", NULL);
  assert_string_equal(text, same);
  ng_text_free(ctx, same);
  ng_text_free(ctx, text);
  ng_graph_free(again);
  text = ng_graph_show(g, "dot", NULL);
  assert_int_equal(strncmp(text, "digraph", 7), 0);
  ng_text_free(ctx, text);
  assert_null(ng_graph_show(g, "yml", NULL));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  must_have_said(ctx, "unknown format yml, did you mean yaml");
  assert_null(ng_graph_show(g, "kernels", &(ng_options){.after = ng_pass_at(0).name}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  const ng_options early = {.after = ng_pass_at(0).name}; // no region is known there
  char *source, *header;
  size_t nbytes, unshared;
  assert_int_equal(ng_emit(g, &early, &source, &header), NG_USAGE);
  assert_true(!source && !header);
  assert_int_equal(ng_graph_workspace(g, &early, &nbytes, &unshared), NG_USAGE);
  ng_messages_clear(ctx);
  for (size_t i = 0; i < ng_pass_count(); i++) {
    const ng_pass_info pass = ng_pass_at(i);
    text = ng_graph_show(g, pass.is_of_kernels ? "kernels" : "yaml", &(ng_options){.after = pass.name});
    assert_non_null(text);
    if (!pass.is_of_kernels) ng_graph_free(must_read(ctx, text));
    ng_text_free(ctx, text);
  }
  for (int i = 0; i < 2; i++) {
    text = ng_graph_show(g, i ? "loops" : "kernels", NULL);
    assert_non_null(text);
    assert_true(*text);
    ng_text_free(ctx, text);
  }
  ng_text_free(ctx, NULL);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void shows_several_forms_of_one_compilation(void **state) {
  (void)state;
  enum { COUNT = 4 };
  static const char *const formats[COUNT] = {"kernels-json", "kernels", "c", "loops"};
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  ng_kernel *kernel = NULL;
  char *texts[COUNT];
  assert_int_equal(ng_graph_show_all(g, formats, COUNT, NULL, texts, &kernel), NG_OK);
  for (size_t i = 0; i < COUNT; i++) {
    char *alone = ng_graph_show(g, formats[i], NULL);
    assert_string_equal(texts[i], alone);
    ng_text_free(ctx, alone);
    ng_text_free(ctx, texts[i]);
  }
  assert_true(ng_kernel_get_info(kernel).nkernels > 0);
  ng_kernel_free(kernel);
  assert_int_equal(ng_graph_show_all(g, (const char *const[]){"c", "lops"}, 2, NULL, texts, &kernel), NG_USAGE);
  assert_true(!texts[0] && !texts[1] && !kernel);
  must_have_said(ctx, "unknown format lops, did you mean loops");
  ng_messages_clear(ctx);
  assert_int_equal(ng_graph_show_all(g, formats, COUNT, &(ng_options){.after = ng_pass_at(0).name}, texts, NULL),
                   NG_USAGE);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void emits_for_any_processor(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  const char *stem = ng_graph_identifier(g);
  for (const char *c = stem; *c; c++) assert_true((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_');
  for (size_t i = 0; i < ng_isa_count(); i++) {
    char *source, *header;
    assert_int_equal(ng_emit(g, &(ng_options){.isa = ng_isa_at(i).name}, &source, &header), NG_OK);
    assert_non_null(strstr(source, stem));
    assert_non_null(strstr(header, stem));
    ng_text_free(ctx, source);
    ng_text_free(ctx, header);
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Catalogue

static void operators_are_found_by_all_their_names(void **state) {
  (void)state;
  for (size_t i = 0; i < ng_operator_count(); i++) {
    ng_operator_info op = ng_operator_at(i);
    assert_int_equal(ng_operator_find(op.name), i);
    assert_true(ng_operator_find(op.canonical) < ng_operator_count());
    assert_true(op.ninputs > 0 && op.noutputs > 0);
    for (size_t k = 0; k < op.ninputs; k++) assert_true(ng_operator_input(i, k).types != 0);
    for (size_t k = 0; k < op.noutputs; k++) assert_true(ng_operator_output(i, k).types != 0);
    for (size_t k = 0; k < op.nattributes; k++) assert_non_null(ng_operator_attribute(i, k).name);
  }
  assert_int_equal(ng_operator_find("LayerNormBackwards"), ng_operator_count());
  assert_string_equal(ng_operator_nearest("LayerNormBackwards"), "LayerNormBackward");
  assert_string_equal(ng_operator_nearest("ngraph.BatchNormTrainingBackpro"), "ngraph.BatchNormTrainingBackprop");
}

// Timing

static void counts_bytes_and_restores_threads(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, layer_norm);
  Data data;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g);
  int processors = ng_thread_count();
  ng_bench_result result;
  for (int cold = 0; cold < 2; cold++) {
    const ng_bench_options options = {.threads = 2, .cold = cold, .seconds = 0.01};
    assert_int_equal(ng_bench(k, data.in, data.out, &options, &result), NG_OK);
    assert_int_equal(result.bytes_read, 4 * (2 * 5 * 24 + 2 * 5 + 24));
    assert_int_equal(result.bytes_written, 4 * (5 * 24 + 2 * 24));
    assert_true(result.runs >= result.samples && result.samples >= 5 && result.outliers <= result.samples / 2);
    assert_true(result.min_ms > 0 && result.min_ms <= result.median_ms && result.median_ms <= result.max_ms);
    assert_true(result.mad_ms >= 0 && result.mad_ms <= fmax(result.max_ms - result.median_ms, result.median_ms));
    assert_true(result.ceiling_ms > 0 && fabs(result.ceiling_ratio - result.ceiling_ms / result.median_ms) < 1e-9);
  }
  assert_int_equal(ng_thread_count(), processors);
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static const char two_kernels[] = "format: ngrad/1\n"
                                  "inputs:\n"
                                  "  - {name: a, type: f32, shape: [500, 24]}\n"
                                  "  - {name: b, type: f32, shape: [500, 24]}\n"
                                  "  - {name: z, type: f32, shape: [7]}\n"
                                  "constants:\n"
                                  "  - {name: minus_one, type: f32, shape: [], value: -1}\n"
                                  "nodes:\n"
                                  "  - {op: Multiply, inputs: [b, minus_one], outputs: [n]}\n"
                                  "  - {op: Exp, inputs: [a], outputs: [e]}\n"
                                  "  - {op: Subtract, inputs: [e, n], outputs: [r]}\n" // a pass makes e + b
                                  "  - {op: ReduceSum, inputs: [r], outputs: [s], attributes: {axes: [0]}}\n"
                                  "  - {op: Tanh, inputs: [z], outputs: [t]}\n"
                                  "outputs: [s, t, z]\n";

static void must_add_up(const ng_profile *p) {
  double kernels = 0;
  for (size_t i = 0; i < p->nkernels; i++) {
    double loops = 0;
    assert_true(p->kernels[i].nloops > 0);
    for (size_t l = 0; l < p->kernels[i].nloops; l++) {
      assert_true(p->kernels[i].loops[l].ms >= 0);
      loops += p->kernels[i].loops[l].ms;
    }
    assert_true(fabs(p->kernels[i].ms - loops) <= 1e-9);
    kernels += loops;
  }
  assert_true(kernels > 0 && kernels <= p->ms);
  assert_true(fabs(p->ms - kernels - p->other_ms) <= 1e-9);
}

static void a_profile_tells_times_bytes_and_lines(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, two_kernels);
  Data data;
  ng_bench_result result;
  assert_int_equal(data_make(&data, ctx, g), NG_OK);
  ng_kernel *k = ng_compile(g, &(ng_options){.profile = 1});
  assert_non_null(k);
  const ng_profile *p = ng_kernel_profile(k);
  assert_true(p->nkernels == 2 && ng_kernel_get_info(k).nkernels == 2);
  const ng_profile_kernel *sum = &p->kernels[0], *tanh = &p->kernels[1];
  assert_string_equal(sum->text, "Exp (line 10), Add (lines 9, 11), ReduceSum (line 12)");
  assert_int_equal(sum->nnodes, 3);
  assert_string_equal(sum->nodes[1].name, "Add");
  assert_int_equal(sum->nodes[1].nlines, 2);
  assert_int_equal(sum->nodes[1].lines[0], 9);
  assert_int_equal(sum->nodes[1].lines[1], 11);
  assert_int_equal(sum->bytes_read, 2 * 500 * 24 * 4);
  assert_int_equal(sum->bytes_written, 24 * 4);
  assert_int_equal(sum->nloops, 2); // the partial sums of blocks, and their sum
  assert_int_equal(sum->loops[0].bytes_read, 2 * 500 * 24 * 4);
  assert_int_equal(sum->loops[1].bytes_read, sum->loops[0].bytes_written);
  assert_int_equal(sum->loops[1].bytes_written, 24 * 4);
  assert_string_equal(tanh->text, "Tanh (line 13)");
  assert_int_equal(tanh->bytes_read, 7 * 4);
  assert_int_equal(tanh->bytes_written, 7 * 4);
  assert_int_equal(tanh->nloops, 1);
  assert_string_equal(tanh->loops[0].text, "store t");
  assert_true(p->ms == 0 && p->other_ms == 0 && sum->ms == 0 && tanh->loops[0].ms == 0);
  for (int threads = 1; threads <= 2; threads++) {
    const ng_bench_options options = {.threads = threads, .seconds = 0.01};
    assert_int_equal(ng_bench(k, data.in, data.out, &options, &result), NG_OK);
    must_add_up(p);
  }
  data_free(&data, ctx);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void a_profiled_kernel_computes_the_same(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, two_kernels);
  Data plain, profiled;
  assert_int_equal(data_make(&plain, ctx, g), NG_OK);
  assert_int_equal(data_make(&profiled, ctx, g), NG_OK);
  ng_kernel *k = must_compile(ctx, g), *p = ng_compile(g, &(ng_options){.profile = 1});
  assert_null(ng_kernel_profile(k));
  assert_int_equal(ng_kernel_run(k, plain.in, plain.out, 2), NG_OK);
  assert_int_equal(ng_kernel_run(p, profiled.in, profiled.out, 2), NG_OK);
  for (size_t i = 0; i < ng_graph_output_count(g); i++)
    assert_memory_equal(plain.out[i].data, profiled.out[i].data, ng_tensor_nbytes(&plain.out[i]));
  data_free(&plain, ctx);
  data_free(&profiled, ctx);
  ng_kernel_free(k);
  ng_kernel_free(p);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(describes_what_it_read),
      cmocka_unit_test(tells_where_a_graph_is_wrong),
      cmocka_unit_test(tells_of_a_file_that_is_not_there),
      cmocka_unit_test(messages_add_up_until_they_are_cleared),
      cmocka_unit_test(dims_take_other_values_until_bound),
      cmocka_unit_test(emitting_leaves_dims_open_and_binds_none),
      cmocka_unit_test(what_keeps_a_dim_from_staying_open_is_named),
      cmocka_unit_test(input_shapes_bind_open_extents),
      cmocka_unit_test(data_overrules_the_values_of_dims),
      cmocka_unit_test(a_contradicting_input_shape_is_told),
      cmocka_unit_test(extents_that_stay_open_cannot_be_bound),
      cmocka_unit_test(shows_every_form),
      cmocka_unit_test(shows_several_forms_of_one_compilation),
      cmocka_unit_test(emits_for_any_processor),
      cmocka_unit_test(operators_are_found_by_all_their_names),
      cmocka_unit_test(counts_bytes_and_restores_threads),
      cmocka_unit_test(a_profile_tells_times_bytes_and_lines),
      cmocka_unit_test(a_profiled_kernel_computes_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
