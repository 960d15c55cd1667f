// What is said of ranks that said nothing.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace collcast::runner {

/// "no word from ranks 1, 4 to 9", and where there are more ranks than processors that this may be why. `silent` is in
/// ascending order and has one at least.
std::string silence_text(const std::vector<std::size_t>& silent, std::size_t ranks, std::size_t processors);

}  // namespace collcast::runner
