/** The texts that follow from the types that Leasehold ships: a part of `proto/`, and a table of the docs. */
import { readFileSync } from "node:fs";
import { documentOf } from "../src/common/types/document.ts";
import { claimFields, GITLAB_GENERATION, gitlabTypes } from "../src/common/types/gitlab.ts";
import { shippedTypes } from "../src/common/types/shipped.ts";

const PROTO = "proto/gitlab/cells/topology_service";

interface GeneratedPart {
  file: string;
  /** The lines before and after the part. */
  from: string;
  to: string;
  lines: readonly string[];
}

const enumOf = (message: string, types: Readonly<Record<string, { number: number }>>): GeneratedPart => ({
  file: `${PROTO}/claims/v1/claim_service.proto`,
  from: `message ${message} {\n  enum Type {\n    UNSPECIFIED = 0;\n`,
  to: "  }\n",
  lines: Object.entries(types).map(([name, { number }]) => `    ${name} = ${number};`),
});

const parts: readonly GeneratedPart[] = [
  {
    file: `${PROTO}/types/v1/types.proto`,
    from: "  oneof claim {\n",
    to: "  }\n",
    lines: claimFields.map(
      ({ name, number, isWholeNumber }) => `    ${isWholeNumber ? "int64" : "string"} ${name} = ${number};`,
    ),
  },
  {
    file: `${PROTO}/types/v1/types.proto`,
    from: "enum ClaimType {\n  CLAIM_TYPE_UNSPECIFIED = 0;\n",
    to: "}\n",
    lines: claimFields.map(({ name, number }) => `  CLAIM_TYPE_${name.toUpperCase()} = ${number};`),
  },
  enumOf("Bucket", gitlabTypes.bucket_types),
  enumOf("Subject", gitlabTypes.subject_types),
  enumOf("Source", gitlabTypes.source_types),
  {
    file: "docs/concepts/names.md",
    from: "<!-- `npm run generate:proto` writes this from src/common/types/gitlab.ts. -->\n\n",
    to: "\n<!-- End of the generated part. -->\n",
    lines: [`Types and numbers of ${GITLAB_GENERATION}:`, "", ...bucketTable()],
  },
];

function bucketTable(): string[] {
  const rows = Object.entries(documentOf(shippedTypes.entries).bucket_types).map(([name, type]) => [
    `\`${name}\``,
    String(type.number),
    type.form ?? "",
    type.script ?? "",
    type.case ?? "",
    type.pattern === undefined ? "" : `\`${type.pattern}\``,
  ]);
  const head = ["bucket type", "number", "form", "script", "case", "pattern"];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const lineOf = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [lineOf(head), lineOf(widths.map((width) => "-".repeat(width))), ...rows.map(lineOf)];
}

/** The files that have generated parts, with the text that they must have. */
export function gitlabTypesFiles(): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, from, to, lines } of parts) {
    const text = texts.get(file) ?? readFileSync(file, "utf8");
    const start = text.indexOf(from) + from.length;
    const end = text.indexOf(to, start);
    if (start < from.length || end < 0) throw new Error(`${file} lacks the lines around a generated part`);
    texts.set(file, `${text.slice(0, start)}${lines.join("\n")}\n${text.slice(end)}`);
  }
  return texts;
}
