import type { CanonicalRule } from "../../src/common/canonical/rule.ts";
import type { Source, Subject } from "../../src/coordinator/kernel/messages.ts";
import { typesOf } from "../../src/common/types/document.ts";
import { gitlabTypes } from "../../src/common/types/gitlab.ts";
import { Types, type TypeKind } from "../../src/common/types/types.ts";

const read = typesOf(gitlabTypes);
if (!read.ok) throw new Error(read.refusal.detail);

/** The types of a deployment that has declared none. */
export const shipped = new Types(read.value);

export type BucketTypeName = keyof (typeof gitlabTypes)["bucket_types"];
export type SubjectTypeName = keyof (typeof gitlabTypes)["subject_types"];
export type SourceTypeName = keyof (typeof gitlabTypes)["source_types"];

function entryOf(kind: TypeKind, name: string) {
  const entry = shipped.named(kind, name);
  if (entry === undefined) throw new Error(`there is no ${kind} type ${name}`);
  return entry;
}

/** The number of a shipped bucket type. */
export const bucketType = (name: BucketTypeName): number => entryOf("bucket", name).number;

/** The number of a shipped subject type. */
export const subjectType = (name: SubjectTypeName): number => entryOf("subject", name).number;

/** The number of a shipped source type. */
export const sourceType = (name: SourceTypeName): number => entryOf("source", name).number;

/** Returns a subject as messages have it. */
export const subjectOf = (type: SubjectTypeName, id: string): Subject => ({ type: subjectType(type), id });

/** Returns a source as messages have it. */
export const sourceOf = (type: SourceTypeName, id: string): Source => ({ type: sourceType(type), id });

/** The canonical rule of a shipped bucket type. */
export function ruleOf(name: BucketTypeName): CanonicalRule {
  const { rule } = entryOf("bucket", name);
  if (rule === null) throw new Error(`the bucket type ${name} has no canonical rule`);
  return rule;
}

export const bucketTypeNames = Object.keys(gitlabTypes.bucket_types) as BucketTypeName[];
/** The bucket types whose names are any text that is folded. */
export const textTypeNames = bucketTypeNames.filter((name) => {
  const { form, case: letters, pattern } = ruleOf(name);
  return form !== "email" && letters === "folded" && pattern === undefined;
});
export const subjectTypeNames = Object.keys(gitlabTypes.subject_types) as SubjectTypeName[];
export const sourceTypeNames = Object.keys(gitlabTypes.source_types) as SourceTypeName[];
