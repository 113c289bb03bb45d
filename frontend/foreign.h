// What readers of other systems' graphs tell of the operators that they read: the rows of their tables.
#ifndef NGRAD_FRONTEND_FOREIGN_H
#define NGRAD_FRONTEND_FOREIGN_H

#include "ir/operators/operator.h"

typedef struct ForeignForm {
  const char *name;
  OperatorId op;   // that it becomes, alone or with others; OP_COUNT: constants, or no one of them above all
  int since, last; // versions of the operator set; last 0: all later ones
} ForeignForm;

#endif
