// Shapes: sizes, axes, strides, broadcasting and what they refuse.
#include "autograd/shape.h"

#include <gtest/gtest.h>

#include "autograd/error.h"
#include "tests/errors.h"

namespace tapehead {
namespace {

using test::error_of;

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}).numel(), 24);
  EXPECT_EQ((Shape{2, 0, 4}).numel(), 0);
  EXPECT_EQ((Shape{1, 1}).rank(), 2);
}

TEST(Shape, CountsNegativeAxesFromTheEnd) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s[0], 2);
  EXPECT_EQ(s[-1], 4);
  EXPECT_EQ(s[-3], 2);
  EXPECT_EQ(error_of<ShapeError>([&] { s[3]; }), "[shape] no axis 3 in [2, 3, 4]. Hint: axes are -3 to 2.");
  EXPECT_NE(error_of<ShapeError>([&] { s[-4]; }), "");
  EXPECT_NE(error_of<ShapeError>([&] { Shape{}[0]; }), "");
}

TEST(Shape, ChangesOneAxis) {
  const Shape s{2, 3, 4};
  EXPECT_EQ(s.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(s.with(-1, 0), (Shape{2, 3, 0}));
  EXPECT_EQ(s.without(0), (Shape{3, 4}));
  EXPECT_EQ(s.without(-1), (Shape{2, 3}));
  EXPECT_EQ(s.inserted(0, 9), (Shape{9, 2, 3, 4}));
  EXPECT_EQ(s.inserted(-1, 9), (Shape{2, 3, 4, 9}));
  EXPECT_EQ(s.inserted(1, 9), (Shape{2, 9, 3, 4}));
  EXPECT_EQ(s.first(2), (Shape{2, 3}));
  EXPECT_EQ(s, (Shape{2, 3, 4}));
  EXPECT_NE(s, (Shape{2, 3}));
}

TEST(Shape, HasRowMajorStrides) {
  const Strides strides = Shape{2, 3, 4}.row_major();
  EXPECT_EQ(strides[0], 12);
  EXPECT_EQ(strides[1], 4);
  EXPECT_EQ(strides[2], 1);
}

TEST(Shape, RefusesAbsurdSizes) {
  EXPECT_NE(error_of<ShapeError>([] { Shape{-1}; }).find("-1"), std::string::npos);
  EXPECT_NE(error_of<ShapeError>([] { Shape{1, 1, 1, 1, 1, 1, 1}; }).find("7 axes"), std::string::npos);
  const Index huge = Index{1} << 32;
  EXPECT_NE(error_of<ShapeError>([&] { Shape{huge, huge}; }), "") << "2^64 is 0 modulo 2^64";
  EXPECT_NE(error_of<ShapeError>([&] { Shape{0, huge, huge}; }), "") << "an empty axis hides nothing";
}

TEST(Broadcast, FollowsNumPy) {
  EXPECT_EQ(broadcast({2, 3}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({2, 1}, {3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({5, 1, 4}, {3, 1}), (Shape{5, 3, 4}));
  EXPECT_EQ(broadcast({1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast({2, 1}, {0}), (Shape{2, 0}));
  EXPECT_FALSE(broadcast({2, 3}, {2, 4}));
  EXPECT_FALSE(broadcast({2}, {0}));
}

}  // namespace
}  // namespace tapehead
