// Tensors in layouts that oneDNN chooses for a primitive, and the reorders between these and the graph's own.
#include "tests/bench/onednn/sequence.h"

#include <string.h>

void desc_of_any(Desc *desc) {
  Desc any;
  if (desc_by_tag(&any, desc->ndims, desc->dims, desc->data_type, dnnl_format_tag_any)) *desc = any;
}

bool is_needless_reference(const Sequence *s, const_dnnl_primitive_desc_t description) {
  const unsigned any = FORM_ANY_WEIGHTS | FORM_ANY_DATA;
  const char *name = NULL;
  return (s->form & any) != any &&
         dnnl_primitive_desc_query(description, dnnl_query_impl_info_str, 0, (void *)&name) == dnnl_success &&
         strncmp(name, "ref", strlen("ref")) == 0;
}

bool chosen_write(Sequence *s, Chosen *c, const Desc *used, const Desc *given, const Value *v) {
  if (!used) return false;
  *c = (Chosen){.given = *given, .used = *used, .home = s->places[v->index], .place = s->places[v->index]};
  if (!desc_equal(&c->given, &c->used)) c->place = sequence_buffer(s, desc_nbytes(&c->used));
  return c->place;
}

bool chosen_read(Sequence *s, Chosen *c, const Desc *used, const Desc *given, const Value *v) {
  return chosen_write(s, c, used, given, v) &&
         (c->place == c->home || sequence_reorder(s, &c->given, c->home, &c->used, c->place));
}

bool chosen_finish(Sequence *s, const Chosen *c) {
  return c->place == c->home || sequence_reorder(s, &c->used, c->place, &c->given, c->home);
}
