// Adds the nodes of a learning rate's schedule (RateSchedule in passes/train/train.h). Step numbers are exact up to
// 2^24.
#include "passes/train/step.h"

#include <math.h>

#define NUMBER(name, number) build_shared_number(b, name, s->rate_type, number)
#define UNARY(op, a, name) build_name(b, build_unary(b, OP_##op, a), name)
#define BINARY(op, a, c, name) build_name(b, build_binary(b, OP_##op, a, c), name)

// floor(t / n) for integers t and n: the integer nearest to (t - (n - 1) / 2) / n. This quotient is never halfway
// between two integers.
static Value *whole_quotient(Step *s, Value *t, int64_t n) {
  Builder *b = &s->b;
  Value *middle = BINARY(Subtract, t, NUMBER("half_period", (double)(n - 1) / 2), "t_from_middle");
  return UNARY(Round, BINARY(Divide, middle, NUMBER("step_size", (double)n), "periods"), "whole_periods");
}

static Value *factor_of_steps(Step *s, Value *t) {
  const RateSchedule *r = &s->options->schedule;
  Builder *b = &s->b;
  return BINARY(Power, NUMBER("gamma", r->gamma), whole_quotient(s, t, r->step_size), "decay");
}

// (1 + cos(pi x)) / 2 = 1/2 - sin(pi s) / 2 with s = x - 1/2 in [-1/2, 1/2], where the error of the sine's Taylor
// series is less than a rounding error.
static Value *factor_of_cosine(Step *s, Value *t) {
  const RateSchedule *r = &s->options->schedule;
  static const char *const names[] = {"sine_1",  "sine_3",  "sine_5",  "sine_7",  "sine_9", "sine_11",
                                      "sine_13", "sine_15", "sine_17", "sine_19", "sine_21"}; // coefficients
  const int nterms = s->rate_type == TYPE_F64 ? sizeof names / sizeof *names : 7;
  Builder *b = &s->b;
  Value *part = BINARY(Divide, t, NUMBER("decay_steps", (double)(r->steps - r->warmup)), "decay_part");
  Value *from_half = BINARY(Subtract, BINARY(Minimum, part, NUMBER("whole", 1), "decayed"), NUMBER("half", 0.5), "s");
  Value *square = UNARY(Square, from_half, "s_square"), *sum = NULL;
  for (int k = nterms; k-- > 0;) {
    double coefficient = -0.5 * M_PI;
    for (int n = 1; n <= k; n++) coefficient *= -M_PI * M_PI / (2 * n * (2 * n + 1));
    Value *number = NUMBER(names[k], coefficient);
    sum = sum ? BINARY(Add, BINARY(Multiply, sum, square, "series"), number, "series") : number;
  }
  Value *falling = BINARY(Add, BINARY(Multiply, sum, from_half, "half_sine"), NUMBER("half", 0.5), "half_cosine");
  return BINARY(Maximum, falling, NUMBER("nothing", 0), "decay");
}

Value *step_add_rate(Step *s) {
  const RateSchedule *r = &s->options->schedule;
  Builder *b = &s->b;
  const double base = s->options->learning_rate;
  if (r->kind == SCHEDULE_CONSTANT && !r->warmup) return NUMBER("learning_rate", base);
  b->comment = "The learning rate of this call.";
  Value *count = build_named_cast(b, build_named_cast(b, s->count, TYPE_F32, "count"), s->rate_type, "count_in_f64");
  Value *rate = NUMBER("base_rate", base);
  if (r->kind != SCHEDULE_CONSTANT) {
    // Steps since the end of the warmup, from 0.
    Value *t = BINARY(Subtract, count, NUMBER("first_step", (double)r->warmup + 1), "t");
    if (r->warmup) t = BINARY(Maximum, t, NUMBER("nothing", 0), "t_from_0");
    Value *factor = r->kind == SCHEDULE_STEP ? factor_of_steps(s, t) : factor_of_cosine(s, t);
    rate = BINARY(Multiply, rate, factor, r->warmup ? "scheduled_rate" : "learning_rate");
  }
  if (!r->warmup) return rate;
  Value *part = BINARY(Divide, count, NUMBER("warmup", (double)r->warmup), "warmup_part");
  Value *growth = BINARY(Minimum, part, NUMBER("whole", 1), "warmup_factor");
  return BINARY(Multiply, rate, growth, "learning_rate");
}
