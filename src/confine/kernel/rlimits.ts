/** RLIMIT_* numbers, the same on x86-64 and arm64 (include/uapi/asm-generic/resource.h). */
export const RLIMIT_NUMBERS = {
  cpu: 0,
  fsize: 1,
  core: 4,
  nproc: 6,
  nofile: 7,
  as: 9,
} as const;
