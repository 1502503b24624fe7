import type { Api } from "./api.ts";

/** The types of the names of a run. */
export interface NameTypes {
  bucket: string;
  subject: string;
  source: string;
}

/** What a run knows of the implementation that it tests. */
export interface Deployment {
  cell: string;
  /** Undefined: there is no key of another cell. */
  otherCell: string | undefined;
  types: NameTypes;
}

/** Types that Leasehold ships, which are taken if the deployment has them. */
const preferred: NameTypes = { bucket: "USERNAMES", subject: "USER", source: "RAILS_TABLE_USERS" };

const schemas = { bucket: "BucketType", subject: "SubjectType", source: "SourceType" } as const;

/**
 * Finds types for names. The implementation's OpenAPI document lists those that it has. Types that are given
 * are taken as they are.
 */
export async function typesOf(api: Api, given: Partial<NameTypes>): Promise<NameTypes> {
  const { json } = await api.send("GET", "/openapi.json", { who: "nobody" });
  const declared = (json as OpenApi | undefined)?.components?.schemas;
  const choose = (kind: keyof NameTypes): string => {
    const names = declared?.[schemas[kind]]?.enum ?? [];
    const [first = preferred[kind]] = names;
    return given[kind] ?? (names.includes(preferred[kind]) ? preferred[kind] : first);
  };
  return { bucket: choose("bucket"), subject: choose("subject"), source: choose("source") };
}

interface OpenApi {
  components?: { schemas?: Record<string, { enum?: string[] } | undefined> };
}
