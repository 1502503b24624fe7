import type { CellAddress, Name, RouteAnswer } from "../lookups/routes.ts";

/** The parts of a request that rules look at. A `Request` has them. */
export interface RoutedRequest {
  /** The absolute URL that the client asked for. */
  readonly url: string | URL;
  readonly headers: Headers;
  readonly method: string;
}

interface MatchOf<Action extends string> {
  /** The rule's id, or its place in the document (`rules[3]`) if it has none. */
  readonly rule: string;
  readonly action: Action;
  /** The next rules are tried if this one finds no cell. */
  readonly continues: boolean;
}

/** What a rule says about a request: which names, or which cell. */
export type Match =
  | (MatchOf<"classify"> & {
      /** The names to look up, in this order: the first that exists decides. At least one. */
      readonly candidates: readonly Name[];
    })
  | (MatchOf<"cell"> & {
      /** The cell's id. */
      readonly cell: string;
      /** The cell serves what nothing else claims (`action: "proxy"`), so using it counts as a fallback. */
      readonly isFallback: boolean;
    })
  | (MatchOf<"session_prefix"> & {
      /** The prefix of a session id, which names a cell by its id, as in `7` or `cell-7`. */
      readonly value: string;
    })
  /** The cell with the smallest id. Using it counts as a fallback. */
  | MatchOf<"first_cell">
  /** The request has no cell, because the rules say so. */
  | MatchOf<"not_found">;

/** The compiled rules of a router. */
export interface Ruleset {
  /** The ids of the rules, in order. */
  readonly rules: readonly string[];
  /** The bucket types that rules name, to compare with the declared ones. */
  readonly bucketTypes: readonly string[];
  /** Returns the first rule that matches, or null if none does. Never throws. */
  match(request: RoutedRequest): Match | null;
  /**
   * Returns the rules that apply to a request, in order: the first that matches and, as long as a match
   * `continues`, the next one. Rules are only evaluated when they are asked for.
   */
  matches(request: RoutedRequest): Iterable<Match>;
}

/** Which cell serves a request, or why none does. */
export type Classification =
  | {
      readonly kind: "cell";
      readonly rule: string;
      readonly action: Match["action"];
      readonly cell: CellAddress;
      /** The name that decided. Null if the rule names a cell. */
      readonly matchedName: Name | null;
      /** The answer about that name. Null if the rule names a cell. */
      readonly answer: Extract<RouteAnswer, { kind: "found" }> | null;
      /** The cell was chosen because no rule found another (`proxy`, `first_cell`). Count it for the rule. */
      readonly isFallback: boolean;
    }
  /** No name exists, or there is no such cell, or no rule matched (`rule` is null). */
  | { readonly kind: "none"; readonly rule: string | null; readonly detail: string }
  /** The rules cannot work with this coordinator, for example because a bucket type is not declared. */
  | { readonly kind: "misconfigured"; readonly rule: string; readonly detail: string }
  /** Whether a name exists is not known now, so no later name or rule may decide. */
  | {
      readonly kind: "unavailable";
      readonly rule: string;
      readonly detail: string;
      readonly retryAfterMs: number;
    };

/** One mistake in a document of rules. */
export interface RuleFinding {
  /** The path of the field in the document, as in `rules[3].match.regexValue`. */
  readonly field: string;
  /** The id of the rule, if the mistake is in one that has an id. */
  readonly rule?: string;
  /** What is wrong, and what to do. */
  readonly message: string;
}
