// Texts that the caller owns.
#ifndef NGRAD_FRONTEND_API_TEXT_H
#define NGRAD_FRONTEND_API_TEXT_H

#include "frontend/api/handles.h"

// Passes the bytes to the caller, who frees them with ng_text_free. NULL after reporting out of memory.
char *text_release(ng_context *ctx, Text *t);

#endif
