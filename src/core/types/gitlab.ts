import type { TypesDocument } from "./document.ts";

/**
 * The types of a deployment that has declared none. Names and numbers are those of GitLab's Topology Service
 * protobuf (`claims/v1`). The protobuf's UNSPECIFIED (0) is refused everywhere and has no entry.
 */
export const gitlabTypes = {
  bucket_types: {
    ROUTES: { number: 1, form: "path" },
    ORGANIZATION_PATH: { number: 2, form: "path" },
    REDIRECT_ROUTES: { number: 3, form: "path" },
    USERNAMES: { number: 4 },
    EMAILS: { number: 5, form: "email", script: "any" },
    PROJECT_IDS: { number: 6, script: "any" },
    USER_IDS: { number: 10, script: "any" },
  },
  subject_types: {
    ORGANIZATION: { number: 1 },
    GROUP: { number: 2 },
    PROJECT: { number: 3 },
    USER: { number: 4 },
  },
  source_types: {
    RAILS_TABLE_USERS: { number: 1 },
    RAILS_TABLE_EMAILS: { number: 2 },
    RAILS_TABLE_ROUTES: { number: 3 },
    RAILS_TABLE_PROJECTS: { number: 4 },
    RAILS_TABLE_GROUPS: { number: 5 },
    RAILS_TABLE_ORGANIZATIONS: { number: 6 },
    RAILS_TABLE_REDIRECT_ROUTES: { number: 7 },
  },
} as const satisfies TypesDocument;
