#include "runner/machine.hpp"

#include <fstream>
#include <functional>
#include <ifaddrs.h>
#include <iterator>
#include <sstream>
#include <sys/socket.h>
#include <unistd.h>

namespace collcast::runner {

std::string own_host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "localhost";
}

std::set<std::string> interface_names() {
  std::set<std::string> out;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return out;
  for (const ifaddrs* i = first; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr != nullptr && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6))
      out.insert(i->ifa_name);
  }
  ::freeifaddrs(first);
  return out;
}

double host_mark() {
  // Hosts cloned from one image may share a name; no two share a boot.
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  const std::string text = own_host_name() + std::string(std::istreambuf_iterator<char>(boot), {});
  return static_cast<double>(std::hash<std::string>{}(text) >> 12);
}

int count_nodes(const std::vector<std::vector<double>>& marks) {
  std::set<double> hosts;
  for (const std::vector<double>& mark : marks) hosts.insert(mark.front());
  return static_cast<int>(hosts.size());
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::string nvidia_driver_version() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep ..."
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  return {};
}

}  // namespace collcast::runner
