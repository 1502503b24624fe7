import type { BucketTypeDeclaration, TypesDocument } from "./document.ts";

/** Of which client of GitLab's Topology Service the names and numbers are. */
export const GITLAB_GENERATION = "GitLab 19.4 (September 2026)";

const path = { form: "path" } as const;
const email = { form: "email", script: "any" } as const;
const exact = { script: "any", case: "exact" } as const;
/** Without leading zeros, so that `7` and `07` don't get two owners. */
const wholeNumber = { script: "any", pattern: "[1-9][0-9]{0,18}" } as const;
const domain = { form: "domain", script: "any", pattern: "([\\w-]+\\.)*[\\w-]+" } as const;
/** One part of a domain. */
const label = { form: "domain", script: "any", pattern: "[\\w-]+" } as const;
const slug = { script: "any", pattern: "[\\w-]+" } as const;

/**
 * The types of a deployment that has declared none. They are all types of `GITLAB_GENERATION`, with its names
 * and numbers. `npm run generate:proto` makes the messages of the wire and the table in names.md from them.
 *
 * - Bucket types are in the plural, as in generations that had buckets, and claims in the singular.
 * - 14 was INVITE_EMAILS for some weeks. GitLab took it back and gave the number to another type. The pattern
 *   of that type refuses email addresses.
 * - The numbers of the two types of Jira follow the order in GitLab's model. The public copies of the client
 *   that have these types don't include the file with their numbers.
 * - The protobuf's UNSPECIFIED (0) is refused everywhere and has no entry.
 */
export const gitlabTypes = {
  bucket_types: {
    ROUTES: { number: 1, ...path },
    ORGANIZATION_PATH: { number: 2, ...path },
    REDIRECT_ROUTES: { number: 3, ...path },
    USERNAMES: { number: 4 },
    EMAILS: { number: 5, ...email },
    PROJECT_IDS: { number: 6, ...wholeNumber },
    NAMESPACE_IDS: { number: 7, ...wholeNumber },
    GPG_KEYS: { number: 8, ...exact },
    SSH_KEYS: { number: 9, ...exact },
    USER_IDS: { number: 10, ...wholeNumber },
    ORGANIZATION_IDS: { number: 11, ...wholeNumber },
    SERVICE_DESK_CUSTOM_EMAILS: { number: 12, ...email },
    GPG_KEY_FINGERPRINTS: { number: 13, script: "any" },
    SERVICE_DESK_PROJECT_KEY_ADDRESS_SLUGS: { number: 14, ...slug },
    SSH_KEY_FINGERPRINTS: { number: 15, ...exact },
    SNIPPET_IDS: { number: 16, ...wholeNumber },
    PAGES_DOMAINS: { number: 17, ...domain },
    PAGES_UNIQUE_DOMAINS: { number: 18, ...label },
    JIRA_FORGE_INSTALLATION_IDS: { number: 19, ...exact },
    JIRA_CLIENT_KEYS: { number: 20, ...exact },
  },
  subject_types: {
    ORGANIZATION: { number: 1 },
    NAMESPACE: { number: 2 },
    PROJECT: { number: 3 },
    USER: { number: 4 },
  },
  source_types: {
    RAILS_TABLE_USERS: { number: 1 },
    RAILS_TABLE_EMAILS: { number: 2 },
    RAILS_TABLE_ROUTES: { number: 3 },
    RAILS_TABLE_PROJECTS: { number: 4 },
    RAILS_TABLE_NAMESPACES: { number: 5 },
    RAILS_TABLE_ORGANIZATIONS: { number: 6 },
    RAILS_TABLE_REDIRECT_ROUTES: { number: 7 },
    RAILS_TABLE_GPG_KEYS: { number: 8 },
    RAILS_TABLE_KEYS: { number: 9 },
    RAILS_TABLE_SERVICE_DESK_SETTINGS: { number: 10 },
    RAILS_TABLE_MEMBERS: { number: 11 },
    RAILS_TABLE_SNIPPETS: { number: 12 },
    RAILS_TABLE_PAGES_DOMAINS: { number: 13 },
    RAILS_TABLE_PROJECT_SETTINGS: { number: 14 },
    RAILS_TABLE_JIRA_CONNECT_INSTALLATIONS: { number: 15 },
  },
} as const satisfies TypesDocument;

/** A bucket type as the claims of the protobuf have it. */
export interface ClaimField {
  bucketType: keyof (typeof gitlabTypes)["bucket_types"];
  /** Such as `project_id`. */
  name: string;
  number: number;
  /** Its values are an int64 in the protobuf. */
  isWholeNumber: boolean;
}

export const claimFields: readonly ClaimField[] = Object.entries<BucketTypeDeclaration>(
  gitlabTypes.bucket_types,
).map(([bucketType, { number, pattern }]) => ({
  bucketType: bucketType as ClaimField["bucketType"],
  name: bucketType.toLowerCase().replace(/s$/, ""),
  number,
  isWholeNumber: pattern === wholeNumber.pattern,
}));
