/**
 * Code that Stryker does not mutate: texts that only people read, and labels of write points, which only the
 * fault tests use. A surviving mutant of these would mean nothing.
 */

/** The part of Babel's syntax tree that is used. */
interface Tree {
  type: string;
  name?: string;
  key?: Tree;
  id?: Tree;
  callee?: Tree;
  property?: Tree;
}

interface Path {
  node: Tree;
  parent: Tree;
  key: string | number;
  listKey: string | undefined;
}

/** Calls, and the index of the argument that is a text or a label. */
const TEXT_ARGUMENTS: Readonly<Record<string, number>> = { refused: 1, submit: 0, transaction: 0 };

/** Tables, whose entries are plain data. */
const TABLES: ReadonlySet<string | undefined> = new Set([
  "limitTable",
  "errorCodes",
  "bucketTypes",
  "subjectTypes",
  "sourceTypes",
]);

const TEXT_NAMES: ReadonlySet<string | undefined> = new Set(["cause", "detail", "said", "names"]);

function reasonToIgnore({ node, parent, key, listKey }: Path): string | undefined {
  if (node.type === "CallExpression" && node.callee?.property?.name === "log") return "only a log line";
  if (listKey === "arguments") {
    if (parent.type === "NewExpression" && parent.callee?.name === "Error") return "only an error's text";
    const called = parent.callee?.name ?? parent.callee?.property?.name ?? "";
    if (TEXT_ARGUMENTS[called] === key) return "only a refusal's text, or a label";
  }
  const named =
    parent.type === "ObjectProperty"
      ? parent.key?.name
      : parent.type === "VariableDeclarator"
        ? parent.id?.name
        : undefined;
  if (key === "init" && TABLES.has(named)) return "only data";
  return TEXT_NAMES.has(named) && named !== undefined && (key === "value" || key === "init")
    ? "only a text"
    : undefined;
}

export const strykerPlugins = [{ kind: "Ignore", name: "texts", value: { shouldIgnore: reasonToIgnore } }];
