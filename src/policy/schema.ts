import { z } from 'zod';
import { CONTROL_IDS } from '../model/enforcement-report.ts';

const path = z
  .string()
  .min(1)
  .refine((value) => !value.includes('\0'), 'must not contain NUL');
const paths = z.array(path);
const sharing = z.enum(['private', 'host']);
const positive = z.number().int().positive();

/** A policy file: TOML, every key optional, unknown keys are errors. */
export const policyFileSchema = z.strictObject({
  profile: z.string().optional().describe('Built-in profile to start from.'),
  filesystem: z
    .strictObject({
      read: paths
        .optional()
        .describe(
          'Further paths that may be read and executed. ~ is the home directory; relative to the workspace.',
        ),
      write: paths.optional().describe('Further paths that may be written.'),
      protect: paths
        .optional()
        .describe('Further paths, relative to the workspace, that must not be written.'),
      tmp: sharing.optional().describe('private: a /tmp of its own for each command; host: the real one.'),
      home: sharing
        .optional()
        .describe('private: an empty HOME for each command; host: the real one, writable.'),
    })
    .optional(),
  network: z
    .strictObject({
      mode: z
        .enum(['off', 'open'])
        .optional()
        .describe('off: nothing outside the sandbox; open: as the host.'),
      unix_sockets: z
        .enum(['contained', 'allowed'])
        .optional()
        .describe(
          'contained: no sockets by path of the host, refusing all sockets where nothing else helps; allowed: not restricted.',
        ),
    })
    .optional(),
  environment: z
    .strictObject({
      pass: z
        .array(
          z
            .string()
            .regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/, 'must be a variable name, with * at the end at most'),
        )
        .optional()
        .describe('Further names passed on; NAME* matches any rest, except names that look like secrets.'),
      set: z
        .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), z.string())
        .optional()
        .describe('Variables with values.'),
    })
    .optional(),
  limits: z
    .strictObject({
      timeout_seconds: z.number().nonnegative().optional().describe('Wall clock of one command; 0: none.'),
      kill_grace_seconds: z.number().nonnegative().optional().describe('Between SIGTERM and SIGKILL.'),
      output_bytes: z.number().int().nonnegative().optional().describe('Kept of each output stream.'),
      processes: positive.optional().describe('RLIMIT_NPROC: processes of the user.'),
      open_files: positive.optional().describe('RLIMIT_NOFILE.'),
      file_size: positive.optional().describe('RLIMIT_FSIZE, bytes.'),
      address_space: positive.optional().describe('RLIMIT_AS, bytes per process.'),
      cpu_seconds: positive.optional().describe('RLIMIT_CPU, seconds per process.'),
      umask: z
        .string()
        .regex(/^0?[0-7]{3}$/, 'must be an octal string such as "022"')
        .optional()
        .describe('File mode creation mask, octal; the launcher’s own if it is not given.'),
    })
    .optional(),
  demand: z
    .partialRecord(z.enum(CONTROL_IDS), z.enum(['required', 'best-effort']))
    .optional()
    .describe('required: refuse to run where the control cannot be enforced.'),
});

/** A policy file after validation. */
export type PolicyFile = z.infer<typeof policyFileSchema>;
