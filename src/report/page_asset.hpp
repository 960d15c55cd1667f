// The script and style of HTML pages, as the build made them (src/report/html/).
#pragma once

#include <span>
#include <string_view>

namespace collcast {

struct PageAsset {
  std::string_view lacks;                    ///< why there are none; empty: there are
  std::span<const std::string_view> script;  ///< in pieces
  std::string_view script_hash;              ///< as a Content-Security-Policy names it
  std::span<const std::string_view> style;
  std::string_view charts;  ///< the library that draws, with its version
};
PageAsset page_asset();

}  // namespace collcast
