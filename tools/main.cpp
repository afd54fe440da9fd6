// The command `tapehead`. The library exists twice, in float and in double: --double picks the second for any verb.
#include <fcntl.h>

#include <cstdlib>
#include <cstring>

namespace tapehead::f32 {
int run_command(int argc, char** argv);
}
namespace tapehead::f64 {
int run_command(int argc, char** argv);
}

namespace {

// A thread that waits at a barrier spins for a while before it sleeps; libgomp's default spins for so long that on a
// busy machine two threads are many times slower than one. It reads this when it is loaded, before main().
void spin_briefly(int, char**, char**) { setenv("GOMP_SPINCOUNT", "10000", 0); }
__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)(int, char**, char**) = spin_briefly;

// With a standard stream closed, the next file opened would take its place, and progress would be written into it.
// Read-only, so that writing to it still fails.
void keep_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDONLY) != fd) std::_Exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  bool wide = argc > 1 && std::strcmp(argv[1], "gradcheck") == 0;  // differences need double
  for (int i = 1; i < argc; ++i) wide |= std::strcmp(argv[i], "--double") == 0;
  return wide ? tapehead::f64::run_command(argc, argv) : tapehead::f32::run_command(argc, argv);
}
