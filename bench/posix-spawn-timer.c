// Starts programs with posix_spawn and waits for them, as fast as a C program can: the floor of the benchmark, and a
// stopwatch for whole programs that owes nothing to Node.
//
// Reads lines from descriptor 3, "COUNT<TAB>PROGRAM<TAB>ARGUMENT...", and answers each on descriptor 4 with COUNT
// durations in nanoseconds, negative ones where the program failed. The programs inherit descriptors 0 to 2.
// COUNT 0, or nothing to do for a long time, ends it.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static const unsigned kMaxIdleSeconds = 900;

static long long Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(void) {
  fcntl(3, F_SETFD, FD_CLOEXEC);
  fcntl(4, F_SETFD, FD_CLOEXEC);
  FILE* questions = fdopen(3, "r");
  FILE* answers = fdopen(4, "w");
  if (questions == NULL || answers == NULL) return 2;
  char* line = NULL;
  size_t size = 0;
  alarm(kMaxIdleSeconds);
  while (getline(&line, &size, questions) > 0) {
    line[strcspn(line, "\n")] = 0;
    char* rest = line;
    const int count = atoi(strsep(&rest, "\t"));
    if (count == 0) break;
    char* arguments[64];
    int length = 0;
    while (rest != NULL && length < 63) arguments[length++] = strsep(&rest, "\t");
    arguments[length] = NULL;
    for (int i = 0; i < count; ++i) {
      const long long begin = Now();
      pid_t pid;
      int status = -1;
      if (posix_spawnp(&pid, arguments[0], NULL, NULL, arguments, environ) == 0) waitpid(pid, &status, 0);
      const long long duration = Now() - begin;
      fprintf(answers, "%lld ", status == 0 ? duration : -duration);
    }
    fputs("\n", answers);
    fflush(answers);
    alarm(kMaxIdleSeconds);
  }
  return 0;
}
