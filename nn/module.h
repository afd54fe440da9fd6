// What a module is: a plain struct of parameters, sizes and other modules, with a const operator() that records its
// computation and one traversal:
//
//   template <class V> void visit(V& v) const { v("weight", weight); v("bias", bias); }
//
// Names, counts, optimizer groups, saving and loading all come from that traversal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/parameter.h"

namespace tapehead::inline TAPEHEAD_REAL {

namespace detail {
template <class F>
struct PathVisitor {
  std::string path;  // "" or "blocks.0."
  F& f;

  void operator()(const char* name, const Parameter& p) {
    if (p) f(path + name, p);
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& member) {
    if (member) (*this)(name, *member);
  }
  template <class T>
  void operator()(const char* name, const std::vector<T>& members) {
    for (std::size_t i = 0; i < members.size(); ++i)
      (*this)((std::string(name) + '.' + std::to_string(i)).c_str(), members[i]);
  }
  template <class M>
  void operator()(const char* name, const M& module) {
    PathVisitor inner{path + name + '.', f};
    module.visit(inner);
  }
};
}  // namespace detail

/// Calls f(dotted name, parameter) for every parameter, in order; a tied one once for each of its names.
template <class M, class F>
void for_each_parameter(const M& module, F f) {
  detail::PathVisitor<F> visitor{"", f};
  module.visit(visitor);
}

struct NamedParameter {
  std::string name;
  Parameter parameter;
};

/// Every parameter once, under its first name: what is counted, stepped and stored.
template <class M>
std::vector<NamedParameter> unique_parameters(const M& module) {
  std::vector<NamedParameter> unique;
  for_each_parameter(module, [&](const std::string& name, const Parameter& p) {
    for (const NamedParameter& known : unique)
      if (known.parameter == p) return;
    unique.push_back({name, p});
  });
  return unique;
}

/// Numbers learned, each counted once however many modules share it.
template <class M>
Index parameter_count(const M& module) {
  Index count = 0;
  for (const NamedParameter& p : unique_parameters(module)) count += p.parameter.shape.numel();
  return count;
}

}  // namespace tapehead::inline TAPEHEAD_REAL
