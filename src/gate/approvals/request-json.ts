import type { StoredApproval, StoredGrant } from '../state/state.ts';

/** A request as other programs get it. */
export function requestAsJson({ id, state, createdAt, expiresAt, request }: StoredApproval) {
  return { id, state, createdAt, expiresAt, ...request };
}

/** A grant as other programs get it. */
export function grantAsJson({ id, scope, session, grantedAt, grantedBy, request }: StoredGrant) {
  return {
    id,
    scope,
    grantedAt,
    grantedBy,
    request: { ...request },
    ...(session === undefined ? {} : { session }),
  };
}
