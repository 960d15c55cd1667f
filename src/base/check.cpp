#include "collcast/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace collcast {

void broken_invariant(const char* what, std::source_location where) {
  std::fprintf(stderr, "collcast: internal error: %s (%s:%u)\nThis is a defect in collcast; please report it.\n",
               what, where.file_name(), static_cast<unsigned>(where.line()));
  std::abort();
}

}  // namespace collcast
