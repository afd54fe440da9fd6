// Every row of tests/op_cases.h against its double reference: values, gradients, broadcasting, strided inputs, empty
// and size-1 axes, composed twins, refusals.
#include "autograd/ops.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <regex>
#include <set>

#include "autograd/error.h"
#include "tests/op_cases.h"

namespace tapehead::test {
namespace {

constexpr bool kDouble = sizeof(Real) == 8;
constexpr double kValueTolerance = kDouble ? 1e-13 : 1e-5;
constexpr double kGradTolerance = kDouble ? 1e-9 : 1e-4;  // in double the differences themselves reach no further

enum class Layout { packed, strided };

struct Outcome {
  Array y{Shape{}};
  std::vector<double> seed;  // s of L = <s, y>
  Arrays grads;              // dL/dx
};

Array as_array(const Shape& shape, const std::vector<Real>& values) {
  Array a(shape);
  a.data.assign(values.begin(), values.end());
  return a;
}

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

std::vector<Real> as_reals(const Array& x) { return {x.data.begin(), x.data.end()}; }

/// x as a view into a larger variable with its axes in reverse order; the gaps hold NaN, which no op may read.
Tensor strided_variable(Tape& tape, const Array& x) {
  const int rank = x.shape.rank();
  Shape larger{2};
  if (rank > 0) larger = x.shape;
  for (int axis = 0; axis < rank; ++axis) larger = larger.with(axis, x.shape[rank - 1 - axis] + 1);
  const Strides base = larger.row_major();
  Strides strides{};
  Index offset = rank == 0 ? 1 : 0;  // the first index of every axis is a gap
  for (int axis = 0; axis < rank; ++axis) {
    strides[static_cast<std::size_t>(axis)] = base[static_cast<std::size_t>(rank - 1 - axis)];
    offset += strides[static_cast<std::size_t>(axis)];
  }
  std::vector<Real> values(static_cast<std::size_t>(larger.numel()), std::numeric_limits<Real>::quiet_NaN());
  for (Index i = 0; i < x.shape.numel(); ++i) {
    Index at = offset;
    const Position p = position(x.shape, i);
    for (std::size_t axis = 0; axis < p.size(); ++axis) at += p[axis] * strides[axis];
    values[static_cast<std::size_t>(at)] = static_cast<Real>(x[i]);
  }
  return tape.view("strided", tape.variable(larger, values), x.shape, strides, offset);
}

Outcome evaluate(const GradcheckFunction& f, const Arrays& x, Layout layout) {
  Tape tape;
  std::vector<Tensor> inputs;
  for (const Array& a : x)
    inputs.push_back(layout == Layout::strided ? strided_variable(tape, a) : tape.variable(a.shape, as_reals(a)));
  const Tensor y = f(tape, inputs);
  Outcome out;
  out.y = as_array(y.shape(), y.values());

  const rng::Stream random(8, rng::Purpose::check);
  for (Index i = 0; i < y.numel(); ++i)
    out.seed.push_back(static_cast<Real>(random.normal(static_cast<std::uint64_t>(i))));
  Tensor loss = tape.result("weighted sum", {}, {y});
  *loss.value() = 0;
  tape.on_backward(loss, [y, s = out.seed.data()]() mutable {
    Real* dy = y.grad_buffer();
    for_each_run(y.shape(), y.strides(), [&](Index offset, Index count, Index stride) {
      for (Index i = 0; i < count; ++i) dy[offset + i * stride] += static_cast<Real>(*s++);
    });
  });
  for (const Tensor& input : inputs) input.grad_buffer();  // zeros where nothing flows
  tape.backward(loss);
  for (std::size_t i = 0; i < x.size(); ++i) {
    out.grads.push_back(as_array(x[i].shape, inputs[i].grads()));
    if (layout == Layout::packed) continue;
    double whole = 0, seen = 0;
    for (Real g : tape.at(inputs[i].node().owner).grads()) whole += std::abs(static_cast<double>(g));
    for (double g : out.grads[i].data) seen += std::abs(g);
    EXPECT_NEAR(whole, seen, 1e-5 * (1 + seen)) << "a gap of input " << i << " received a gradient";
  }
  return out;
}

void expect_near(const Arrays& actual, const Arrays& expected, double tolerance, const std::string& what) {
  double scale = 1;
  for (const Array& a : expected)
    for (double value : a.data) scale = std::max(scale, std::abs(value));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    ASSERT_EQ(actual[k].shape.str(), expected[k].shape.str()) << what << ' ' << k;
    for (Index i = 0; i < expected[k].shape.numel(); ++i)
      ASSERT_NEAR(actual[k][i], expected[k][i], tolerance * scale)
          << what << ' ' << k << " at element " << i << " of " << expected[k].shape.str();
  }
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
  for_each_case([](const OpCheck& check, const OpCase& row, const Arrays& x) {
    const Outcome out = evaluate(check.run, x, Layout::strided);
    expect_near({out.y}, {row.reference(x)}, kValueTolerance, "y");
    expect_near(out.grads, slopes(row.reference, x, out.seed), kGradTolerance, "gradient of input");
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
        for (const Shape& shape : wrong.inputs)
          if (wrong.says.empty()) EXPECT_NE(line.find(shape.str()), std::string::npos) << line;
        for (const std::string& said : wrong.says) EXPECT_NE(line.find(said), std::string::npos) << line;
        EXPECT_EQ(line.find('\n'), std::string::npos) << line;
      }
      EXPECT_EQ(tape.size(), nodes) << "a refused op left nodes on the tape";
    }
}

}  // namespace
}  // namespace tapehead::test
