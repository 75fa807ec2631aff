// What a listed network needs, with its libraries. In dist/ it is in a part of its own
// (scripts/build-parts.mjs): a command whose network is off or open needs nothing of it.

export { readRules } from '../policy/index.ts';
export { hostsOfTool, listedSockets } from '../workspace/index.ts';
export { createBroker } from './network/broker.ts';
