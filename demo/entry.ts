import type { ClaimRecord } from "../src/users/client/index.ts";

/** A claimed name with its subject and its source. */
export type Claim = Pick<ClaimRecord, "bucket" | "subject" | "source">;

export type Kind = "user" | "group" | "project";

/** A name in a cell's database: a route, and for a person also a user with the same name. */
export interface Entry {
  kind: Kind;
  name: string;
  routeId: number;
  /** Only people have one. */
  userId: number | undefined;
}

const subjectTypes = { user: "USER", group: "NAMESPACE", project: "PROJECT" } as const satisfies Record<
  Kind,
  string
>;

/**
 * Returns the claims of an entry. A person's name is claimed as a username and as a route in one batch, so
 * that the cell gets both or neither.
 */
export function claimsOf({ kind, name, routeId, userId }: Entry): Claim[] {
  const subject = { type: subjectTypes[kind], id: String(userId ?? routeId) };
  const route: Claim = {
    bucket: { type: "ROUTES", value: name },
    subject,
    source: { type: "RAILS_TABLE_ROUTES", id: String(routeId) },
  };
  if (userId === undefined) return [route];
  const user: Claim = {
    bucket: { type: "USERNAMES", value: name },
    subject,
    source: { type: "RAILS_TABLE_USERS", id: String(userId) },
  };
  return [route, user];
}
