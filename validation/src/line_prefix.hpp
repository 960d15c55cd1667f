// What launchers and collectors of logs write before the lines of a program.
#pragma once

#include <cstddef>
#include <string_view>

namespace collcast {

/// Known are date and time ("2026-11-25T07:00:00.25Z "), "0: " of srun --label and "[1,0]<stdout>:" of mpirun
/// --tag-output. Any other is learnt from the first line that nccl-tests prints: it goes to a certain occurrence of the
/// sign that it ends with ("node1: ", "[0] ", "name-1  | ", "[default0]:"), as on every other line.
class LinePrefix {
 public:
  /// Characters before the line itself.
  std::size_t length(std::string_view line);

 private:
  char end_ = 0;  ///< of what was learnt; 0: nothing
  std::ptrdiff_t ends_ = 0;
  std::ptrdiff_t words_ = 0;
};

}  // namespace collcast
