// What the library has of its own, whatever format it reads.

#include "exported.h"

#include <cstdint>

#ifdef __GLIBC__
#include <malloc.h>
#endif

// Gives memory that isn't used any more back to the system: the C library would keep it for threads that have ended.
EXPORTED void library_trim() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

// A checksum of the sources that it was built from.
EXPORTED uint32_t library_sources() {
  return SOURCES;
}
