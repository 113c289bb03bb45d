// Texts that are handed to the caller.
#ifndef NGRAD_FRONTEND_API_TEXT_H
#define NGRAD_FRONTEND_API_TEXT_H

#include "frontend/api/handles.h"

// Hands the bytes over to the caller, who frees them with ng_text_free, or tells that there was no memory for them.
char *text_release(ng_context *ctx, Text *t);

#endif
