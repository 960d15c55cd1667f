// What this machine is, as far as a table may say: no host names, but whether two ranks share a host.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace collcast::runner {

std::string own_host_name();
/// Network interfaces that have an IP address, sorted.
std::set<std::string> interface_names();
/// The same number on every process of a host, exactly representable; another one elsewhere.
double host_mark();
/// Hosts among the processes' marks, one per process.
int count_nodes(const std::vector<std::vector<double>>& marks);
/// "Intel(R) Xeon(R) ...", or "CPU" where the system does not say.
std::string processor_name();
/// "580.95.05", or empty.
std::string nvidia_driver_version();

}  // namespace collcast::runner
