// A pattern of another size: nothing of it depends on the size but how many bytes a block is.
#pragma once

#include "collcast/collective/collective.hpp"

namespace collcast {

/// Makes of make_pattern's answer what it answers for `size` bytes, to the last bit.
void resize(Pattern&, CollectiveKind, Bytes size);

}  // namespace collcast
