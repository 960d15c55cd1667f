// Tasks with given times: streams in order, waits between them; the closed form is the longest path.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "collcast/base/units.hpp"
#include "collcast/workload/step.hpp"
#include "workload/activity.hpp"
#include "workload/critical.hpp"
#include "workload/ratio_remedies.hpp"
#include "workload/warnings.hpp"

namespace collcast {

namespace {

/// Streams of the graph by name; with `overlap` off there is a single one.
class TaskSchedule {
 public:
  TaskSchedule(const TaskGraph& graph, Rank rank) : graph_(graph), rank_(rank) {}

  Diagnostics build() {
    for (const Task& task : graph_.tasks) add(task);
    if (graph_.tasks.empty()) wrong("there are no tasks", "expected at least one");
    return std::move(errors_);
  }

  Schedule schedule;
  std::vector<OpId> ops;
  Seconds longest{};  ///< path

 private:
  struct StreamState {
    StreamId id;
    Seconds end{};
  };

  void wrong(std::string message, std::string hint) {
    errors_.push_back({{"tasks"}, std::move(message), std::move(hint)});
  }

  void add(const Task& task) {
    if (!(task.duration >= Seconds{})) wrong("task '" + task.name + "' has a negative duration", "expected 0s or more");
    auto found = streams_.find(task.stream);
    if (found == streams_.end())
      found = streams_.emplace(task.stream, StreamState{schedule.add_stream({task.stream, rank_}), {}}).first;
    StreamState& stream = found->second;

    Seconds start = stream.end;
    std::vector<After> after;
    const auto wait = [&](const Done& done) {
      after.push_back({done.op});
      start = std::max(start, done.end);
    };
    for (const std::string& name : task.after) {
      const auto earlier = done_.find(name);
      if (earlier == done_.end())
        wrong("task '" + task.name + "' waits for '" + name + "', which no earlier task is called",
              "put it after that task");
      else
        wait(earlier->second);
    }
    if (!graph_.overlap && last_) wait(*last_);

    Work work = Delay{task.duration};
    if (task.stream == "compute") work = Compute{rank_, task.duration};
    const Done done{schedule.add(stream.id, work, after, {task.name, std::string(to_string(task.category))}),
                    start + task.duration};
    ops.push_back(done.op);
    stream.end = done.end;
    longest = std::max(longest, done.end);
    last_ = done;
    if (!done_.emplace(task.name, done).second)
      wrong("two tasks are called '" + task.name + "'", "give each its own name");
  }

  struct Done {
    OpId op;
    Seconds end{};
  };

  const TaskGraph& graph_;
  Rank rank_;
  std::map<std::string, StreamState> streams_;
  std::map<std::string, Done> done_;
  std::optional<Done> last_;
  Diagnostics errors_;
};

bool communicates(Category category) {
  using enum Category;
  return category == tp || category == pp || category == dp || category == cp || category == ep;
}

/// What all tasks of either kind take, hidden or not, and the longest that communicates.
struct TaskTimes {
  Seconds compute{}, communication{};
  const Task* longest = nullptr;
  double ratio() const { return communication > Seconds{} ? compute / communication : 0; }
};
TaskTimes times_of_tasks(const TaskGraph& graph) {
  TaskTimes times;
  for (const Task& task : graph.tasks) {
    if (!communicates(task.category)) {
      if (task.category != Category::optimizer) times.compute += task.duration;
      continue;
    }
    times.communication += task.duration;
    if (times.longest == nullptr || task.duration > times.longest->duration) times.longest = &task;
  }
  return times;
}

/// Tasks last as long as they are said to: the ratio is theirs, and overlap hides what it does not change.
std::string ratio_warning_of_tasks(const TaskGraph& graph, const TaskTimes& times, Seconds step) {
  std::string text = "tasks compute only " + workload::ratio_text(times.ratio()) +
                     " times as long as they communicate (" + format_seconds(times.compute) + " and " +
                     format_seconds(times.communication) + "), the longest in " + times.longest->name + " (" +
                     format_seconds(times.longest->duration) + "); faster links or fewer bytes, " +
                     format_seconds(times.compute / 2) +
                     " of communication at most, or more computing for each message would raise it";
  if (graph.overlap) return text;
  TaskGraph beside = graph;
  beside.overlap = true;
  TaskSchedule tasks(beside, Rank(0));
  if (!tasks.build().empty() || !(tasks.longest < step * (1 - 1e-9))) return text;
  return text + "; tasks.overlap: true would hide " + format_seconds(step - tasks.longest) + " of the step (" +
         format_seconds(tasks.longest) + ")";
}

}  // namespace

Result<StepResult> forecast_tasks(const TaskGraph& graph, const Fabric& fabric, StepTimeline* timeline) {
  TaskSchedule tasks(graph, Rank(0));
  if (Diagnostics wrong = tasks.build(); !wrong.empty()) return wrong;
  Result<Timeline> run = simulate(fabric, tasks.schedule);
  if (!run) return run.errors();

  StepResult result;
  result.estimate = tasks.longest;
  result.simulate = result.step = to_seconds(run->finish);
  result.simulated_operations = static_cast<std::int64_t>(run->ops.size());
  result.breakdown = workload::break_down(tasks.schedule, *run, tasks.ops);
  std::vector<workload::Place> places;
  for (const OpId op : tasks.ops) places.push_back({0, workload::Doing::task, static_cast<int>(op.value()), -1});
  result.critical_path = workload::critical_path_of(tasks.schedule, *run, places);
  const TaskTimes times = times_of_tasks(graph);
  result.compute_to_communication = times.ratio();
  if (workload::is_low_ratio(times.ratio()))
    result.warnings.push_back(ratio_warning_of_tasks(graph, times, result.estimate));
  if (timeline) *timeline = {std::move(tasks.schedule), std::move(run).value()};
  return result;
}

}  // namespace collcast
