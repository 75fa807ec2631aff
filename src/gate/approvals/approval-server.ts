/** A running server. */
export interface ApprovalServer {
  /** Where it can be reached: a path or an address. */
  readonly address: string;
  /** Ends it and every connection. */
  close(): Promise<void>;
}
