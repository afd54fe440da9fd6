// The command `tapehead`. The library exists twice, in float and in double: --double picks the second for any verb.
#include <cstring>

namespace tapehead::f32 {
int run_command(int argc, char** argv);
}
namespace tapehead::f64 {
int run_command(int argc, char** argv);
}

int main(int argc, char** argv) {
  bool wide = argc > 1 && std::strcmp(argv[1], "gradcheck") == 0;  // differences need double
  for (int i = 1; i < argc; ++i) wide |= std::strcmp(argv[i], "--double") == 0;
  return wide ? tapehead::f64::run_command(argc, argv) : tapehead::f32::run_command(argc, argv);
}
