import type { Name } from "../lookups/routes.ts";
import {
  compileCondition,
  CONDITION_FIELDS,
  CONDITION_TYPES,
  type Condition,
  type RequestParts,
} from "./conditions.ts";
import { faultOfId, Fields, MAX_CANDIDATES, MAX_PREFIX_DEPTH, MAX_STEPS, type Findings } from "./fields.ts";
import { compileTemplate, type Template, type Variables } from "./pattern.ts";
import { compileTransform, TRANSFORM_FIELDS, type Transform } from "./transforms.ts";
import type { Match } from "./types.ts";

/** A name that a rule makes of a request. */
interface Claim {
  readonly type: string;
  readonly value: Template;
  /** The segments of the longest name. Each shorter one follows. Null: only the whole value. */
  readonly prefixDepth: number | null;
  /** The path of the type in the document. */
  readonly typePath: string;
}

/** The names to look up, without duplicates: claims in their order, the longest name of each first. */
function candidatesOf(claims: readonly Claim[], alternatives: readonly Variables[]): Name[] {
  const names = new Map<string, Name>();
  for (const { type, value, prefixDepth } of claims) {
    const texts = alternatives.flatMap((variables) => value.fill(variables) ?? []);
    for (const text of prefixDepth === null ? texts : prefixes(texts, prefixDepth)) {
      if (names.size === MAX_CANDIDATES) return [...names.values()];
      const key = `${type} ${text}`;
      if (!names.has(key)) names.set(key, { type, value: text });
    }
  }
  return [...names.values()];
}

/** `a/b/c` has the prefixes `a/b/c`, `a/b` and `a`. Alternatives of one length stay beside each other. */
function prefixes(texts: readonly string[], depth: number): string[] {
  const paths = texts.map((text) => text.split("/").filter((segment) => segment !== ""));
  const longest = Math.min(depth, Math.max(0, ...paths.map((path) => path.length)));
  return Array.from({ length: longest }, (_, n) => longest - n).flatMap((length) =>
    paths.flatMap((path) => (path.length < length ? [] : path.slice(0, length).join("/"))),
  );
}

/** A rule that was read without a mistake. */
export interface Rule {
  readonly id: string;
  /** Its path in the document, as in `rules[3]`. */
  readonly path: string;
  readonly conditions: readonly Condition[];
  /** Its regular expressions, with their paths in the document. */
  readonly expressions: readonly { readonly path: string; readonly source: string }[];
  /**
   * Whether a request that meets the conditions can still be refused: by a transform, a validation, or a
   * group of a regular expression that captured nothing.
   */
  readonly isPartial: boolean;
  /** Two rules of the same key do the same. */
  readonly key: string;
  readonly continues: boolean;
  readonly action: Match["action"];
  readonly bucketTypes: readonly { readonly type: string; readonly path: string }[];
  match(request: RequestParts): Match | null;
}

const ACTIONS = ["classify", "proxy", "cell", "first_cell", "not_found"] as const;
const ON_NOT_FOUND = ["stop", "next"] as const;

const RULE_FIELDS = ["id", "match", "transform", "validate", "action", "classify", "cell", "onNotFound"];

/** Types of a classify rule that name a cell, with the names that GitLab's router used for them before. */
const CELL_TYPES: Readonly<Record<string, "first_cell" | "session_prefix" | "cell">> = {
  FIRST_CELL: "first_cell",
  FirstCell: "first_cell",
  SESSION_PREFIX: "session_prefix",
  SessionPrefix: "session_prefix",
  CELL_ID: "cell",
  CellId: "cell",
};

/** What a rule does with the texts of a request. */
type Target =
  | { readonly kind: "claims"; readonly claims: readonly Claim[] }
  | { readonly kind: "cell" | "session_prefix"; readonly value: Template }
  | { readonly kind: "fixed"; readonly match: FixedMatch };

type FixedMatch =
  | { readonly action: "cell"; readonly cell: string; readonly isFallback: boolean }
  | { readonly action: "first_cell" | "not_found" };

/** Reads one rule. Returns undefined, with findings, if it is wrong. */
export function compileRule(
  value: unknown,
  path: string,
  defaultCell: string | null,
  findings: Findings,
): Rule | undefined {
  findings.rule = idOf(value);
  const fields = Fields.of(value, path, RULE_FIELDS, findings);
  if (fields === undefined) return undefined;
  const id = fields.id("id") ?? path;
  const conditions = fields
    .oneOrMore("match", MAX_STEPS)
    .map(([entry, at]) => readCondition(entry, at, findings));
  const names = namesOf(conditions, fields, findings);
  const transforms = fields.oneOrMore("transform", MAX_STEPS).map(([entry, at]) => {
    const transform = readTransform(entry, at, names, findings);
    names.add(transform);
    return transform;
  });
  const validate = readValidate(fields, names, findings);
  const action = fields.choice("action", ACTIONS, true);
  const continues = fields.choice("onNotFound", ON_NOT_FOUND) === "next";
  const target = action && readTarget(action, fields, names, defaultCell, findings);
  if (target === undefined) return undefined;
  if (!conditions.every((one) => one !== undefined)) return undefined;
  if (!transforms.every((one) => one !== undefined)) return undefined;
  return {
    id,
    path,
    conditions,
    expressions: [...conditions, ...transforms].flatMap(({ expressions }) => expressions),
    isPartial:
      transforms.length > 0 ||
      validate.length > 0 ||
      (target.kind !== "fixed" && conditions.some(mayCaptureNothing)),
    key: JSON.stringify([
      conditions.map(({ key }) => key),
      ["transform", "validate", "action", "classify", "cell"].map((name) => fields.get(name) ?? null),
    ]),
    continues,
    action:
      target.kind === "claims" ? "classify" : target.kind === "fixed" ? target.match.action : target.kind,
    bucketTypes:
      target.kind === "claims" ? target.claims.map(({ type, typePath }) => ({ type, path: typePath })) : [],
    match(request) {
      const alternatives = evaluate(request, conditions, transforms, validate);
      return alternatives.length === 0 ? null : outcome({ rule: id, continues }, target, alternatives);
    },
  };
}

/** Whether a group of its regular expression may be left out or empty. Says yes if it is not sure. */
const mayCaptureNothing = ({ names, pattern, expressions }: Condition): boolean =>
  names.length > 0 && pattern === null && expressions.some(({ source }) => /[|]|\)[?*{]|[*?]\)/.test(source));

/** The id that findings name a rule by. Undefined if the id itself is wrong. */
function idOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("id" in value)) return undefined;
  return typeof value.id === "string" && faultOfId(value.id) === undefined ? value.id : undefined;
}

/** The texts that templates may use: what conditions captured, then what transforms made. */
class Names {
  readonly #names = new Set<string>();
  /** After a mistake, not every name is known, so templates are not refused because of their names. */
  #isComplete = true;

  addAll(names: readonly string[]): void {
    for (const name of names) this.#names.add(name);
  }

  add(transform: Transform | undefined): void {
    if (transform === undefined) this.#isComplete = false;
    else this.addAll(transform.names ?? [`${transform.output ?? ""}.`]);
  }

  markIncomplete(): void {
    this.#isComplete = false;
  }

  readonly has = (name: string): boolean => {
    const dot = name.indexOf(".");
    return !this.#isComplete || this.#names.has(name) || (dot > 0 && this.#names.has(name.slice(0, dot + 1)));
  };
}

function namesOf(conditions: readonly (Condition | undefined)[], fields: Fields, findings: Findings): Names {
  const names = new Names();
  const seen = new Set<string>();
  for (const condition of conditions) {
    if (condition === undefined) names.markIncomplete();
    for (const name of condition?.names ?? []) {
      if (seen.has(name)) findings.add(fields.at("match"), `captures ${name} twice: rename one of them`);
      seen.add(name);
    }
    names.addAll(condition?.names ?? []);
  }
  return names;
}

function readCondition(value: unknown, path: string, findings: Findings): Condition | undefined {
  const all = [...new Set(Object.values(CONDITION_FIELDS).flat())];
  const fields = Fields.of(value, path, all, findings);
  const type = fields?.choice("type", CONDITION_TYPES, true);
  if (fields === undefined || type === undefined) return undefined;
  for (const name of all)
    if (fields.has(name) && !CONDITION_FIELDS[type].includes(name))
      findings.add(fields.at(name), `is not a field of the type ${type}`);
  return compileCondition(type, fields, findings);
}

function readTransform(
  value: unknown,
  path: string,
  names: Names,
  findings: Findings,
): Transform | undefined {
  const fields = Fields.of(value, path, TRANSFORM_FIELDS, findings);
  return fields && compileTransform(fields, names.has, findings);
}

function readValidate(fields: Fields, names: Names, findings: Findings): Template[] {
  if (!fields.has("validate")) return [];
  const validate = Fields.of(fields.get("validate"), fields.at("validate"), ["exist"], findings);
  return (
    validate
      ?.texts("exist")
      .flatMap(
        (text, n) => compileTemplate(text, `${validate.at("exist")}[${n}]`, names.has, findings) ?? [],
      ) ?? []
  );
}

function readTarget(
  action: (typeof ACTIONS)[number],
  fields: Fields,
  names: Names,
  defaultCell: string | null,
  findings: Findings,
): Target | undefined {
  for (const [name, owner] of [
    ["classify", "classify"],
    ["cell", "cell"],
  ])
    if (name !== undefined && fields.has(name) && action !== owner)
      findings.add(fields.at(name), `is only for the action ${owner}`);
  switch (action) {
    case "classify":
      return readClassify(fields, names, findings);
    case "cell": {
      const cell = fields.text("cell", true);
      return cell === undefined ? undefined : fixed({ action: "cell", cell, isFallback: false });
    }
    case "proxy":
      return fixed(
        defaultCell === null
          ? { action: "first_cell" }
          : { action: "cell", cell: defaultCell, isFallback: true },
      );
    case "first_cell":
    case "not_found":
      return fixed({ action });
  }
}

const fixed = (match: FixedMatch): Target => ({ kind: "fixed", match });

const CLAIM_FIELDS = ["type", "value", "prefixDepth"];

function readClassify(fields: Fields, names: Names, findings: Findings): Target | undefined {
  const path = fields.at("classify");
  if (!fields.has("classify")) {
    findings.add(path, "is required for the action classify");
    return undefined;
  }
  const classify = Fields.of(fields.get("classify"), path, [...CLAIM_FIELDS, "claims"], findings);
  if (classify === undefined) return undefined;
  if (classify.has("claims")) {
    for (const name of CLAIM_FIELDS)
      if (classify.has(name)) findings.add(classify.at(name), "cannot stand beside `claims`");
    const entries = classify.list("claims", MAX_STEPS);
    if (entries.length === 0) findings.add(classify.at("claims"), "must be a list of at least one claim");
    const claims = entries.map(([entry, at]) => {
      const claim = Fields.of(entry, at, CLAIM_FIELDS, findings);
      return claim && readClaim(claim, names, findings);
    });
    return claims.every((claim) => claim !== undefined) ? { kind: "claims", claims } : undefined;
  }
  const type = classify.text("type", true);
  const kind = type === undefined || !Object.hasOwn(CELL_TYPES, type) ? undefined : CELL_TYPES[type];
  if (kind === undefined) {
    const claim = readClaim(classify, names, findings);
    return claim && { kind: "claims", claims: [claim] };
  }
  if (classify.has("prefixDepth"))
    findings.add(classify.at("prefixDepth"), `is not for the type ${type}, which names a cell`);
  if (kind === "first_cell") return fixed({ action: "first_cell" });
  const value = readValue(classify, names, findings);
  return value && { kind, value };
}

function readClaim(fields: Fields, names: Names, findings: Findings): Claim | undefined {
  const type = fields.text("type", true);
  const value = readValue(fields, names, findings);
  const prefixDepth = fields.integer("prefixDepth", MAX_PREFIX_DEPTH) ?? null;
  if (type === undefined || value === undefined) return undefined;
  if (Object.hasOwn(CELL_TYPES, type))
    findings.add(fields.at("type"), `is ${type}, which names a cell: write it in \`classify\` itself`);
  return { type, value, prefixDepth, typePath: fields.at("type") };
}

function readValue(fields: Fields, names: Names, findings: Findings): Template | undefined {
  const text = fields.text("value", true);
  return text === undefined ? undefined : compileTemplate(text, fields.at("value"), names.has, findings);
}

const NONE: readonly Variables[] = [];

/** Runs the phases match, transform and validate. Returns what is left of the alternatives. */
function evaluate(
  request: RequestParts,
  conditions: readonly Condition[],
  transforms: readonly Transform[],
  validate: readonly Template[],
): readonly Variables[] {
  let alternatives: readonly Variables[] | undefined;
  for (const condition of conditions) {
    const found = condition.match(request);
    if (found.length === 0) return NONE;
    alternatives =
      alternatives?.flatMap((before) => found.map((after) => new Map([...before, ...after]))) ?? found;
  }
  alternatives ??= [new Map()];
  for (const transform of transforms)
    alternatives = alternatives.flatMap((before) => {
      const made = transform.apply(before);
      return made === null ? [] : [new Map([...before, ...made])];
    });
  if (validate.length === 0) return alternatives;
  return alternatives.filter((variables) => validate.every((text) => text.fill(variables) !== undefined));
}

function outcome(
  common: { rule: string; continues: boolean },
  target: Target,
  alternatives: readonly Variables[],
): Match | null {
  switch (target.kind) {
    case "fixed":
      return { ...common, ...target.match };
    case "claims": {
      const candidates = candidatesOf(target.claims, alternatives);
      return candidates.length === 0 ? null : { ...common, action: "classify", candidates };
    }
    default: {
      const [value] = alternatives.flatMap((variables) => target.value.fill(variables) ?? []);
      if (value === undefined) return null;
      return target.kind === "cell"
        ? { ...common, action: "cell", cell: value, isFallback: false }
        : { ...common, action: "session_prefix", value };
    }
  }
}
