import { table } from "../../../src/cell/pg/index.ts";

/** The tables of the conformance suite, for drivers that know no schema. */
export const tables = {
  users: table("users"),
  emails: table("emails"),
  organizations: table("organizations"),
  redirects: table("redirects"),
  projects: table("projects"),
  accounts: table("accounts"),
  teams: table("teams"),
};
