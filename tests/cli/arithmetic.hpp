// What the numbers of an explained term come to: "(64 - 1) 234.8 ms", "2 x 1 GiB / 8", "max(9.7 ms - 340 us, 0)".
#pragma once

#include <string_view>

namespace collcast::test {

/// In base units. Fails the test where the text is no arithmetic.
double worth(std::string_view text);

}  // namespace collcast::test
