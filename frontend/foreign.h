// Rows of the tables of operators that readers of other systems' graphs accept.
#ifndef NGRAD_FRONTEND_FOREIGN_H
#define NGRAD_FRONTEND_FOREIGN_H

#include "ir/operators/operator.h"

typedef struct ForeignForm {
  const char *name;
  OperatorId op; // the operator that it becomes, alone or among others; OP_COUNT: a constant, or several of equal rank
  int since, last; // first and last version of the operator set; last 0: all later ones
} ForeignForm;

#endif
