// topologies/kernels/*.yaml -> KernelModel.
#include <fmt/format.h>

#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

KernelEfficiency read_efficiency(Reader& reader, const Node& node, const std::string& path) {
  KernelEfficiency kernel;
  Object o(reader, node, path);
  const AsNumber share{0, 1, true};
  o.required("overhead", kernel.overhead, AsTime{});
  o.required("compute", kernel.compute, share);
  o.required("memory", kernel.memory, share);
  o.required("source", kernel.source, AsText{});
  o.finish();
  return kernel;
}

std::map<std::string, KernelEfficiency> read_by_precision(Reader& reader, const Node& node, const std::string& path) {
  std::map<std::string, KernelEfficiency> kernels;
  Object o(reader, node, path);
  for (const std::string& precision : precisions()) {
    if (const Node* kernel = o.optional_map(precision))
      kernels[precision] = read_efficiency(reader, *kernel, fmt::format("{}.{}", path, precision));
  }
  o.finish();
  if (node.kind == Node::Kind::map && node.entries.empty())
    reader.error(node.at, fmt::format("{} is empty", path), "expected at least one precision, such as bf16");
  return kernels;
}

}  // namespace

KernelModel read_kernels(Reader& reader, const Node& tree, const std::string& file) {
  KernelModel model;
  model.file = file;
  Object o(reader, tree, "");
  if (!read_schema(reader, o, "collcast.kernels.v1")) return model;
  std::vector<std::string> sources;
  o.required("name", model.name, AsName{});
  o.required("sources", sources, AsList<AsText, std::string>{});
  if (const Node* gemm = o.required_map("gemm")) model.gemm = read_by_precision(reader, *gemm, "gemm");
  if (const Node* attention = o.required_map("attention"))
    model.attention = read_by_precision(reader, *attention, "attention");
  if (const Node* memory = o.required_map("memory_bound"))
    model.memory_bound = read_efficiency(reader, *memory, "memory_bound");
  o.finish();
  return model;
}

Result<KernelModel> load_kernels(const Request& request, const SearchPath& search) {
  const Result<std::string> file = find_file(request, kernel_folders(search), "kernel table");
  if (!file) return file.errors();
  const Result<std::string> text = read_file(*file, request.where);
  if (!text) return text.errors();
  return parse_kernels(*text, *file);
}

}  // namespace collcast::input

namespace collcast {

Result<KernelModel> parse_kernels(std::string_view text, std::string_view file_name) {
  const std::string file(file_name);
  const Result<input::Node> tree = input::parse_yaml(text, file);
  if (!tree) return tree.errors();
  input::Reader reader;
  reader.error(repeated_keys(*tree));
  KernelModel model = input::read_kernels(reader, *tree, file);
  if (!reader.ok()) return reader.take();
  return model;
}

Result<KernelModel> load_kernels(const std::string& name, const SearchPath& search) {
  return input::load_kernels({name, "", {"command line"}}, search);
}

Result<KernelModel> load_kernels(const TopologySpec& machine, const SearchPath& search) {
  SearchPath nearest = search;
  const std::string beside_machine = input::folder_of(machine.file);
  nearest.topologies.insert(nearest.topologies.begin(), beside_machine.empty() ? "." : beside_machine);
  return input::load_kernels({machine.gpu.kernels, "", machine.gpu.kernels_where}, nearest);
}

}  // namespace collcast
