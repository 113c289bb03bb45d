// Names of operators in other systems, with their operand order, operand names, defaults and type rules.
//
// Sources: the oneDNN specification (BatchNormTrainingBackprop-1), nGraph's BatchNormTrainingBackprop, DirectML's
// DML_BATCH_NORMALIZATION_GRAD and _TRAINING_GRAD. oneDNN Graph's names are the canonical ones.
#include "ir/operators/norm.h"

// Slots of the batch norm gradients.
enum { SRC, DIFF_DST, MEAN, VARIANCE, GAMMA, BETA };
enum { DIFF_SRC, DIFF_GAMMA, DIFF_BETA };

#define NAMED(d, n) .dialect = (d), .name = (n), .full_name = d "." n
#define DIRECTML_OPERANDS                                                                                              \
  .inputs = {{"InputTensor", SRC, false},                                                                              \
             {"InputGradientTensor", DIFF_DST, false},                                                                 \
             {"MeanTensor", MEAN, false},                                                                              \
             {"VarianceTensor", VARIANCE, false},                                                                      \
             {"ScaleTensor", GAMMA, false}},                                                                           \
  .ninputs = 5,                                                                                                        \
  .outputs = {{"OutputGradientTensor", DIFF_SRC, false},                                                               \
              {"OutputScaleGradientTensor", DIFF_GAMMA, false},                                                        \
              {"OutputBiasGradientTensor", DIFF_BETA, false}},                                                         \
  .noutputs = 3, .types = TYPES_F16_F32

const Signature signatures[] = {
    {NAMED("onednn_spec", "BatchNormTrainingBackprop"), .is_canonical_too = true, .op = OP_BatchNormTrainingBackward,
     .inputs = {{"input_forward", SRC, false},
                {"output_delta", DIFF_DST, false},
                {"mean", MEAN, false},
                {"variance", VARIANCE, false},
                {"gamma", GAMMA, true}},
     .ninputs = 5,
     .outputs = {{"input_delta", DIFF_SRC, false}, {"gamma_delta", DIFF_GAMMA, true}, {"beta_delta", DIFF_BETA, true}},
     .noutputs = 3},
    {NAMED("ngraph", "BatchNormTrainingBackprop"), .op = OP_BatchNormTrainingBackward,
     .inputs = {{"input", SRC, false},
                {"gamma", GAMMA, false},
                {"beta", BETA, false},
                {"mean", MEAN, false},
                {"variance", VARIANCE, false},
                {"normalized_delta", DIFF_DST, false}},
     .ninputs = 6,
     .outputs = {{"input_delta", DIFF_SRC, false},
                 {"gamma_delta", DIFF_GAMMA, false},
                 {"beta_delta", DIFF_BETA, false}},
     .noutputs = 3, .types = TYPES_FLOAT,
     .attributes = {{"epsilon", "epsilon", true, 0}, {NULL, "data_format", false, FORMAT_NCX}}, .nattributes = 2},
    {NAMED("directml", "BATCH_NORMALIZATION_GRAD"), .op = OP_BatchNormInferenceBackward, DIRECTML_OPERANDS,
     .attributes = {{"Epsilon", "epsilon", false, 1e-5}, {NULL, "statistics", false, STATISTICS_BROADCAST}},
     .nattributes = 2},
    {NAMED("directml", "BATCH_NORMALIZATION_TRAINING_GRAD"), .op = OP_BatchNormTrainingBackward, DIRECTML_OPERANDS,
     .attributes = {{"Epsilon", "epsilon", true, 0},
                    {NULL, "statistics", false, STATISTICS_BROADCAST},
                    {NULL, "center", false, CENTER_SRC}},
     .nattributes = 3},
};
const size_t nsignatures = sizeof signatures / sizeof *signatures;
