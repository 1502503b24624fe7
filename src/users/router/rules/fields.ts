import type { RuleFinding } from "./types.ts";

/** Rules in one document. */
export const MAX_RULES = 10_000;

/** Bytes of one document, as JSON in UTF-8. */
export const MAX_DOCUMENT_BYTES = 2 * 1024 * 1024;

/**
 * UTF-16 code units of a value that a regular expression is tried on, or that becomes a name. Browsers cut
 * cookies at 4096 bytes. A longer value matches nothing: cutting it would make another value of it.
 */
export const MAX_VALUE_LENGTH = 4096;

/** UTF-16 code units of a regular expression, a pattern or a template. */
const MAX_TEXT_LENGTH = 1_000;

/**
 * Bytes of a rule's id in UTF-8. A cookie can carry an id, percent-encoded in three times as many bytes, and
 * browsers drop cookies of more than 4096 bytes.
 */
const MAX_ID_BYTES = 200;

/** Segments of a path pattern, and labels of a host pattern. */
export const MAX_PATTERN_SEGMENTS = 32;

/** Segments of the longest candidate that a rule can make of a path. */
export const MAX_PREFIX_DEPTH = 32;

/** Conditions, transforms or claims of one rule. */
export const MAX_STEPS = 16;

/** Entries of a list such as `formats` or `notUnder`. */
const MAX_LIST_ENTRIES = 1_000;

/** Names that one rule can make of one request. Each one may cost a lookup. */
export const MAX_CANDIDATES = 64;

/** Findings in one error. More would hide the first ones. */
const MAX_FINDINGS = 100;

/** Thrown for a document that is not a valid set of rules. */
export class RulesetError extends Error {
  /** Every mistake, in the order of the document. */
  readonly findings: readonly RuleFinding[];

  constructor(findings: readonly RuleFinding[]) {
    super(`invalid routing rules: ${findings.map(findingText).join("; ")}`);
    this.name = "RulesetError";
    this.findings = findings;
  }
}

const findingText = ({ field, message }: RuleFinding): string => `\`${field}\` ${message}`;

/** Collects the mistakes of a document, so that all of them can be corrected at once. */
export class Findings {
  readonly #list: RuleFinding[] = [];
  #left = 0;
  /** The id of the rule that is being read. */
  rule: string | undefined;

  add(field: string, message: string): void {
    if (this.#list.length === MAX_FINDINGS) {
      this.#left++;
      return;
    }
    this.#list.push({ field, message, ...(this.rule === undefined ? {} : { rule: this.rule }) });
  }

  get isEmpty(): boolean {
    return this.#list.length === 0;
  }

  all(): RuleFinding[] {
    if (this.#left === 0) return this.#list;
    return [...this.#list, { field: "rules", message: `has ${this.#left} more mistakes, not listed` }];
  }
}

/** The path of the whole document. */
export const DOCUMENT = "document";

/** An object of the document, with the path that findings name. */
export class Fields {
  readonly path: string;
  readonly #values: ReadonlyMap<string, unknown>;
  readonly #findings: Findings;

  private constructor(path: string, values: ReadonlyMap<string, unknown>, findings: Findings) {
    this.path = path;
    this.#values = values;
    this.#findings = findings;
  }

  /** Reads an object with these fields and no others. Returns undefined, with a finding, if it is none. */
  static of(value: unknown, path: string, known: readonly string[], findings: Findings): Fields | undefined {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      findings.add(path, `must be an object, but is ${kindOf(value)}`);
      return undefined;
    }
    const values = new Map<string, unknown>(Object.entries(value));
    const fields = new Fields(path, values, findings);
    for (const name of values.keys())
      if (!known.includes(name))
        findings.add(fields.at(short(name)), `is not a known field; known: ${known.join(", ")}`);
    return fields;
  }

  has(name: string): boolean {
    return this.#values.get(name) !== undefined;
  }

  get(name: string): unknown {
    return this.#values.get(name);
  }

  /** The path of a field. Those of the document itself have no path before them. */
  at(name: string): string {
    return this.path === DOCUMENT ? name : `${this.path}.${name}`;
  }

  /** Returns the one of these fields that is present, or undefined. Adds a finding if there are several. */
  oneOf(names: readonly string[], isRequired = false): string | undefined {
    const present = names.filter((name) => this.has(name));
    if (present.length > 1)
      this.#findings.add(
        this.path,
        `has ${present.join(" and ")}: keep one of them, they exclude each other`,
      );
    if (present.length === 0 && isRequired)
      this.#findings.add(this.path, `must have ${names.map((name) => `\`${name}\``).join(" or ")}`);
    return present[0];
  }

  /** Returns a text of at least one character, or undefined, with a finding if it is wrong. */
  text(name: string, isRequired = false): string | undefined {
    const value = this.get(name);
    if (value === undefined) {
      if (isRequired) this.#findings.add(this.at(name), "is required");
      return undefined;
    }
    return textOf(value, this.at(name), this.#findings);
  }

  /** Returns a text that names a rule, or undefined, with a finding if it is wrong. */
  id(name: string): string | undefined {
    const id = this.text(name);
    if (id === undefined) return undefined;
    const fault = faultOfId(id);
    if (fault === undefined) return id;
    this.#findings.add(this.at(name), fault);
    return undefined;
  }

  /** Returns a list of texts, empty if the field is absent. */
  texts(name: string): string[] {
    return this.list(name, MAX_LIST_ENTRIES).flatMap(
      ([entry, path]) => textOf(entry, path, this.#findings) ?? [],
    );
  }

  /** Returns the entries of a list with their paths, empty if the field is absent. */
  list(name: string, max: number): [entry: unknown, path: string][] {
    const value = this.get(name);
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.#findings.add(this.at(name), `must be a list, but is ${kindOf(value)}`);
      return [];
    }
    if (value.length > max) {
      this.#findings.add(this.at(name), `has ${value.length} entries; at most ${max} are allowed`);
      return [];
    }
    return value.map((entry: unknown, n) => [entry, `${this.at(name)}[${n}]`]);
  }

  /** Like `list`, for a field that may also have one entry without a list around it. */
  oneOrMore(name: string, max: number): [entry: unknown, path: string][] {
    const value = this.get(name);
    if (value === undefined || Array.isArray(value)) return this.list(name, max);
    return [[value, this.at(name)]];
  }

  /** Returns a whole number within bounds, or undefined, with a finding if it is wrong. */
  integer(name: string, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= max) return value;
    this.#findings.add(this.at(name), `must be a whole number from 1 to ${max}`);
    return undefined;
  }

  /** Returns one of some texts, or undefined, with a finding if it is another. */
  choice<const T extends string>(name: string, choices: readonly T[], isRequired = false): T | undefined {
    const value = this.text(name, isRequired);
    if (value === undefined) return undefined;
    const choice = choices.find((one) => one === value);
    if (choice === undefined)
      this.#findings.add(this.at(name), `must be one of ${choices.join(", ")}, but is ${quoted(value)}`);
    return choice;
  }
}

/** Why a text cannot be the id of a rule, or undefined. */
export function faultOfId(id: string): string | undefined {
  if (!id.isWellFormed()) return "must be well-formed Unicode";
  const bytes = new TextEncoder().encode(id).length;
  return bytes > MAX_ID_BYTES
    ? `has ${bytes} bytes of UTF-8; at most ${MAX_ID_BYTES} are allowed`
    : undefined;
}

export const quoted = (text: string): string => JSON.stringify(short(text));

const SHOWN = 60;

const short = (text: string): string => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

function textOf(value: unknown, path: string, findings: Findings): string | undefined {
  if (typeof value !== "string") findings.add(path, `must be a string, but is ${kindOf(value)}`);
  else if (value === "") findings.add(path, "must not be empty");
  else if (value.length > MAX_TEXT_LENGTH)
    findings.add(path, `has ${value.length} characters; at most ${MAX_TEXT_LENGTH} are allowed`);
  else return value;
  return undefined;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return value === undefined ? "missing" : `a ${typeof value}`;
}
