// What decides the bits of a kernel's sums, apart from their operands, so that kernels can be compared: a sum must have
// in a kernel with others the order that it has alone.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_SUM_FORMS_H
#define NGRAD_PASSES_SCHEDULE_ORDER_SUM_FORMS_H

#include "ir/kernel/schedule.h"

typedef struct SumForm {
  SumOrder order;   // without axes and segments, and without levels that change nothing
  uint64_t places;  // the reduced axes, in the order of additions (Axis.places)
  uint64_t extents; // a hash of the reduced axes' extents; neighbours whose elements are added as one row are one
} SumForm;

enum { MOST_SUM_FORMS = 24 };

typedef struct SumForms { // each form once
  SumForm forms[MOST_SUM_FORMS];
  int count;
  bool are_more; // there are others
} SumForms;

// Adds the forms of the schedule's sums. Maxima and the like, which are the same in any order, have none.
void sum_forms_add(SumForms *forms, const Schedule *s);
void sum_forms_add_all(SumForms *forms, const SumForms *others);
// Whether the others are all among the forms. False if either are too many to know.
bool sum_forms_include(const SumForms *forms, const SumForms *others);

#endif
