#include "runner/sinks.hpp"

#include <cerrno>
#include <unistd.h>

#include "runner/frames.hpp"

namespace collcast::runner {

void tell(int pipe, const Message& message) {
  const std::string bytes = frame(encode(message));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = ::write(pipe, bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno != EINTR) return;
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

MeasureSink sink_into(int pipe) {
  return {[pipe](const MeasuredSystem& system) { tell(pipe, system); },
          [pipe](CollectiveKind kind, Bytes size) {
            tell(pipe, Began{kind, size});
          },
          [pipe](const MeasuredRow& row) {
            tell(pipe, row);
            return true;
          },
          [pipe](const std::string& note) { tell(pipe, Noted{note}); }};
}

MeasureSink silent_sink() {
  return {[](const MeasuredSystem&) {}, [](CollectiveKind, Bytes) {}, [](const MeasuredRow&) { return true; },
          [](const std::string&) {}};
}

}  // namespace collcast::runner
