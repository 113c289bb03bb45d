// Names of rows in the catalogue's tables.
#ifndef NGRAD_FRONTEND_API_CATALOGUE_H
#define NGRAD_FRONTEND_API_CATALOGUE_H

#include "ir/operators/operator.h"

const char *attribute_kind_name(AttributeKind kind);

#endif
