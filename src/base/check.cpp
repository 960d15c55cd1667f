#include "collcast/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace collcast {

void broken_invariant(const char* what, const char* file, int line) {
  std::fprintf(stderr, "collcast: internal error: %s (%s:%d)\nThis is a defect in collcast; please report it.\n", what,
               file, line);
  std::abort();
}

}  // namespace collcast
