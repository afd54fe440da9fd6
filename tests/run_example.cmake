# Runs the lesson PROGRAM and compares what it prints with the file EXPECTED.
# cmake -DPROGRAM=... -DEXPECTED=... -P run_example.cmake
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed COMMAND_ERROR_IS_FATAL ANY)
file(READ ${EXPECTED} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "expected:\n${expected}\nprinted:\n${printed}")
endif()
