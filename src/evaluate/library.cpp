#include "collcast/evaluate/library.hpp"

namespace collcast {

std::string_view to_string(Library library) { return library == Library::nccl ? "nccl" : "ideal"; }

}  // namespace collcast
