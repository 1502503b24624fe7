import type { Record as ClaimRecord } from "../src/client/index.ts";

/** A name, whom it is about, and which row it came from. */
export type Claim = Pick<ClaimRecord, "bucket" | "subject" | "source">;

export type Kind = "user" | "group" | "project";

/** What a cell keeps under a name: a route, and for a person a user as well, with the same name. */
export interface Entry {
  kind: Kind;
  name: string;
  routeId: number;
  /** Of people only. */
  userId: number | undefined;
}

const subjectTypes = { user: "USER", group: "GROUP", project: "PROJECT" } as const satisfies Record<
  Kind,
  string
>;

/**
 * The claims that belong to an entry. A person's name is taken as a username and as a route, together or not
 * at all.
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
