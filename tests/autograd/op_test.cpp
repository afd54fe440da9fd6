// Every row of tests/op_cases.h against its double reference: values, gradients, broadcasting, strided inputs, empty
// and size-1 axes, composed twins, refusals.
#include "autograd/ops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>

#include "autograd/error.h"
#include "tests/evaluate.h"
#include "tests/op_cases.h"

namespace tapehead::test {
namespace {

/// Random inputs of a row, as a Real holds them.
Arrays draw(const OpCheck& check, const Shapes& shapes) {
  rng::Generator random(rng::Stream(7, rng::Purpose::check));
  Arrays x;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    x.emplace_back(shapes[i]);
    for (double& value : x.back().data) {
      const double normal = random.normal();
      value = static_cast<double>(static_cast<Real>(check.domain ? check.domain(i, normal) : normal));
    }
  }
  return x;
}

std::string describe(const OpCheck& check, const Shapes& shapes) {
  std::string s = check.name() + " of";
  for (const Shape& shape : shapes) s += " " + shape.str();
  return s;
}

const OpCase& case_of(const OpCheck& check) {
  static const std::vector<OpCase> rows = op_cases();
  for (const OpCase& row : rows)
    if (row.op == check.op && row.variant == check.variant) return row;
  throw std::out_of_range("no reference for " + check.name());
}

/// Calls f(row, its case, shapes of the inputs) for every row and each of its inputs.
template <class F>
void for_each_case(F f) {
  for (const OpCheck& check : op_checks())
    for (const Shapes& shapes : check.inputs) {
      SCOPED_TRACE(describe(check, shapes));
      f(check, case_of(check), draw(check, shapes));
    }
}

// --- the table is complete

/// Names of the functions that a header declares as "Tensor name(", outside or inside namespace composed.
std::set<std::string> declared(const std::string& header, bool composed) {
  std::ifstream file(std::string(TAPEHEAD_SOURCE_DIR) + "/autograd/" + header);
  EXPECT_TRUE(file) << header;
  std::set<std::string> names;
  bool inside = false;
  const std::regex declaration(R"(^Tensor (\w+)\()");
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (line == "namespace composed {") inside = true;
    if (line == "}  // namespace composed") inside = false;
    if (inside == composed && std::regex_search(line, match, declaration)) names.insert(match[1]);
  }
  return names;
}

TEST(OpTable, HasARowForEveryDeclaredOp) {
  std::set<std::string> ops = declared("ops.h", false), rows{"detach"};  // detach: tests/autograd/tape_test.cpp
  ops.merge(declared("attention.h", false));
  for (const OpCheck& check : op_checks()) rows.insert(check.op);
  EXPECT_EQ(ops, rows);
  EXPECT_GT(ops.size(), 30u);
}

TEST(OpTable, ChecksEveryComposedTwin) {
  std::set<std::string> twins = declared("ops.h", true), rows;
  twins.merge(declared("attention.h", true));
  for (const OpCheck& check : op_checks())
    if (check.twin) rows.insert(check.op);
  EXPECT_EQ(twins, rows);
}

TEST(OpTable, HasOneReferenceForEachCheck) {
  std::multiset<std::string> checks, cases;
  for (const OpCheck& check : op_checks()) checks.insert(check.name());
  for (const OpCase& row : op_cases()) cases.insert(row.variant.empty() ? row.op : row.op + ", " + row.variant);
  EXPECT_EQ(checks, cases);
  EXPECT_EQ(std::set(cases.begin(), cases.end()).size(), cases.size()) << "two rows have one name";
}

TEST(OpTable, HasAnEmptyAndASizeOneAxisForEveryOp) {
  std::map<std::string, std::set<Index>> sizes;
  for (const OpCheck& check : op_checks())
    for (const Shapes& shapes : check.inputs)
      for (const Shape& shape : shapes)
        for (int axis = 0; axis < shape.rank(); ++axis) sizes[check.op].insert(shape[axis]);
  for (const auto& [op, seen] : sizes) {
    EXPECT_TRUE(seen.contains(0) || op == "mse") << op;  // the mean over nothing is not defined
    EXPECT_TRUE(seen.contains(1)) << op;
  }
}

// --- what each row says

TEST(Ops, ComputeTheValueOfTheReference) {
  for_each_case([](const OpCheck& check, const OpCase& row, const Arrays& x) {
    expect_near({evaluate(check.run, x, Layout::packed).y}, {row.reference(x)}, kValueTolerance, "y");
  });
}

TEST(Ops, ComputeTheGradientOfTheReference) {
  for_each_case([](const OpCheck& check, const OpCase& row, const Arrays& x) {
    const Outcome out = evaluate(check.run, x, Layout::packed);
    expect_near(out.grads, slopes(row.reference, x, out.seed), kGradTolerance, "gradient of input");
  });
}

TEST(Ops, TakeStridedInputs) {
  for_each_case([](const OpCheck& check, const OpCase&, const Arrays& x) {
    const Outcome packed = evaluate(check.run, x, Layout::packed), strided = evaluate(check.run, x, Layout::strided);
    expect_near({strided.y}, {packed.y}, kValueTolerance, "y");
    expect_near(strided.grads, packed.grads, kDouble ? 1e-12 : 1e-4, "gradient of input");
  });
}

TEST(Ops, AgreeWithTheirComposedTwins) {
  for_each_case([](const OpCheck& check, const OpCase&, const Arrays& x) {
    if (!check.twin) return;
    for (const Layout layout : {Layout::packed, Layout::strided}) {
      const Outcome fused = evaluate(check.run, x, layout), composed = evaluate(check.twin, x, layout);
      expect_near({fused.y}, {composed.y}, kValueTolerance, "y");
      expect_near(fused.grads, composed.grads, kDouble ? 1e-11 : 1e-4, "gradient of input");
    }
  });
}

TEST(Ops, PassTheGradientCheck) {
  for (const OpCheck& check : op_checks()) {
    const GradcheckResult result = gradcheck(check);
    EXPECT_TRUE(result.passed) << result.message;
  }
}

TEST(Ops, RefuseWrongShapesAndRecordNothing) {
  for (const OpCheck& check : op_checks())
    for (const Wrong& wrong : case_of(check).wrong) {
      SCOPED_TRACE(describe(check, wrong.inputs));
      Tape tape;
      std::vector<Tensor> inputs;
      for (const Shape& shape : wrong.inputs)
        inputs.push_back(tape.variable(shape, std::vector<Real>(static_cast<std::size_t>(shape.numel()), 1)));
      const std::size_t nodes = tape.size();
      try {
        const Tensor y = (wrong.run ? wrong.run : check.run)(tape, inputs);
        ADD_FAILURE() << "accepted, result " << y.shape().str();
      } catch (const ShapeError& error) {
        const std::string line = error.what();
        EXPECT_TRUE(line.starts_with("[" + check.op + "] ")) << line;
        std::vector<std::string> says = wrong.says;
        if (says.empty())
          for (const Shape& shape : wrong.inputs) says.push_back(shape.str());
        for (const std::string& said : says) EXPECT_NE(line.find(said), std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      }
      EXPECT_EQ(tape.size(), nodes) << "a refused op left nodes on the tape";
    }
}

}  // namespace
}  // namespace tapehead::test
