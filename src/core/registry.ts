/**
 * The registry of types: the bucket types (what is unique), the subject types (whom a claim is about) and the
 * source types (which table it came from).
 *
 * Names and numbers are those of GitLab's Topology Service protobuf (`claims/v1`). Storage keeps the numbers,
 * so never renumber an entry and never reuse a number. To add a type, add its entry: names, lookups and rules
 * follow from it. The protobuf's UNSPECIFIED (0) is refused everywhere and has no entry.
 */

/**
 * How the values of a bucket type become canonical, in addition to the rules for all types (see
 * `canonical/canonicalize.ts`).
 */
export interface CanonicalRule {
  /**
   * The value is a path of slash-separated segments. No segment may be empty, `.` or `..`, because URLs
   * cannot carry those.
   */
  readonly path: boolean;
  /**
   * People compare the value by eye, as a whole or per segment of a path. It has only characters that Unicode
   * allows in identifiers, and look-alikes of other scripts count as the same.
   */
  readonly name: boolean;
}

interface NumberedType {
  readonly number: number;
}

interface BucketType extends NumberedType {
  readonly canonical: CanonicalRule;
}

/**
 * A change to the rule of an existing entry can give a name a second owner, so it needs a new canonical
 * version.
 */
export const bucketTypes = {
  ROUTES: { number: 1, canonical: { path: true, name: true } },
  ORGANIZATION_PATH: { number: 2, canonical: { path: true, name: true } },
  REDIRECT_ROUTES: { number: 3, canonical: { path: true, name: true } },
  USERNAMES: { number: 4, canonical: { path: false, name: true } },
  EMAILS: { number: 5, canonical: { path: false, name: false } },
  PROJECT_IDS: { number: 6, canonical: { path: false, name: false } },
  USER_IDS: { number: 10, canonical: { path: false, name: false } },
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

/** Returns the name for a stored number, or undefined if no entry has the number. */
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
