/** Finds regular expressions that can take too long on some text. */
// The main entry would start a native program or a Java virtual machine.
import recheck from "recheck/lib/browser.js";

/** Returns a function that says why an expression can take too long, or null. It remembers its answers. */
export function slowExpressions(): (source: string) => string | null {
  const known = new Map<string, string | null>();
  return (source) => {
    const before = known.get(source);
    if (before !== undefined) return before;
    const bare = bareOf(source);
    const reason = isPlain(bare) ? null : countsGroup(bare) ? COUNTED : slowness(source);
    known.set(source, reason);
    return reason;
  };
}

function slowness(source: string): string | null {
  // The analysis counts its steps. A time limit as well would give other answers on a slow machine.
  const result = recheck.checkSync(source, "", { timeout: null });
  switch (result.status) {
    case "safe":
      return null;
    case "vulnerable":
      return `it takes ${result.complexity.summary} time on a text such as ${sample(result.attack.string)}`;
    case "unknown":
      return `it could not be analyzed (${result.error.kind}), so write it in a simpler way`;
  }
}

const SHOWN = 40;

const sample = (text: string): string =>
  JSON.stringify(text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);

const COUNTED = "it repeats a group by a count, as in `(a?){9}`, and the group has a choice in it";

/** An expression without the text of its characters, classes and names of groups. */
const bareOf = (source: string): string =>
  source
    .replaceAll(/\\[^k1-9]/g, "x")
    .replaceAll(/\[[^\]]*\]/g, "x")
    .replaceAll(/\(\?(?::|<\w+>)/g, "(");

/**
 * Whether an expression takes linear time for sure: it is tried at one place only, and at most one thing in
 * it is repeated. This spares the analysis of most expressions in a long list.
 */
const isPlain = (bare: string): boolean =>
  bare.startsWith("^") && !/[|\\]|\(\?/.test(bare) && (bare.match(/[*+?{]/g) ?? []).length <= 1;

/**
 * Whether a group with a choice in it is repeated by a count. The analysis passes such expressions, but
 * `(a?){30}` alone has 2^30 ways to match.
 */
function countsGroup(bare: string): boolean {
  const starts: number[] = [];
  for (let n = 0; n < bare.length; n++) {
    if (bare[n] === "(") starts.push(n);
    if (bare[n] !== ")") continue;
    const group = bare.slice((starts.pop() ?? 0) + 1, n);
    if (bare[n + 1] === "{" && /[*+?{|]/.test(group)) return true;
  }
  return false;
}
