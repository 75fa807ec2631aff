// What a listed network needs, with its libraries. In dist/ it is a file of its own with its compiled code beside it, like
// judgement.ts: a command whose network is off or open needs nothing of it.

export { listedSockets } from '../host/listed-sockets.ts';
export { hostsOfTool } from '../host/tool-hosts.ts';
export { readRules } from '../policy/network/read-rules.ts';
export { createBroker } from './network/broker.ts';
