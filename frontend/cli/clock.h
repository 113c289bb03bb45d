// Time that has passed.
#ifndef NGRAD_FRONTEND_CLI_CLOCK_H
#define NGRAD_FRONTEND_CLI_CLOCK_H

double now_ms(void); // since some moment; never goes back

#endif
