// Tables of measured matrix products: CSV with a heading, columns in any order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collcast/base/diagnostic.hpp"
#include "collcast/base/quantity.hpp"
#include "collcast/workload/measured_gemms.hpp"

namespace collcast {

struct GemmRow {
  std::string system;            ///< column `system`, may be missing: which GPU
  std::string dtype;             ///< bfloat16, float16, fp8, nvfp4
  GemmShape shape;               ///< m, n, k
  std::optional<GemmPass> pass;  ///< column `pass`, may be missing or empty: for none in particular
  Seconds time{};                ///< latency_ms
  int line = 0, column = 0;      ///< of latency_ms

  std::string precision() const;  ///< bf16, fp16, fp8, fp4: as kernel tables and GPUs call it
  Volume bytes() const;           ///< gemm_bytes of it
};

/// Needs the columns dtype, m, n, k and latency_ms; others than those above are passed over. All errors at once.
Result<std::vector<GemmRow>> parse_gemm_table(std::string_view text, const std::string& file);

/// Columns that a table of products needs and this text's heading lacks.
std::vector<std::string> missing_gemm_columns(std::string_view text);

/// Whether this text's heading has the column.
bool has_gemm_column(std::string_view text, std::string_view column);

std::vector<std::string> gemm_dtypes();

}  // namespace collcast
