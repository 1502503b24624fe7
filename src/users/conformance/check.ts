import type { CheckContext } from "./check-context.ts";

/** What a check needs beside the key of a cell. `wire`: the protobuf wire is to be tested. */
export type Need = "other" | "router" | "operator" | "wire";

/** Shows one thing that rules promise. */
export interface Check {
  /** Says what is checked, such as `begin/replay`. */
  id: string;
  /** Rules of docs/reference/protocol.md. `API`: a convention of docs/reference/http-api.md. */
  rules: readonly string[];
  /** A sentence about what conforms. */
  title: string;
  needs?: readonly Need[];
  /** Its time is for each history, and not for all of them. */
  isPerHistory?: boolean;
  /** @throws {Nonconformity} when the implementation does something else */
  run: (context: CheckContext) => Promise<void>;
}

/** Thrown by a check that finds that it can't tell. The report shows why. */
export class SkipError extends Error {
  override readonly name = "SkipError";
}
