/* Written by export.py. */
static const float expected[] = {-0.0101911351F, 0.129386738F, 0.0180103667F, -0.0662841424F, -0.16353783F};
