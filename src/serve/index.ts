// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { queueOffer } from './queue-offer.ts';
export { connectToSession, listShells, receivedRequest, receivedTurn } from './shell-clients.ts';

// The page of approvals

export { type ApprovalServer, PAGE, serveApprovalPage } from './approvals/web/web-server.ts';

// Sockets and messages

export { fitsAddress, LONGEST_PATH } from './core/claim-path.ts';
export type { ServerConnection, Told } from './core/connect.ts';
export { Connection } from './core/connection.ts';
export { type Listener, listenForClients } from './core/listener.ts';
export { isOurs } from './core/peer.ts';

// The gate

export type { GateOutcome } from './gate/ask-gate.ts';
export type { GateAnswer, GateRequest } from './gate/gate-decider.ts';
export type { RefusedMessage } from './gate/gate-service.ts';

// The protocol

export { refusedCommand } from './protocol/params.ts';
export { CommandResult, type Question, SentTurn } from './protocol/results.ts';
export { serveSchema } from './protocol/schema.ts';

// The sandbox

export { createService, refuseReachable, type Service } from './sandbox/service.ts';

// The warm server

export type { Caller } from './warm/caller.ts';
export { type Call, listenForCalls, type Work } from './warm/calls.ts';
export { inheritedDifference, peerProcess } from './warm/peer-process.ts';
