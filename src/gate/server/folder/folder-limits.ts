/** What a container may use up of a folder server. */
export interface FolderLimits {
  /** Requests that are decided at a time; the others wait in the folder. */
  readonly pending: number;
  /** A request that lies there for longer is nobody's. */
  readonly requestAgeMs: number;
  /** For a client to give a file its name. */
  readonly temporaryMs: number;
  readonly responseAgeMs: number;
  readonly responses: number;
  /** Between two looks at the folder where nothing tells that something came. */
  readonly pollMs: number;
  /** After each walk over the folder, at least. */
  readonly pauseMs: number;
  /** False: only polls. */
  readonly watch: boolean;
}

export const FOLDER_LIMITS: FolderLimits = {
  pending: 64,
  requestAgeMs: 300_000,
  temporaryMs: 60_000,
  responseAgeMs: 3_600_000,
  responses: 4096,
  pollMs: 1_000,
  pauseMs: 5,
  watch: true,
};
