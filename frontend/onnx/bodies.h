// Operators of ONNX as formulas (recipe.h) in other operators of ONNX. Names are the node's inputs, its attributes,
// and what statements before have assigned; one that is an output's becomes this output. Functions are in the table of
// body_functions.c; two make lists:
//
//   p = push(p, x), stack(p, 1)   a list of tensors, and one tensor of them along a new axis
#ifndef NGRAD_FRONTEND_ONNX_BODIES_H
#define NGRAD_FRONTEND_ONNX_BODIES_H

#include "frontend/onnx/recipe.h"
#include "frontend/onnx/translation.h"

typedef struct Body {
  Recipe recipe; // the first member: the maker finds the Body by its address
  Onnx *x;
} Body;

// What the bodies' functions are made of, from the bottom up.

// Terms (body_terms.c)
#define body_fail(f, ...) recipe_fail(&(f)->recipe, __VA_ARGS__) // false
Term body_out_of_memory(Body *f);                                // an absent term
Term term_extent(Extent e);
Term term_value(Value *v);
// As a tensor: a number or extent with the type of `like`, or s64 if that is NULL; a list in s64. NULL: absent.
Value *term_tensor(Body *f, const Term *t, const Value *like);

// Calls (body_calls.c)
Term body_combine(Recipe *recipe, char sign, Term a, Term b);
Term body_call_operator(Recipe *recipe, RecipeCall *call);
Term body_call(Body *f, const char *name, const Term *arguments, size_t count);

Term body_call_function(Recipe *recipe, RecipeCall *call); // body_functions.c

#endif
