// Compiled layer and batch norms and their gradients, under all their names, against the other rungs of the ladder
// (ladder.h): extents around the lane count, all types.
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

static const char frozen[] = "directml.BATCH_NORMALIZATION_GRAD";
static const char training[] = "directml.BATCH_NORMALIZATION_TRAINING_GRAD";

// Layer norm

static void layer_norm_gradient_of_any_width(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    for (int h = w % 2; h<NHEIGHTS; h += all_widths[w]> 64 ? 3 : 2)
      layer_norm_gradient(&g, EXTENTS(all_heights[h], all_widths[w]), -1, f32, 0);
  climb(&g, (Climb){.name = "layer norm widths", .unusual_too = true});
}

static void layer_norm_gradient_from_any_axis(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(7, 20), EXTENTS(3, 4, 20), EXTENTS(2, 3, 4, 17), EXTENTS(2, 3, 1, 2, 7)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int k = 0; k < shapes[i].rank; k++)
      layer_norm_gradient(&g, shapes[i], k % 2 ? k - shapes[i].rank : k, f32, k % 2 ? FLAT : 0);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, NO_GAMMA);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, ONLY_DIFF_SRC);
  layer_norm_gradient(&g, EXTENTS(5, 24), -1, f32, WITH_BETA);
  layer_norm_gradient(&g, EXTENTS(40, 200), -1, f32, FAR);
  layer_norm_gradient(&g, EXTENTS(17), 0, f32, 0);
  layer_norm_gradient(&g, EXTENTS(1, 1), -1, f32, 0);
  layer_norm_gradient(&g, EXTENTS(2, 200, 200), -2, f32, 0); // few rows, long ones
  layer_norm_gradient(&g, EXTENTS(70000), 0, f32, 0);
  climb(&g, (Climb){.name = "layer norm axes", .unusual_too = true, .is_misaligned = true});
}

static void layer_norm_of_any_shape(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    layer_norm(&g, EXTENTS(all_heights[w % NHEIGHTS], all_widths[w]), -1, f32, w % 3 ? 0 : NO_GAMMA);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), 1, f32, FLAT);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), -2, f32, 0);
  layer_norm(&g, EXTENTS(2, 3, 4, 17), 0, f32, 0);
  layer_norm(&g, EXTENTS(40, 200), -1, f32, FAR);
  for (int t = 0; t < NTYPES; t++) layer_norm(&g, EXTENTS(5, 40), -1, all_types[t], 0);
  climb(&g, (Climb){.name = "layer norm forward", .unusual_too = true});
}

// Batch norm

static void batch_norm_gradient_of_any_plane(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    int64_t n = all_heights[w % 4], c = all_heights[(w + 1) % 4];
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(n, c, all_widths[w]), "NCX", f32, 0);
  }
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(300, 2, 7, 7), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(37, 300), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 37, 6), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 3, 4, 5, 6), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 3, 9, 9), "NCX", f32, FAR);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 3, 9, 9), "NCX", f32, NO_GAMMA);
  batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(4, 3, 9, 9), "NCX", f32, ONLY_DIFF_SRC);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 2, 150, 150), "NCX", f32, 0); // few long rows
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 1, 40), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(5, 1), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(1, 1), "NCX", f32, 0);
  batch_norm_gradient(&g, "ngraph.BatchNormTrainingBackprop", EXTENTS(2, 3, 33), "NCX", f32, 0);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(2, 3, 33), "NCX", f32, 0);
  climb(&g, (Climb){.name = "batch norm planes", .unusual_too = true});
}

static void batch_norm_gradient_of_any_channels(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++)
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(all_heights[w % NHEIGHTS], all_widths[w]), "NXC", f32,
                        0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(1500, 40), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(70000, 1), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(2, 3, 4, 5, 6), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 9, 9, 3), "NXC", f32, FAR);
  batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(4, 9, 9, 3), "NXC", f32, NO_GAMMA);
  batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(4, 9, 9, 3), "NXC", f32, ONLY_DIFF_SRC);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(4, 9, 9, 18), "NXC", f32, 0);
  batch_norm_gradient(&g, "BatchNormInferenceBackward", EXTENTS(4, 9, 9, 18), "NXC", f32, ONLY_DIFF_SRC);
  climb(&g, (Climb){.name = "batch norm channels", .unusual_too = true, .is_misaligned = true});
}

static void batch_norm_forward_of_any_shape(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(5, 17), EXTENTS(3, 4, 33), EXTENTS(2, 3, 5, 16), EXTENTS(2, 3, 2, 3, 4),
                            EXTENTS(600, 3, 2)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (int is_last = 0; is_last < 2; is_last++) {
      const char *format = is_last ? "NXC" : "NCX";
      batch_norm_training(&g, shapes[i], format, f32, 0);
      batch_norm_inference(&g, shapes[i], format, f32);
    }
  }
  batch_norm_training(&g, EXTENTS(4, 3, 9, 9), "NCX", f32, FAR);
  batch_norm_training(&g, EXTENTS(4, 9, 9, 3), "NXC", f32, FAR);
  batch_norm_training(&g, EXTENTS(4, 3, 9, 9), "NCX", f32, NO_GAMMA);
  climb(&g, (Climb){.name = "batch norm forward", .unusual_too = true});
}

static void norms_of_any_types(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int i = 0; i < NTYPES; i++) {
    Types t = all_types[i];
    layer_norm_gradient(&g, EXTENTS(21, 50), -1, t, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackward", EXTENTS(3, 4, 37), "NCX", t, 0);
    batch_norm_gradient(&g, "BatchNormTrainingBackprop", EXTENTS(19, 37), "NXC", t, 0);
    batch_norm_training(&g, EXTENTS(3, 4, 37), "NCX", t, 0);
    batch_norm_inference(&g, EXTENTS(19, 37), "NXC", t);
  }
  layer_norm_gradient(&g, EXTENTS(21, 50), -1, (Types){"f16", "f16"}, 0);
  const char *const types[] = {"f32", "f64", "bf16", "f16"};
  for (int i = 0; i < 4; i++)
    batch_norm_gradient(&g, "ngraph.BatchNormTrainingBackprop", EXTENTS(3, 4, 37), "NCX", (Types){types[i], types[i]},
                        0);
  climb(&g, (Climb){.name = "types", .unusual_too = true, .is_misaligned = true});
}

static void norms_without_elements(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(0, 5), EXTENTS(0, 5, 7), EXTENTS(3, 5, 0, 5)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    layer_norm_gradient(&g, shapes[i], -1, f32, 0);
    layer_norm_gradient(&g, shapes[i], 1, f32, 0);
    layer_norm(&g, shapes[i], -1, f32, 0);
    layer_norm(&g, shapes[i], 0, f32, 0);
    for (int is_last = 0; is_last < 2; is_last++) {
      const char *format = is_last ? "NXC" : "NCX";
      batch_norm_gradient(&g, "BatchNormTrainingBackward", shapes[i], format, f32, 0);
      batch_norm_gradient(&g, "BatchNormInferenceBackward", shapes[i], format, f32, 0);
      batch_norm_training(&g, shapes[i], format, f32, 0);
      batch_norm_inference(&g, shapes[i], format, f32);
    }
    for (unsigned reduced = 0; reduced < 1U << shapes[i].rank; reduced += 3)
      directml_gradient(&g, training, shapes[i], reduced, "f32", 0);
  }
  layer_norm_gradient(&g, EXTENTS(4, 0), -1, f32, 0);
  layer_norm(&g, EXTENTS(4, 0), -1, f32, 0);
  climb(&g, (Climb){.name = "nothing"});
}

// DirectML

static void directml_gradients_of_any_statistics(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  const Extents shapes[] = {EXTENTS(40), EXTENTS(6, 5), EXTENTS(5, 3, 18), EXTENTS(4, 3, 5, 17)};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (unsigned reduced = 0; reduced < 1U << shapes[i].rank; reduced++)
      directml_gradient(&g, (reduced + i) % 2 ? training : frozen, shapes[i], reduced, "f32", 0);
  directml_gradient(&g, training, EXTENTS(2, 3, 1, 2, 3, 1, 2, 5), 0xA5, "f32", 0);
  directml_gradient(&g, training, EXTENTS(4, 3, 5, 17), 13, "f16", 0);
  directml_gradient(&g, frozen, EXTENTS(4, 3, 5, 17), 6, "f16", 0);
  directml_gradient(&g, training, EXTENTS(4, 3, 9, 9), 13, "f32", FAR);
  directml_gradient(&g, training, EXTENTS(300, 2, 50), 1, "f32", 0);
  directml_gradient(&g, training, EXTENTS(3, 300, 20), 2, "f32", 0); // each of the first axis keeps its sums
  climb(&g, (Climb){.name = "directml", .unusual_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(layer_norm_gradient_of_any_width),
      cmocka_unit_test(layer_norm_gradient_from_any_axis),
      cmocka_unit_test(layer_norm_of_any_shape),
      cmocka_unit_test(batch_norm_gradient_of_any_plane),
      cmocka_unit_test(batch_norm_gradient_of_any_channels),
      cmocka_unit_test(batch_norm_forward_of_any_shape),
      cmocka_unit_test(norms_of_any_types),
      cmocka_unit_test(norms_without_elements),
      cmocka_unit_test(directml_gradients_of_any_statistics),
  };
  return cmocka_run_group_tests_name("codegen_norm", tests, NULL, NULL);
}
