// docs/config.md, written from the table of settings.
#include "train/config_keys.h"

namespace tapehead {

namespace {

std::string row(const ConfigKey& key) {
  std::string value = key.text();
  std::erase(value, '"');
  std::string text = "| `" + key.name + "` | " + value + " | ";
  text += key.is_number() ? key.type().substr(2) + " in " + key.range.text() : key.type();
  return text + " | " + key.unit + " | " + key.help + " |\n";
}

constexpr const char* kHead = "| key | default | value | unit | meaning |\n|---|---|---|---|---|\n";

}  // namespace

std::string config_reference() {
  std::string text =
      "# Settings\n\n"
      "Written from `train/config_keys.cpp`; a test compares it. `--set model.heads=2` on the command line, or a TOML\n"
      "file for `--config`: `task` and `seed` at its top, then the tables `[model]`, `[train]` and `[data]`. A run's\n"
      "`config.toml` is such a file. A bracket includes its end of a range, a parenthesis leaves it out.\n"
      "A layer that differs from the others has a table `[model.layer.N]`, N from 0 (or `--set "
      "model.layer.1.heads=2`),\n"
      "with `heads kv_heads key_width value_width feed_forward activation scoring scale temperature softcap window "
      "rank`.\n"
      "A list is written `[\"q=k\", \"heads\"]`, on the command line `q=k,heads`.\n"
      "A task has settings of its own, and its own defaults for some of the others: see below.\n\n";
  Config config;
  text += kHead;
  const std::vector<ConfigKey> general = config_keys(config);
  for (const ConfigKey& key : general) text += row(key);
  std::vector<std::string> names;
  for (const TaskEntry& entry : tasks()) names.push_back(entry.name);
  names.emplace_back(kTextTask);
  for (const std::string& name : names) {
    Config of_task = Config::defaults(name);
    text += "\n## " + name + "\n\n" + kHead;
    for (const ConfigKey& key : config_keys(of_task))
      if (key.name.starts_with("data.") || key.text() != find_key(general, key.name)->text()) text += row(key);
  }
  return text;
}

}  // namespace tapehead
