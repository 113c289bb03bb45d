// clang-format off

// Functions of the virtual vector that are more than an operation of the processor; vector.h stands before them.

static inline float v_lane_0(vec a) { return V_LANE(a.p[0], 0); }

static inline double d_lane_0(dvec a) { return V_LANE(a.p[0], 0); }

#define D_EACH_LANE(a, b, call) __extension__({ \
  double x_[16], y_[16]; \
  d_store(x_, a); \
  d_store(y_, b); \
  for (int j = 0; j < 16; j++) x_[j] = call(x_[j], y_[j]); \
  d_load(x_); })

#define D_CALL_EXP(x, y) ((void)(y), exp(x))

static inline dvec d_exp(dvec a) { return D_EACH_LANE(a, a, D_CALL_EXP); }

static inline vec v_exp(vec a) { return v_from_d(d_exp(d_from_v(a))); }

#define D_CALL_EXPM1(x, y) ((void)(y), expm1(x))

static inline dvec d_expm1(dvec a) { return D_EACH_LANE(a, a, D_CALL_EXPM1); }

static inline vec v_expm1(vec a) { return v_from_d(d_expm1(d_from_v(a))); }

#define D_CALL_LOG(x, y) ((void)(y), log(x))

static inline dvec d_log(dvec a) { return D_EACH_LANE(a, a, D_CALL_LOG); }

static inline vec v_log(vec a) { return v_from_d(d_log(d_from_v(a))); }

#define D_CALL_LOG1P(x, y) ((void)(y), log1p(x))

static inline dvec d_log1p(dvec a) { return D_EACH_LANE(a, a, D_CALL_LOG1P); }

static inline vec v_log1p(vec a) { return v_from_d(d_log1p(d_from_v(a))); }

#define D_CALL_TANH(x, y) ((void)(y), tanh(x))

static inline dvec d_tanh(dvec a) { return D_EACH_LANE(a, a, D_CALL_TANH); }

static inline vec v_tanh(vec a) { return v_from_d(d_tanh(d_from_v(a))); }

#define D_CALL_ERF(x, y) ((void)(y), erf(x))

static inline dvec d_erf(dvec a) { return D_EACH_LANE(a, a, D_CALL_ERF); }

static inline vec v_erf(vec a) { return v_from_d(d_erf(d_from_v(a))); }

#define D_CALL_FLOOR(x, y) ((void)(y), floor(x))

static inline dvec d_floor(dvec a) { return D_EACH_LANE(a, a, D_CALL_FLOOR); }

static inline vec v_floor(vec a) { return v_from_d(d_floor(d_from_v(a))); }

#define D_CALL_NEARBYINT(x, y) ((void)(y), nearbyint(x))

static inline dvec d_round(dvec a) { return D_EACH_LANE(a, a, D_CALL_NEARBYINT); }

static inline vec v_round(vec a) { return v_from_d(d_round(d_from_v(a))); }

static inline dvec d_pow(dvec a, dvec b) { return D_EACH_LANE(a, b, pow); }

static inline vec v_pow(vec a, vec b) { return v_from_d(d_pow(d_from_v(a), d_from_v(b))); }
