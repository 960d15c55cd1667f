// topologies/kernels/*.yaml -> KernelModel.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "collcast/base/text.hpp"
#include "collcast/scenario/gemm_check.hpp"
#include "collcast/scenario/gemm_table.hpp"
#include "collcast/workload/gemm_time.hpp"
#include "scenario/files.hpp"
#include "scenario/parse.hpp"

namespace collcast::input {

namespace {

/// Tables that were read, by file: precisions share them, and what is wrong in one is said once.
struct GemmFiles {
  std::map<std::string, std::optional<std::vector<GemmRow>>> rows;
  std::set<std::pair<std::string, std::string>> impossible;  // file and type
};

const std::optional<std::vector<GemmRow>>& rows_of(Reader& reader, GemmFiles& files, const std::string& file,
                                                   const Place& where) {
  const auto [found, is_new] = files.rows.try_emplace(file);
  if (!is_new) return found->second;
  const Result<std::string> text = read_file(file, where.location());
  if (!text) {
    reader.error(text.errors());
    return found->second;
  }
  Result<std::vector<GemmRow>> rows = parse_gemm_table(*text, file);
  if (rows)
    found->second = std::move(rows).value();
  else
    reader.error(rows.errors());
  return found->second;
}

/// The products of a table that are of `dtype`, each against the roofline of its precision.
void fill(Reader& reader, GemmTables& out, const KernelEfficiency& kernel, const MeasuredGpu& gpu,
          const std::vector<GemmRow>& rows, const std::string& dtype, const Place& where) {
  std::map<std::optional<GemmPass>, std::vector<MeasuredGemm>> by_pass;
  for (const GemmRow& row : rows) {
    if (row.dtype != dtype) continue;
    const Roofline time = roofline(kernel, gpu.peak, gpu.memory_bandwidth, row.shape, row.bytes());
    by_pass[row.pass].push_back({row.shape, row.time / time.total()});
  }
  if (by_pass.empty()) reader.error(where, fmt::format("{} has no products of {}", out.file, dtype));
  for (const auto& [pass, products] : by_pass) (pass ? out.of_pass[*pass] : out.any) = MeasuredGemms(products);
}

GemmTables read_measured(Reader& reader, const Node& node, const std::string& path, const KernelEfficiency& kernel,
                         const std::string& file, GemmFiles& files) {
  GemmTables tables;
  MeasuredGpu gpu;
  std::string name, dtype;
  Object o(reader, node, path);
  bool whole = o.required("file", name, AsText{});
  whole = o.required("dtype", dtype, AsWord<std::string>{gemm_dtypes(), gemm_dtypes()}) && whole;
  whole = o.required("peak", gpu.peak, AsFlopRate{}) && whole;
  whole = o.required("memory_bandwidth", gpu.memory_bandwidth, AsBandwidth{}) && whole;
  o.finish();
  tables.file = beside(folder_of(file), name);
  if (!whole || !reader.ok()) return tables;
  const auto& rows = rows_of(reader, files, tables.file, node.at);
  if (!rows) return tables;
  const Diagnostics impossible = impossible_rows(*rows, dtype, gpu, tables.file, path);
  if (impossible.empty())
    fill(reader, tables, kernel, gpu, *rows, dtype, node.at);
  else if (files.impossible.emplace(tables.file, dtype).second)
    reader.error(impossible);
  return tables;
}

void read_rates(Object& o, KernelEfficiency& kernel) {
  const AsNumber share{0, 1, true};
  o.required("overhead", kernel.overhead, AsTime{});
  o.required("compute", kernel.compute, share);
  o.required("memory", kernel.memory, share);
  o.required("source", kernel.source, AsText{});
}

KernelEfficiency read_efficiency(Reader& reader, const Node& node, const std::string& path) {
  KernelEfficiency kernel;
  Object o(reader, node, path);
  read_rates(o, kernel);
  o.finish();
  return kernel;
}

/// Calls `read` for each precision that the section has.
template <class Read>
void for_precisions(Reader& reader, const Node& node, const std::string& path, const Read& read) {
  Object o(reader, node, path);
  for (const std::string& precision : precisions())
    if (const Node* kernel = o.optional_map(precision)) read(precision, *kernel, fmt::format("{}.{}", path, precision));
  o.finish();
  if (node.kind == Node::Kind::map && node.entries.empty())
    reader.error(node.at, fmt::format("{} is empty", path), "expected at least one precision, such as bf16");
}

void read_sustained(Reader& reader, const Node& node, const std::string& path, KernelEfficiency& kernel) {
  Object o(reader, node, path);
  o.required("compute", kernel.sustained, AsNumber{0, 1, true});
  o.required("source", kernel.sustained_source, AsText{});
  o.finish();
  if (reader.good(path + ".compute") && kernel.sustained > kernel.compute)
    reader.error(
        node.at,
        fmt::format("{}.compute is {}, more than the {} of single products", path, kernel.sustained, kernel.compute),
        "expected no more than its 'compute', or none");
}

void read_gemm(Reader& reader, const Node& node, KernelModel& model) {
  GemmFiles files;
  for_precisions(reader, node, "gemm", [&](const std::string& precision, const Node& kernel, const std::string& path) {
    Object o(reader, kernel, path);
    read_rates(o, model.gemm[precision]);
    const Node* measured = o.optional_map("measured");
    if (const Node* sustained = o.optional_map("sustained"))
      read_sustained(reader, *sustained, path + ".sustained", model.gemm[precision]);
    o.finish();
    if (measured)
      model.measured_gemm[precision] =
          read_measured(reader, *measured, path + ".measured", model.gemm[precision], model.file, files);
  });
}

void read_beside(Reader& reader, const Node& node, KernelModel& model) {
  Object o(reader, node, "beside_collectives");
  o.required("compute", model.beside_collectives, AsNumber{0, 1, true});
  o.required("source", model.beside_source, AsText{});
  o.finish();
}

void read_host_copies(Reader& reader, const Node& node, KernelModel& model) {
  Object o(reader, node, "host_copies");
  o.required("rate", model.host_copies, AsNumber{0, 1, true});
  o.required("source", model.host_copies_source, AsText{});
  o.finish();
}

using ByPrecision = std::map<std::string, KernelEfficiency>;

/// `<name>_gradient`, of what `forward` was read for.
void read_gradient(Reader& reader, Object& o, const std::string& name, const ByPrecision& forward, ByPrecision& out) {
  const std::string own = name + "_gradient";
  const Node* gradient = o.optional_map(own.c_str());
  if (gradient == nullptr) return;
  for_precisions(reader, *gradient, own.c_str(),
                 [&](const std::string& precision, const Node& kernel, const std::string& path) {
                   out[precision] = read_efficiency(reader, kernel, path);
                   if (!forward.contains(precision))
                     reader.error(kernel.at, fmt::format("{} has no forward: there is no {}.{}", path, name, precision),
                                  fmt::format("expected both, or {} alone", name));
                 });
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
  if (const Node* gemm = o.required_map("gemm")) read_gemm(reader, *gemm, model);
  if (const Node* attention = o.required_map("attention"))
    for_precisions(reader, *attention, "attention",
                   [&](const std::string& precision, const Node& kernel, const std::string& path) {
                     model.attention[precision] = read_efficiency(reader, kernel, path);
                   });
  read_gradient(reader, o, "attention", model.attention, model.attention_gradient);
  if (const Node* grouped = o.optional_map("grouped_gemm"))
    for_precisions(reader, *grouped, "grouped_gemm",
                   [&](const std::string& precision, const Node& kernel, const std::string& path) {
                     model.grouped_gemm[precision] = read_efficiency(reader, kernel, path);
                   });
  read_gradient(reader, o, "grouped_gemm", model.grouped_gemm, model.grouped_gemm_gradient);
  if (const Node* memory = o.required_map("memory_bound"))
    model.memory_bound = read_efficiency(reader, *memory, "memory_bound");
  if (const Node* beside = o.optional_map("beside_collectives")) read_beside(reader, *beside, model);
  if (const Node* copies = o.optional_map("host_copies")) read_host_copies(reader, *copies, model);
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

namespace {
/// The table of no GPU in particular.
constexpr const char* stand_in = "data-sheet";
}  // namespace

Result<KernelModel> stand_in_kernels(const SearchPath& search, const Location& asked_by) {
  return input::load_kernels({stand_in, "", asked_by}, search);
}

std::string stand_in_text() {
  return fmt::format(
      "the table '{}' stands in, medians of what other GPUs reach of their data sheets (fp32 and tf32 as bf16); times "
      "are rough",
      stand_in);
}

}  // namespace collcast
