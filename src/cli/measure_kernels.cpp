// collcast measure kernels: matrix products, attention-shaped products, copies and fills on the GPU here.
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <tuple>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/measure_options.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "cli/values.hpp"
#include "collcast/base/text.hpp"
#include "collcast/base/units.hpp"
#include "collcast/runner/kernels.hpp"
#include "collcast/scenario/gemm_table.hpp"

namespace collcast::cli {

namespace {

const std::vector<std::string> kernel_words{"gemm", "attention", "memory", "all"};
const std::vector<std::string> dtypes{"bfloat16", "float16", "fp8"};

struct KernelsArgs {
  std::optional<std::string> dtype;
  std::string kernels = "all", shapes, device = "0", warmup = "3", repetitions = "20", system = "unknown";
  OutputOptions output;
};

/// The products of a layer's forward on one GPU: queries, keys and values, the projection, a gated MLP's two, of
/// Llama-3 8B and 70B (their hidden and intermediate sizes and grouped keys) at tensor parallelism of 1 to 8.
std::vector<KernelCase> layer_products(const std::string& dtype) {
  struct Layer {
    std::int64_t hidden, mlp, heads, kv_heads;
  };
  std::vector<KernelCase> out;
  for (const Layer& layer : {Layer{4096, 14336, 32, 8}, Layer{8192, 28672, 64, 8}})
    for (const std::int64_t tokens : {1024, 2048, 4096, 8192})
      for (const std::int64_t tp : {1, 2, 4, 8}) {
        const std::int64_t head = layer.hidden / layer.heads;
        const auto add = [&](std::int64_t n, std::int64_t k) {
          out.push_back({KernelKind::gemm, dtype, tokens, n, k, 1, {}});
        };
        add((layer.heads + 2 * layer.kv_heads) * head / tp, layer.hidden);
        add(layer.hidden, layer.hidden / tp);
        add(2 * layer.mlp / tp, layer.hidden);
        add(layer.hidden, layer.mlp / tp);
      }
  return out;
}

/// Scores, queries by keys, and values, scores by values, of 8 and 32 heads of 128.
std::vector<KernelCase> attention_products(const std::string& dtype) {
  constexpr std::int64_t head = 128;
  std::vector<KernelCase> out;
  for (const std::int64_t heads : {8, 32})
    for (const std::int64_t tokens : {1024, 2048, 4096, 8192}) {
      out.push_back({KernelKind::attention, dtype, tokens, tokens, head, heads, {}});
      out.push_back({KernelKind::attention, dtype, tokens, head, tokens, heads, {}});
    }
  return out;
}

std::vector<KernelCase> memory_kernels() {
  std::vector<KernelCase> out;
  for (const KernelKind kind : {KernelKind::copy, KernelKind::fill})
    for (std::int64_t bytes = 1 << 20; bytes <= 1 << 30; bytes *= 4) {
      KernelCase what;
      what.kind = kind;
      what.bytes = Bytes(bytes);
      out.push_back(what);
    }
  return out;
}

/// The products of a table, each once: of the types that it has them in, or each shape in `dtype`.
std::vector<KernelCase> products_of_file(const std::string& file, const std::optional<std::string>& dtype,
                                         std::vector<std::string>& notes, Diagnostics& errors) {
  const Result<std::string> text = read_file(file, typed("--shapes", file));
  if (!text) {
    append(errors, text.errors());
    return {};
  }
  const Result<std::vector<GemmRow>> rows = parse_gemm_table(*text, file);
  if (!rows) {
    append(errors, rows.errors());
    return {};
  }
  std::vector<KernelCase> out;
  std::set<std::tuple<std::string, double, double, double>> seen;
  std::map<std::string, int> passed_over;
  for (const GemmRow& row : *rows) {
    const std::string type = dtype.value_or(row.dtype);
    if (std::find(dtypes.begin(), dtypes.end(), type) == dtypes.end())
      ++passed_over[type];
    else if (seen.emplace(type, row.shape.m, row.shape.n, row.shape.k).second)
      out.push_back({KernelKind::gemm,
                     type,
                     static_cast<std::int64_t>(row.shape.m),
                     static_cast<std::int64_t>(row.shape.n),
                     static_cast<std::int64_t>(row.shape.k),
                     1,
                     {}});
  }
  if (out.empty())
    errors.push_back({typed("--shapes", file), fmt::format("no product of {} can be measured", file),
                      fmt::format("expected rows of {}", fmt::join(dtypes, ", "))});
  for (const auto& [type, count] : passed_over)
    notes.push_back(fmt::format("{} rows of {} are left out: products of {} can be measured", count, type,
                                fmt::join(dtypes, ", ")));
  return out;
}

KernelsPlan understand(const KernelsArgs& args, std::vector<std::string>& notes, Diagnostics& errors) {
  KernelsPlan plan;
  const auto kernels = parse_word("KERNEL", args.kernels, kernel_words, errors);
  const std::string dtype = args.dtype.value_or("bfloat16");
  const bool known = parse_word("--dtype", dtype, dtypes, errors).has_value();
  plan.device = parse_count("--device", args.device, 0, errors).value_or(0);
  plan.warmup = parse_repetitions("--warmup", args.warmup, 0, errors);
  plan.repetitions = parse_repetitions("--repetitions", args.repetitions, 1, errors);
  if (!args.shapes.empty() && args.kernels != "gemm")
    errors.push_back({typed("--shapes", args.shapes), fmt::format("--shapes has no meaning for {}", args.kernels),
                      "they are of products: expected 'collcast measure kernels gemm'"});
  if (kernels && dtype == "fp8" && args.kernels != "gemm")
    errors.push_back({typed("--dtype", "fp8"), fmt::format("--dtype fp8 has no meaning for {}", args.kernels),
                      "single products alone are measured in it: expected 'collcast measure kernels gemm'"});
  if (!kernels || !known) return plan;
  const std::string& word = kernel_words[*kernels];
  const bool all = word == "all";
  const auto add = [&](std::vector<KernelCase> cases) {
    plan.cases.insert(plan.cases.end(), cases.begin(), cases.end());
  };
  if (all || word == "gemm")
    add(args.shapes.empty() ? layer_products(dtype) : products_of_file(args.shapes, args.dtype, notes, errors));
  if (all || word == "attention") add(attention_products(dtype));
  if (all || word == "memory") add(memory_kernels());
  return plan;
}

Exit run_kernels(const KernelsArgs& args, const Session& session) {
  Diagnostics errors;
  const Format format = parse_format(args.output, errors);
  KernelsMeasured report;
  std::vector<std::string> notes;
  const KernelsPlan plan = understand(args, notes, errors);
  if (!errors.empty()) return refuse(session, errors);

  std::optional<Progress> progress(std::in_place, session, plan.cases.size());
  KernelsSink sink;
  sink.system = [&](const KernelsMeasured& system) { report = system; };
  sink.begin = [&](const KernelCase& what) { progress->begin(what.text()); };
  sink.row = [&](const MeasuredKernel& row) {
    report.rows.push_back(row);
    return !Interrupts::came();
  };
  sink.note = [&](const std::string& note) { report.notes.push_back(note); };
  const Interrupts interrupts;
  const MeasureOutcome outcome = measure_kernels(plan, sink);
  progress.reset();
  report.system = args.system;
  report.notes.insert(report.notes.begin(), notes.begin(), notes.end());
  report.complete = outcome.ending == Ending::finished;
  report.problems = outcome.problems;

  for (const std::string& problem : outcome.problems)
    session.err << to_text({{{outcome.ending == Ending::lacking ? "this machine" : "measurement"}, problem, {}}})
                << std::flush;
  if (outcome.ending == Ending::lacking && report.rows.empty()) return Exit::lacking;
  if (report.rows.empty()) {
    for (const std::string& note : report.notes) session.err << "note: " << note << '\n';
    session.err << to_text(
        {{{"measurement"}, "nothing was measured", "expected a GPU with more memory, or smaller shapes"}});
    return Exit::gate_failed;
  }
  const Exit delivered = deliver(session, report, format, args.output);
  if (delivered != Exit::ok) return delivered;
  if (outcome.ending == Ending::stopped) return Exit::interrupted;
  return outcome.ending == Ending::finished ? Exit::ok : Exit::gate_failed;
}

}  // namespace

Command add_measure_kernels(CLI::App& parent) {
  const auto args = std::make_shared<KernelsArgs>();
  CLI::App& app = *parent.add_subcommand("kernels", "matrix products, copies and fills on a GPU here");
  app.add_option("KERNEL", args->kernels, "gemm, attention (its products), memory (copies and fills) or all")
      ->type_name("");
  const auto option = [&](const char* name, std::string& value, const char* type, const char* text) {
    app.add_option(name, value, text)->type_name(type);
  };
  app.add_option("--dtype", args->dtype,
                 "bfloat16, float16 or fp8 (gemm), of products (default: bfloat16, or as FILE.csv has them)")
      ->type_name("TYPE");
  option("--shapes", args->shapes, "FILE.csv",
         "gemm: the shapes of a kernel table (default: layers of Llama-3 8B and 70B at TP 1 to 8)");
  option("--device", args->device, "I", "number of the GPU (default: 0)");
  option("--warmup", args->warmup, "N", "calls before the clock runs (default: 3)");
  option("--repetitions", args->repetitions, "N",
         "timed, each of calls back to back for half a millisecond (default: 20)");
  option("--system", args->system, "NAME", "of the GPU, as kernel tables have it, such as h200_sxm (default: unknown)");
  add_output_options(app, args->output);
  app.footer(
      "Examples:\n"
      "  collcast measure kernels gemm --system h200_sxm --output gemm.csv\n"
      "  collcast measure kernels gemm --shapes topologies/kernels/gemm-h200.csv --output mine.csv\n"
      "  collcast validate --kernels mine.csv --topology dgx-h200\n"
      "  collcast measure kernels memory");
  return [args](const Session& session) { return run_kernels(*args, session); };
}

}  // namespace collcast::cli
