/**
 * The one registry of types: what may be unique, whom a claim is about, and which table it came from.
 *
 * Names and numbers are those of GitLab's Topology Service protobuf (`claims/v1`). Storage keeps the numbers, so an entry is never
 * renumbered and a number is never used again. To add a type, add its entry: names, lookups and rules follow from it.
 * The protobuf's UNSPECIFIED (0) is refused everywhere, and so has no entry.
 */

/** How the values of a bucket type are made canonical, beyond what holds for all (see `canonical/canonicalize.ts`). */
export interface CanonicalRule {
  /** Slash-separated segments, of which none may be empty, `.` or `..`: URLs cannot carry those. */
  readonly path: boolean;
  /** Refuses mixed-script look-alikes, per segment of a path, otherwise per value. */
  readonly singleScript: boolean;
}

interface NumberedType {
  readonly number: number;
}

interface BucketType extends NumberedType {
  readonly canonical: CanonicalRule;
}

/** Changing the rule of an existing entry can make a second owner of a name: it needs a new canonical version. */
export const bucketTypes = {
  ROUTES: { number: 1, canonical: { path: true, singleScript: true } },
  ORGANIZATION_PATH: { number: 2, canonical: { path: true, singleScript: true } },
  REDIRECT_ROUTES: { number: 3, canonical: { path: true, singleScript: true } },
  USERNAMES: { number: 4, canonical: { path: false, singleScript: true } },
  EMAILS: { number: 5, canonical: { path: false, singleScript: false } },
  PROJECT_IDS: { number: 6, canonical: { path: false, singleScript: false } },
  USER_IDS: { number: 10, canonical: { path: false, singleScript: false } },
} as const satisfies Record<string, BucketType>;

export const subjectTypes = {
  ORGANIZATION: { number: 1 },
  GROUP: { number: 2 },
  PROJECT: { number: 3 },
  USER: { number: 4 },
} as const satisfies Record<string, NumberedType>;

export const sourceTypes = {
  RAILS_TABLE_USERS: { number: 1 },
  RAILS_TABLE_EMAILS: { number: 2 },
  RAILS_TABLE_ROUTES: { number: 3 },
  RAILS_TABLE_PROJECTS: { number: 4 },
  RAILS_TABLE_GROUPS: { number: 5 },
  RAILS_TABLE_ORGANIZATIONS: { number: 6 },
  RAILS_TABLE_REDIRECT_ROUTES: { number: 7 },
} as const satisfies Record<string, NumberedType>;

export type BucketTypeName = keyof typeof bucketTypes;
export type SubjectTypeName = keyof typeof subjectTypes;
export type SourceTypeName = keyof typeof sourceTypes;

export const bucketTypeNames = Object.keys(bucketTypes) as BucketTypeName[];

/** The name of a stored number, or undefined for a number that no entry has. */
export const bucketTypeByNumber = namesByNumber(bucketTypes);
export const subjectTypeByNumber = namesByNumber(subjectTypes);
export const sourceTypeByNumber = namesByNumber(sourceTypes);

function namesByNumber<Name extends string>(
  types: Record<Name, NumberedType>,
): (n: number) => Name | undefined {
  const names = new Map<number, Name>();
  for (const name in types) names.set(types[name].number, name);
  return (n) => names.get(n);
}
