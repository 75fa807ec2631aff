/**
 * Whether this host is ten to thirty times as slow as others: a virtual machine without KVM (scripts/kernel-matrix). What
 * an attack needs to get going then takes that much longer, and so does the end of what it started; it is no less to end.
 */
export const SLOW_HOST = process.env.SANDBOX_RUN_SLOW_HOST === '1';

/** Time that something is given to happen. */
export const patience = (milliseconds: number): number => milliseconds * (SLOW_HOST ? 10 : 1);
