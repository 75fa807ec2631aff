import { z } from 'zod';
import { BACKEND_IDS } from '../model/backend.ts';
import { AUTONOMIES } from '../model/decision.ts';
import { CONTROL_IDS } from '../model/enforcement-report.ts';
import { APPROVERS, MAX_OUTPUT_BYTES } from '../model/policy.ts';

const path = z
  .string()
  .min(1)
  .refine((value) => !value.includes('\0'), 'must not contain NUL');
const paths = z.array(path);
const sharing = z.enum(['private', 'host']);
const positive = z.number().int().positive();

const program = z
  .string()
  .regex(/^[^\s/][^\s]*$|^\/[^\s]+$/, 'must be the name of a program, or an absolute path without blanks');

const ruleSchema = z.strictObject({
  program: z
    .string()
    .regex(/^[^\s/]+$/, 'must be the name of a program; * stands for anything')
    .describe('Name of the program, without a directory; * stands for anything.'),
  words: z
    .array(z.string().min(1))
    .optional()
    .describe('Patterns that words of the command must match in this order; others may stand between.'),
  verdict: z.enum(['ask', 'deny']).describe('What becomes of a command that matches.'),
  reason: z.string().min(1).optional().describe('Said to whoever is refused or asked.'),
  match: z
    .array(z.string().min(1))
    .optional()
    .describe('Commands that the rule must match; tried when the policy is loaded.'),
  not_match: z
    .array(z.string().min(1))
    .optional()
    .describe('Commands that the rule must not match; tried when the policy is loaded.'),
});

/** A rule as it stands in a policy file. */
export type RuleInFile = z.infer<typeof ruleSchema>;

const rules = z.array(ruleSchema);

/** A policy file: TOML, every key optional, unknown keys are errors. */
export const policyFileSchema = z.strictObject({
  profile: z.string().optional().describe('Built-in profile to start from.'),
  security: z
    .strictObject({
      autonomy: z
        .enum(AUTONOMIES)
        .optional()
        .describe(
          'readonly: only what reads is run; supervised: medium and high risk need approval; contained: what leaves the sandbox needs approval, and work in the workspace that nothing would bring back (as supervised where the kernel does not hold files and network); autonomous: nothing is asked for risk. What is refused stays refused. Default: contained.',
        ),
      max_actions_per_hour: z
        .number()
        .int()
        .nonnegative()
        .optional()
        .describe('Commands in any 3,600 seconds; 0 blocks everything; no limit if it is not given.'),
      workspace_dir: z
        .string()
        .regex(/^(\/|~(\/|$))/, 'must be absolute or begin with ~/')
        .optional()
        .describe('The workspace where none is named; the current directory if it is not given.'),
    })
    .optional(),
  commands: z
    .strictObject({
      allow: z
        .array(program)
        .optional()
        .describe(
          'The only programs that may run, by name or absolute path; every program if it is not given.',
        ),
      permit_dangerous: z
        .array(program)
        .optional()
        .describe('Programs that are refused as dangerous otherwise, such as docker or systemctl.'),
      rules: rules.optional().describe('Rules of your own, which ask about commands or refuse them.'),
    })
    .optional(),
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
      secret: paths
        .optional()
        .describe(
          'Paths whose content must not leave: a command that names one, or what is beneath it, taints its session. ~ is the home directory; relative to the workspace.',
        ),
      tmp: z
        .enum(['auto', 'private', 'host'])
        .optional()
        .describe(
          'auto (default): a /tmp of its own for each command, and on hosts without namespaces the real one, beside a private $TMPDIR; private: of its own or none; host: the real one.',
        ),
      home: sharing
        .optional()
        .describe('private: an empty HOME for each command; host: the real one, writable.'),
      cache: z
        .enum(['workspace', 'private'])
        .optional()
        .describe(
          'workspace: what tools cache in a private HOME (~/.cache, ~/.npm, …) is kept for the next commands in this workspace, where they can write it; private: it goes with the command.',
        ),
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
      output_bytes: z
        .number()
        .int()
        .nonnegative()
        .max(MAX_OUTPUT_BYTES)
        .optional()
        .describe('Kept of each output stream: its beginning and its end. At most 128 MiB.'),
      output_head_bytes: z
        .number()
        .int()
        .nonnegative()
        .max(MAX_OUTPUT_BYTES)
        .optional()
        .describe('Of these, kept of its beginning; half if it is not given.'),
      idle_timeout_seconds: z
        .number()
        .nonnegative()
        .optional()
        .describe('How long a command may write no output; 0: for ever.'),
      memory: positive
        .optional()
        .describe(
          'Bytes of memory of a command with all that it starts; four fifths of the host’s without it.',
        ),
      processes: positive
        .optional()
        .describe('Processes and threads of a command with all that it starts. Default: 4096.'),
      cpu_seconds: positive
        .optional()
        .describe('Processor time of a command with all that it starts, seconds.'),
      tmp_bytes: positive
        .optional()
        .describe('Bytes in the private directories of a command: temporary files, home, shared memory.'),
      user_processes: positive
        .optional()
        .describe(
          'RLIMIT_NPROC: processes and threads of the user, whoever started them; not held against root.',
        ),
      open_files: positive.optional().describe('RLIMIT_NOFILE, per process.'),
      file_size: positive.optional().describe('RLIMIT_FSIZE, bytes of each file.'),
      address_space: positive.optional().describe('RLIMIT_AS, bytes per process.'),
      umask: z
        .string()
        .regex(/^0?[0-7]{3}$/, 'must be an octal string such as "022"')
        .optional()
        .describe('File mode creation mask, octal; the launcher’s own if it is not given.'),
    })
    .optional(),
  approval: z
    .strictObject({
      ask: z
        .enum(APPROVERS)
        .optional()
        .describe(
          'Who answers what the policy asks. terminal: whoever sits there; queue: sandbox-run approvals, from anywhere on this machine; nobody: what is asked is refused.',
        ),
      timeout_seconds: z
        .number()
        .positive()
        .max(86_400)
        .optional()
        .describe('How long an answer may take; after that the command is refused. Default: 300.'),
      reviewer_timeout_seconds: z
        .number()
        .positive()
        .max(600)
        .optional()
        .describe(
          'How long a reviewer, a guard or a hook may take; after that a person is asked or the command refused.',
        ),
    })
    .optional(),
  reviewer: z
    .strictObject({
      command: z
        .array(z.string().min(1))
        .min(1)
        .optional()
        .describe(
          'A program that reviews, first word an absolute path: JSON on standard input and output. It comes before a model.',
        ),
      model: z.string().min(1).optional().describe('A model that reviews, through the Messages API.'),
      base_url: z
        .url({ protocol: /^https?$/ })
        .optional()
        .describe('Where that API is. Default: that of the SDK.'),
      key_variable: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
        .optional()
        .describe('The variable of the launcher that holds the API key. Default: ANTHROPIC_API_KEY.'),
      max_tokens: positive.max(4096).optional().describe('Of the answer, thinking included. Default: 1024.'),
    })
    .optional(),
  hooks: z
    .strictObject({
      git_guard: z
        .boolean()
        .optional()
        .describe('true: git push, pull and rebase, and what amounts to them, are refused.'),
      plugins: z
        .array(
          z.strictObject({
            path: z
              .string()
              .regex(/^\//, 'must be absolute')
              .describe('An ES module outside of every workspace.'),
            sha256: z
              .string()
              .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
              .optional()
              .describe('What its content must have; without it, only its owner may be able to write it.'),
          }),
        )
        .optional()
        .describe('Asked in this order after the built-in checks; the first that refuses, refuses.'),
    })
    .optional(),
  audit: z
    .strictObject({
      enabled: z
        .boolean()
        .optional()
        .describe(
          'true: every decision and result is written to the audit trail. Not given: only what the gate server decides.',
        ),
      on_failure: z
        .enum(['refuse', 'warn'])
        .optional()
        .describe('What happens if a record cannot be written. Default: refuse, nothing runs.'),
      hmac_key_file: z
        .string()
        .regex(/^\//, 'must be absolute')
        .optional()
        .describe(
          'A file with a secret of at least 32 bytes that only its owner can read; it signs the records.',
        ),
    })
    .optional(),
  sandbox: z
    .strictObject({
      minimum: z
        .enum(BACKEND_IDS)
        .optional()
        .describe(
          'The weakest backend that may run commands. Naming one accepts what it cannot hold by its nature and the profile requires; what `demand` of a policy file requires stays required. Default: the first that holds all that is required.',
        ),
    })
    .optional(),
  demand: z
    .partialRecord(z.enum(CONTROL_IDS), z.enum(['required', 'best-effort']))
    .optional()
    .describe('required: refuse to run where the control cannot be enforced.'),
  unsafe: z
    .strictObject({
      unjudged_commands: z
        .boolean()
        .optional()
        .describe(
          'true: commands run without being judged, by hooks and guards neither; the kernel alone contains them.',
        ),
    })
    .optional(),
});

/** A policy file after validation. */
export type PolicyFile = z.infer<typeof policyFileSchema>;

/** A file inside the workspace: whoever writes the workspace writes it, so it can take away and not give. */
export const workspaceFileSchema = z.strictObject({
  security: policyFileSchema.shape.security
    .unwrap()
    .omit({ workspace_dir: true })
    .extend({
      autonomy: z
        .enum(AUTONOMIES)
        .exclude(['autonomous'])
        .optional()
        .describe('A level that is stricter than the one of the policy.'),
    })
    .strict()
    .optional(),
  commands: z
    .strictObject({
      allow: z.array(program).optional().describe('Of the allowed programs, the only ones that may run.'),
      rules: rules.optional().describe('Further rules, which ask about commands or refuse them.'),
    })
    .optional(),
  filesystem: z
    .strictObject({
      protect: paths
        .optional()
        .describe('Further paths, relative to the workspace, that must not be written.'),
      tmp: z.literal('private').optional().describe('A /tmp of its own for each command, or none.'),
      home: z.literal('private').optional().describe('An empty HOME for each command.'),
      cache: z.literal('private').optional().describe('What tools cache goes with the command.'),
    })
    .optional(),
  network: z
    .strictObject({
      mode: z.literal('off').optional().describe('Nothing outside the sandbox.'),
      unix_sockets: z.literal('contained').optional().describe('No sockets by path of the host.'),
    })
    .optional(),
  limits: policyFileSchema.shape.limits
    .unwrap()
    .omit({ umask: true, output_head_bytes: true })
    .strict()
    .optional(),
  sandbox: z
    .strictObject({
      minimum: z
        .enum(BACKEND_IDS)
        .optional()
        .describe('A weakest backend that is stronger than the one of the policy.'),
    })
    .optional(),
  demand: z
    .partialRecord(z.enum(CONTROL_IDS), z.literal('required'))
    .optional()
    .describe('Refuse to run where the control cannot be enforced.'),
});

/** A file inside the workspace after validation. */
export type WorkspaceFile = z.infer<typeof workspaceFileSchema>;
