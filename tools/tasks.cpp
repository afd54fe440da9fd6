// tapehead tasks: what can be learned here, with an example worked out.
#include <fmt/format.h>

#include "data/task.h"
#include "tools/command.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace {

// Which source each counted target token is answered from: "target 1 '7' from source 0 'c7'".
std::string ideal_lines(const Task& task, const Example& example) {
  const Vocabulary& names = task.vocabulary();
  std::string text;
  for (std::size_t m = 0; m < example.target.size(); ++m) {
    const std::int32_t from = example.link[m];
    if (from >= 0)
      text += fmt::format("    target {}:{} is read from source {}:{}\n", m, names[example.target[m]], from,
                          names[example.source[static_cast<std::size_t>(from)]]);
  }
  return text;
}

std::string describe(const Task& task, const Example& example) {
  const Vocabulary& names = task.vocabulary();
  std::string text =
      fmt::format("{}: {}\n\n  example\n    {} {} {}\n\n  ideal attention\n{}\n  settings (--set data.NAME=VALUE)\n",
                  task.name(), task.summary(), names.decode(example.source), names[task.separator()],
                  names.decode(example.target), ideal_lines(task, example));
  for (const TaskKnob& knob : task.knobs())
    text += fmt::format("    data.{:<10} {:>4}   {} to {}: {}\n", knob.name, knob.value, knob.minimum, knob.maximum,
                        knob.help);
  return text + fmt::format("\n  {} tokens; learn it with: tapehead train {}\n", names.size(), task.name());
}

void run_tasks(const std::string& name, Command& command) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  if (!name.empty()) {
    const std::unique_ptr<Task> task = make_task(name);
    Example example;
    rng::Generator random(rng::Stream(1, rng::Purpose::evaluation_data));
    task->draw(random, example);
    command.say(describe(*task, example));
    all.push_back({{"name", name}, {"summary", task->summary()}});
  } else {
    for (const TaskEntry& entry : tasks()) {
      const std::unique_ptr<Task> task = entry.make({});
      command.say(fmt::format("{:<10} {}\n", entry.name, task->summary()));
      all.push_back({{"name", entry.name}, {"summary", task->summary()}});
    }
    command.say("\ntapehead tasks NAME shows an example; tapehead train NAME learns it.\n");
  }
  command.answer({{"tasks", all}});
}

}  // namespace

void add_tasks(Options& options, Command& command) {
  auto name = std::make_shared<std::string>();
  options.add("name", *name, "a task, to see it worked out").type("NAME");
  options.run([name, &command] { run_tasks(*name, command); });
}

}  // namespace tapehead::inline TAPEHEAD_REAL
