// with-filter RULE,... -- PROGRAM ARGUMENT...
// Runs a program under a seccomp filter that answers some system calls with an error, as crun, Docker and
// systemd do. A rule is NUMBER=ERRNO, NUMBER[INDEX=VALUE]=ERRNO or NUMBER[INDEX&MASK]=ERRNO (an argument's
// lower half has the value, or a bit of the mask).
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct sock_filter code[4096];
static unsigned short length = 0;

static void add(unsigned short operation, unsigned value, unsigned char yes, unsigned char no) {
  if (length == sizeof(code) / sizeof(*code)) exit(99);
  code[length++] = (struct sock_filter){operation, yes, no, value};
}

static void add_rule(const char* rule) {
  unsigned number, index, value, error;
  char relation;
  if (sscanf(rule, "%u[%u%c%i]=%u", &number, &index, &relation, (int*)&value, &error) == 5) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3);
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + 8 * index, 0, 0);
    add(BPF_JMP | (relation == '&' ? BPF_JSET : BPF_JEQ) | BPF_K, value, 0, 1);
  } else if (sscanf(rule, "%u=%u", &number, &error) == 2) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
  } else {
    fprintf(stderr, "with-filter: bad rule %s\n", rule);
    exit(99);
  }
  add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error, 0, 0);
}

int main(int count, char** arguments) {
  if (count < 4 || strcmp(arguments[2], "--") != 0) return 99;
  for (char* rule = strtok(arguments[1], ","); rule != NULL; rule = strtok(NULL, ",")) add_rule(rule);
  add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
  struct sock_fprog program = {length, code};
  // A container's runtime may do it without no_new_privs, which only root can.
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
      perror("with-filter: seccomp");
      return 99;
    }
  }
  execvp(arguments[3], arguments + 3);
  perror("with-filter: exec");
  return 99;
}
