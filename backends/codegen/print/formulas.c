// The C of operators: formulas of scalars, by operator.
#include "backends/codegen/print/tree_printer.h"

const char *const scalar_formulas[EXPR_OP_COUNT] = {
    [EXPR_ADD] = "{0} + {1}",
    [EXPR_SUB] = "{0} - {1}",
    [EXPR_MUL] = "{0} * {1}",
    [EXPR_DIV] = "{0} / {1}",
    [EXPR_NEG] = "-{0}",
    [EXPR_SQRT] = "sqrt{f}({0})",
    [EXPR_MAX] = "({0} > {1} ? {0} : {1})",
    [EXPR_FMA] = "fma{f}({0}, {1}, {2})",
    [EXPR_GT] = "{0} > {1}",
    [EXPR_SELECT] = "({0} ? {1} : {2})",
    [EXPR_ROUND_F32] = "{wide}{narrow}{0}",
    [EXPR_ROUND_F16] = "{wide}f32_from_f16(f16_from_f32({narrow}{0}))",
    [EXPR_ROUND_BF16] = "{wide}f32_from_bf16(bf16_from_f32({narrow}{0}))",
    [EXPR_MIN] = "({0} < {1} ? {0} : {1})",
    [EXPR_EQ] = "{0} == {1}",
    [EXPR_GE] = "{0} >= {1}",
    [EXPR_ROUND_E4M3] = "{wide}f32_from_e4m3(e4m3_from_f32({narrow}{0}))",
    [EXPR_ROUND_E5M2] = "{wide}f32_from_e5m2(e5m2_from_f32({narrow}{0}))",
    [EXPR_FMOD] = "fmod{f}({0}, {1})",
    [EXPR_INDEX] = "({scalar}){index}",
    [EXPR_INTEGER] = "{integer}",
    [EXPR_IS_KEPT] = "is_kept({0}, {1}, (double){2}, {at})",
    [EXPR_COUNT] = "{to_kernel}(double){number}", // in f64, and then rounded, as constants are
    [EXPR_RECIPROCAL] = "{reciprocal}",
};

const char *const integer_formulas[EXPR_OP_COUNT] = {
    [EXPR_ADD] = "(int64_t)((uint64_t){0} + (uint64_t){1})",
    [EXPR_SUB] = "(int64_t)((uint64_t){0} - (uint64_t){1})",
    [EXPR_MUL] = "(int64_t)((uint64_t){0} * (uint64_t){1})",
    [EXPR_NEG] = "(int64_t)(0 - (uint64_t){0})",
    [EXPR_MAX] = "({0} > {1} ? {0} : {1})",
    [EXPR_FMA] = "(int64_t)((uint64_t){0} * (uint64_t){1} + (uint64_t){2})",
    [EXPR_MIN] = "({0} < {1} ? {0} : {1})",
    [EXPR_GT] = "{0} > {1}",
    [EXPR_GE] = "{0} >= {1}",
    [EXPR_EQ] = "{0} == {1}",
    [EXPR_SELECT] = "({0} ? {1} : {2})",
    [EXPR_FMOD] = "((uint64_t){1} + 1 < 2 ? 0 : {0} - {0} / {1} * {1})", // the divisors -1 and 0 may trap
    [EXPR_INDEX] = "({scalar}){index}",
    [EXPR_INTEGER] = "{integer}",
    [EXPR_IS_KEPT] = "is_kept({0}, {1}, (double){2}, {at})",
    [EXPR_COUNT] = "(int64_t){number}",
    [EXPR_RECIPROCAL] = "(int64_t){number}",
};

const char *const element_formulas[EXPR_OP_COUNT][2] = {
    [EXPR_FMA] = {"V_FMA({0}, {1}, {2})", "D_FMA({0}, {1}, {2})"},
    [EXPR_ABS] = {"V_ABS({0})", "D_ABS({0})"},
    [EXPR_MAXIMUM] = {"V_PART_MAXIMUM({0}, {1})", "V_MAXIMUM({0}, {1})"},
    [EXPR_ROUND] = {"v_part_round({0})", "d_part_round({0})"},
    [EXPR_FLOOR] = {"v_part_floor({0})", "d_part_floor({0})"},
    [EXPR_EXP] = {"v_part_exp({0})", "d_part_exp_of_sum({0}, 0.0)"},
    [EXPR_EXPM1] = {"v_part_expm1({0})", "d_part_expm1({0})"},
    [EXPR_LOG] = {"v_part_log({0})", "d_part_log({0})"},
    [EXPR_LOG1P] = {"v_part_log1p({0})", "d_part_log1p({0})"},
    [EXPR_TANH] = {"v_part_tanh({0})", "d_part_tanh({0})"},
    [EXPR_ERF] = {"v_part_erf({0})", "d_part_erf({0})"},
    [EXPR_GELU] = {"v_part_gelu({0})", "d_part_gelu({0})"},
    [EXPR_GELU_SLOPE] = {"v_part_gelu_slope({0})", "d_part_gelu_slope({0})"},
    [EXPR_SIN] = {"v_lane_0(v_sin(v_set({0})))", "d_lane_0(d_sin(d_set({0})))"},
    [EXPR_COS] = {"v_lane_0(v_cos(v_set({0})))", "d_lane_0(d_cos(d_set({0})))"},
    [EXPR_POW] = {"(float)d_part_pow_of_f32((double){0}, (double){1})", "d_part_pow({0}, {1})"},
};
