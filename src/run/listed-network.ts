// What a listed network and published ports need, with their libraries. In dist/ it is in a part of its own
// (scripts/build-parts.mjs): most commands need nothing of it.

export { readRules } from '../policy/index.ts';
export { hostsOfTool, listedSockets } from '../workspace/index.ts';
export { createBroker } from './network/broker.ts';
export { PublishedPorts, wishedPorts } from './network/published-ports.ts';
