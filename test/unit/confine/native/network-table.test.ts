import { tmpdir } from 'node:os';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { nativeRow } from '../../../../src/confine/backends/confinement-spec.ts';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import { judgeAddress, networkRules, readEntry } from '../../../../src/policy/index.ts';

const addon = loadAddon();

function confinementWith(rules: ReturnType<typeof networkRules>) {
  return addon.createConfinement({
    landlock: { handledFs: 0n, handledNet: 0n, scoped: 0n },
    ...{ rules: [], filter: new Uint8Array(), namespaces: undefined, limits: [], umask: -1 },
    treeLimits: {
      ...{ memoryBytes: 0, processes: 0, cpuMs: 0, tmpBytes: 0, idleTimeoutMs: 0 },
      ...{ cgroupParent: '', cgroupClone: false },
    },
    ...{
      temporaryParent: tmpdir(),
      memoryParent: '',
      slotDirectories: [],
      toldDirectories: [],
      groupModes: false,
      ownProcesses: false,
      refusedSockets: { inet: false, unix: false },
      seedFiles: [],
      copies: [],
    },
    ...{ slotVariables: [], processTree: 'subreaper', exitTracing: false, observed: 'nothing' },
    network: {
      addresses: rules.addresses.map(nativeRow),
      apart: rules.apart.map(({ bytes, bits }) => ({ bytes: Uint8Array.from(bytes), bits })),
      looksInside: rules.looksInside,
      sockets: [],
    },
  });
}

const entries = (kind: 'allow' | 'deny') => (texts: readonly string[]) =>
  texts.flatMap((text) => {
    const read = readEntry(text, kind);
    return 'entry' in read ? [read.entry] : [];
  });

/** Bytes that meet often: those of ranges that are special, and a few others. */
const byte = fc.constantFrom(0, 1, 10, 127, 169, 254, 255, 0x64, 0x20, 0xfe, 0x80);
const v4 = fc.tuple(byte, byte, byte, byte).map((parts) => parts.join('.'));
const group = fc.constantFrom('0', '1', '2002', 'ffff', '64', 'ff9b', '7f00', 'fe80', 'fd00', 'ec2', 'a00');
const v6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(':'));
const port = fc.constantFrom(1, 22, 80, 443, 65_535);
const entry = fc.oneof(
  fc.tuple(v4, port).map(([address, at]) => `${address}:${at}`),
  fc
    .tuple(byte, fc.constantFrom(0, 8), port)
    .map(([first, bits, at]) => `${bits === 0 ? 0 : first}.0.0.0/${bits}:${at}`),
  fc.tuple(v6, port).map(([address, at]) => `[${address}]:${at}`),
  fc.tuple(v4, port).map(([address, at]) => `${address}:${at}/udp`),
  fc.tuple(v4, port, fc.constantFrom('tls', 'http')).map(([address, at, look]) => `${address}:${at}/${look}`),
  fc.tuple(v6, port).map(([address, at]) => `[${address}]:${at}/udp`),
  fc.constantFrom(
    '[::/0]:1-65535',
    '0.0.0.0/0:1-65535',
    '[2002::/16]:80',
    'localhost:80',
    '169.254.0.0/16:80',
  ),
);
const address = fc.oneof(v4, v6).map((text) => {
  const read = readEntry(text.includes(':') ? `[${text}]:1` : `${text}:1`, 'allow');
  const [place] = 'entry' in read ? read.entry.places : [];
  return place?.kind === 'range' ? place.bytes : Array<number>(16).fill(0);
});

it('the addon says of every address what the policy says', () => {
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 5 }).map(entries('allow')),
      fc.array(entry, { maxLength: 2 }).map(entries('deny')),
      fc.array(fc.tuple(address, port, fc.constantFrom('tcp' as const, 'udp' as const)), {
        minLength: 1,
        maxLength: 30,
      }),
      (allow, deny, asked) => {
        const rules = networkRules(allow, deny);
        const confinement = confinementWith(rules);
        for (const [bytes, at, protocol] of asked) {
          const { allowed, rule } = judgeAddress(rules.addresses, bytes, at, protocol);
          const said = addon.judgeAddress(confinement, Uint8Array.from(bytes), at, protocol === 'udp');
          expect([bytes, at, protocol, said]).toEqual([bytes, at, protocol, { allowed, rule: rule ?? '' }]);
        }
        addon.closeConfinement(confinement);
      },
    ),
    { numRuns: 300 },
  );
});
